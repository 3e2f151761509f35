#include "server/workers.hpp"

#include <sys/resource.h>
#include <unistd.h>

namespace mekik::server {

Workers::Workers() : short_guard_{net::make_work_guard(short_)}, long_guard_{net::make_work_guard(long_)} {
  threads_.emplace_back([this] { short_.run(); });
  for (std::size_t i = 0; i < kLongThreads; ++i)
    threads_.emplace_back([this] {
      constexpr int kNice = 10;
      setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);  // on Linux, of this thread alone
      long_.run();
    });
}

void Workers::join() {
  short_guard_.reset();
  long_guard_.reset();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

}  // namespace mekik::server
