// Expected failures are values: Status for "did it work", Result<T> for "the value, or why not".
#pragma once
#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace mekik {

// The numbers are those of mekik_code in mekik/plugin.h, so that a status crosses the ABI unchanged.
enum class Code : std::int32_t {
  ok = 0,
  invalid = 1,      // the input is wrong: a file, a key, a request
  unsupported = 2,  // the input is right, but this build, backend or plugin cannot do it
  no_memory = 3,
  busy = 4,  // a limit is reached; the same call may work later
  io = 5,
  cancelled = 6,
  internal = 7,  // a broken promise of ours or of a plugin
  device_lost = 8,
  misconfigured = 100,  // the pipeline is wrong, as far as is known once its model is open; stays inside the core
};

// `text` is one sentence for the user that says what is wrong and what to do.
struct [[nodiscard]] Status {
  Code code = Code::ok;
  std::string text;

  bool ok() const { return code == Code::ok; }
  // The same failure with "where: " in front of the text; success stays success.
  Status in(std::string_view where) && {
    if (!ok()) text.insert(0, std::string{where} + ": ");
    return std::move(*this);
  }
};

inline Status fail(Code code, std::string text) { return {code, std::move(text)}; }
inline Status invalid(std::string text) { return {Code::invalid, std::move(text)}; }
inline Status unsupported(std::string text) { return {Code::unsupported, std::move(text)}; }
inline Status internal_error(std::string text) { return {Code::internal, std::move(text)}; }

// A value or a failed Status. Reading the value of a failure is a bug (asserted).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_{std::in_place_index<0>, std::move(value)} {}
  Result(Status status) : state_{std::in_place_index<1>, std::move(status)} { assert(!std::get<1>(state_).ok()); }

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& value() & {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  // The failure, or an ok Status.
  Status status() const { return ok() ? Status{} : *std::get_if<1>(&state_); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace mekik

// Leaves the function with the Status of a failed expression.
#define MEKIK_CHECK_OK(expr)                                                               \
  do {                                                                                     \
    if (::mekik::Status mekik_status_ = (expr); !mekik_status_.ok()) return mekik_status_; \
  } while (false)

// MEKIK_TRY(name, expr): `name` refers to the value of a Result, or the function returns its Status.
#define MEKIK_TRY(name, expr)                               \
  auto name##_result_ = (expr);                             \
  if (!name##_result_.ok()) return name##_result_.status(); \
  auto& name = *name##_result_
