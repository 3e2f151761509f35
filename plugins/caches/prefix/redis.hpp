// Values in a Redis server, which several machines may share.
#pragma once
#include <mekik/plugin.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace mekik::prefix_cache {

struct RedisOptions {
  std::string host, socket, user, password, prefix;  // socket: a path, in place of host and port
  int port = 6379, db = 0;
  std::uint64_t timeout_ns = 0, ttl_ns = 0;  // for an answer, on top of the time that the bytes take; 0: for ever
  std::string shown() const;                 // without what is secret
};

// "redis://[user@]host[:port][/db]" or "unix:path[?db=n]". Throws std::invalid_argument, which never repeats what may be a password.
RedisOptions parse_redis(const std::string& address);

// Where values go by a connection: one thread uses it. All calls throw Error: MEKIK_E_IO with what went wrong, MEKIK_E_CANCELLED while
// nothing is asked for a while after that.
class Remote {
 public:
  virtual ~Remote() = default;
  virtual void lengths(std::span<const mekik_key> keys, std::uint64_t* out) = 0;  // bytes of values; 0: there is none
  // Also MEKIK_E_INVALID: there is none of that length.
  virtual void read(const mekik_key& key, void* data, std::uint64_t bytes) = 0;
  virtual void write(const mekik_key& key, const void* data, std::uint64_t bytes) = 0;
};

// Connects when it is first needed. `options` must outlive it. nullptr: this was built without hiredis.
std::unique_ptr<Remote> make_redis(const RedisOptions& options);

}  // namespace mekik::prefix_cache
