// What a check tells the process that started it. It lies in memory that both share, so that what was said before a crash is not lost.
#pragma once
#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>

namespace mekik::validate {

struct Shared {
  static constexpr std::size_t kFaults = 12, kFaultBytes = 700;
  std::atomic<int> lock;
  std::atomic<int> done;  // 1: the check came to its end
  unsigned n_faults;      // may be more than are kept
  char faults[kFaults][kFaultBytes];
  char call[200];     // what the plugin was asked last
  char skipped[400];  // why the check does not apply
  char data[1 << 16];
};

extern Shared* shared;  // of this check

void fault(std::string_view what);  // the plugin did something wrong; the check goes on. Thread: any.
// The same, of what an answer should be: not held against a plugin while its memory is refused, since functions without a status cannot say
// so.
void rule(std::string_view what);
void set_lenient(bool lenient);
void skip(std::string_view why);
[[noreturn]] void stop();  // what was found makes going on pointless
struct Stop {};

// Says what is asked of the plugin now; static or living until the next.
void now_calling(std::string_view what);
std::string called();

}  // namespace mekik::validate
