#include "plugin/failure.hpp"

#include "base/text.hpp"
#include "plugin/registry.hpp"

namespace mekik::plugin {

namespace {

constexpr std::size_t kMaxBytes = 4096;  // a plugin's text may be anything

struct Failure {
  std::string text;
  std::string rejected;  // the bare reason of a rejection, else empty
};

// One per thread because a status and its text belong to the call that this thread makes.
thread_local Failure failure;

Failure take() {
  Failure out = std::move(failure);
  failure = {};
  return out;
}

}  // namespace

void remember_failure(std::string_view why) {
  if (!failure.rejected.empty() && why == failure.rejected) return;
  failure.text = utf8_replace_invalid(why.substr(0, kMaxBytes));
  failure.rejected.clear();
}

void remember_rejection(std::string placed, std::string_view why) {
  failure.text = std::move(placed);
  failure.rejected = why;
}

std::string take_failure() { return take().text; }

Status to_status(mekik_status code, std::string_view what) {
  const Failure said = take();
  if (code == MEKIK_OK) return {};
  const std::string prefix = what.empty() ? std::string{} : std::string{what} + ": ";
  const std::string reason = said.text.empty() ? "no reason given" : said.text;
  if (code < 0 || code > MEKIK_E_DEVICE_LOST)
    return internal_error(prefix + "the plugin answered the unknown status " + std::to_string(code) + " (" + reason + ")");
  // A rejection starts with its place, as every complaint about a pipeline does.
  return said.rejected.empty() ? fail(static_cast<Code>(code), prefix + reason) : fail(Code::misconfigured, said.text);
}

}  // namespace mekik::plugin
