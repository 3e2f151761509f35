#include "support/call.hpp"

#include <cfenv>
#include <chrono>
#include <exception>
#include <fstream>
#include <thread>

#include "run/shared.hpp"
#include "support/heap.hpp"
#include "support/traps.hpp"
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace mekik::validate {

namespace {

struct FloatMode {
  int rounding = std::fegetround();
#if defined(__SSE__)
  unsigned control = _mm_getcsr() & 0xFFC0u;
#else
  unsigned control = 0;
#endif
  int traps = fegetexcept();
  bool operator==(const FloatMode&) const = default;
};

void guarded(const char* what, const std::function<void()>& f) {
  take_failure();
  const FloatMode before;
  std::fenv_t mode;
  std::fegetenv(&mode);
  try {
    const PluginScope scope;
    f();
  } catch (const std::exception& e) {
    fault(std::string{what} + ": threw an exception across the binary border: " + e.what());
  } catch (...) {
    fault(std::string{what} + ": threw an exception across the binary border");
  }
  if (const FloatMode after; !(before == after)) {
    fault(std::string{what} + ": left another floating-point mode behind (rounding, subnormals or traps)");
    std::fesetenv(&mode);
  }
  if (const std::string wrong = heap_faults(); !wrong.empty()) fault(std::string{what} + ": " + wrong);
}

}  // namespace

void call(const Mode& mode, const char* what, const std::function<void()>& f) {
  now_calling(what);
  if (!mode.moving) return guarded(what, f);
  std::thread{[&] {
    const HostScope scope;
    signal_stack();
    guarded(what, f);
  }}.join();
}

double own_seconds() {
  double ran = 0, waited = 0;
  std::ifstream in{"/proc/thread-self/schedstat"};
  in >> ran >> waited;
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count() - waited / 1e9;
}

const char* code_name(mekik_status code) {
  static constexpr const char* kNames[] = {"OK", "INVALID",   "UNSUPPORTED", "NO_MEMORY",  "BUSY",
                                           "IO", "CANCELLED", "INTERNAL",    "DEVICE_LOST"};
  return code >= 0 && code <= MEKIK_E_DEVICE_LOST ? kNames[code] : "an unknown status";
}

Answer ask(const Mode& mode, const char* what, const std::function<mekik_status()>& f) {
  Answer out;
  Failure said;
  call(mode, what, [&] {
    out.code = f();
    const HostScope scope;
    said = take_failure();
  });
  out.why = said.why;
  if (out.code < 0 || out.code > MEKIK_E_DEVICE_LOST) {
    fault(std::string{what} + ": answered " + std::to_string(out.code) + ", which is no status");
  } else if (out.code != MEKIK_OK) {
    if (!said.said) fault(std::string{what} + ": answered " + code_name(out.code) + " without a reason (mekik_host.fail)");
    else if (said.why.empty()) fault(std::string{what} + ": answered " + code_name(out.code) + " with an empty reason");
    else if (said.code != out.code)
      fault(std::string{what} + ": answered " + code_name(out.code) + ", but told fail() " + code_name(said.code) + " (" + said.why + ")");
  } else if (said.said) {
    fault(std::string{what} + ": answered OK, though it had said why it fails: " + said.why);
  }
  return out;
}

bool expect_ok(const Mode& mode, const char* what, const Answer& answer) {
  if (answer.ok()) return true;
  if (!mode.hostile) rule(std::string{what} + ": answered " + code_name(answer.code) + ": " + answer.why);
  return false;
}

void expect_failure(const char* what, const Answer& answer, std::initializer_list<mekik_status> codes, const std::string& when) {
  for (const mekik_status code : codes)
    if (answer.code == code) return;
  std::string wanted;
  for (const mekik_status code : codes) wanted += (wanted.empty() ? "" : " or ") + std::string{code_name(code)};
  rule(std::string{what} + ": answered " + code_name(answer.code) + " " + when + "; " + wanted + " is right");
}

}  // namespace mekik::validate
