// Calls into the plugin: whatever it may not do, whatever the function, is seen here.
#pragma once
#include <mekik/plugin.h>

#include <functional>
#include <string>

#include "support/host.hpp"
#include "support/mode.hpp"

namespace mekik::validate {

// f() from this thread, or from another one where the mode says so. Exceptions and a changed floating-point mode are faults.
void call(const Mode& mode, const char* what, const std::function<void()>& f);

struct Answer {
  mekik_status code = MEKIK_OK;
  std::string why;
  bool ok() const { return code == MEKIK_OK; }
};
// The same of a function that answers a status: it must be a known one, and come with a reason if and only if it is a failure.
Answer ask(const Mode& mode, const char* what, const std::function<mekik_status()>& f);
// An answer that has to be OK, unless the mode is hostile. False: it was not.
bool expect_ok(const Mode& mode, const char* what, const Answer& answer);
void expect_failure(const char* what, const Answer& answer, std::initializer_list<mekik_status> codes, const std::string& when);
const char* code_name(mekik_status code);
// Seconds since the program began, without those that this thread waited for a processor: a busy machine is nobody's fault.
double own_seconds();

}  // namespace mekik::validate
