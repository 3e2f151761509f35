#include "run/shared.hpp"

#include <algorithm>
#include <cstring>

namespace mekik::validate {

Shared* shared = nullptr;

namespace {

class Lock {
 public:
  Lock() {
    while (shared->lock.exchange(1, std::memory_order_acquire) != 0) continue;
  }
  ~Lock() { shared->lock.store(0, std::memory_order_release); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

void copy(char* to, std::size_t room, std::string_view text) {
  const std::size_t n = std::min(room - 1, text.size());
  std::memcpy(to, text.data(), n);
  to[n] = '\0';
}

}  // namespace

void fault(std::string_view what) {
  const Lock lock;
  const std::size_t kept = std::min<std::size_t>(shared->n_faults, Shared::kFaults);
  for (std::size_t i = 0; i < kept; ++i)
    if (what.substr(0, Shared::kFaultBytes - 1) == shared->faults[i]) return;
  if (kept < Shared::kFaults) copy(shared->faults[kept], Shared::kFaultBytes, what);
  ++shared->n_faults;
}

namespace {
std::atomic<bool> is_lenient{false};
}
void rule(std::string_view what) {
  if (!is_lenient) fault(what);
}
void set_lenient(bool lenient) { is_lenient = lenient; }
void skip(std::string_view why) { copy(shared->skipped, sizeof shared->skipped, why); }
void stop() { throw Stop{}; }
void now_calling(std::string_view what) { copy(shared->call, sizeof shared->call, what); }
std::string called() { return shared->call; }

}  // namespace mekik::validate
