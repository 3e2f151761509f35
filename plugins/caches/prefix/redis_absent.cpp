// In place of redis.cpp where hiredis was not there at build time.
#include "redis.hpp"

namespace mekik::prefix_cache {

std::unique_ptr<Remote> make_redis(const RedisOptions&) { return nullptr; }

}  // namespace mekik::prefix_cache
