// mekik/base.hpp - what every C++ plugin needs: errors, services, options, the entry. Included by mekik/plugin.hpp; see there.
#pragma once
#include <mekik/plugin.h>
#include <mekik/version.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iterator>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#ifndef NDEBUG
#include <atomic>
#include <cstdlib>
#endif

namespace mekik {

// What all of this stands on: nothing of it may move.
static_assert(sizeof(mekik_str) == 16 && sizeof(mekik_option) == 72 && sizeof(mekik_component) == 72 && sizeof(mekik_plugin) == 88);

#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {  // several plugins in one program: each keeps a state of its own
#endif

inline const mekik_host* host = nullptr;  // set by init; one per shared library, symbols are hidden

inline std::string_view view(mekik_str s) { return {s.ptr, s.len}; }
inline mekik_str str(std::string_view s) { return {s.data(), s.size()}; }

// ---- errors ------------------------------------------------------------------------------------------------------------------------

// What a function of a component throws to fail: a code of mekik_code, and a text for whoever runs the pipeline.
struct Error : std::runtime_error {
  mekik_status code;
  Error(mekik_status status, const std::string& message) : std::runtime_error{message}, code{status} {}
};

// A function of the host failed, and has said why: its text stands.
struct HostFailed {
  mekik_status code;
};
inline void check_host(mekik_status status) {
  if (status != MEKIK_OK) throw HostFailed{status};
}

inline mekik_status report(mekik_status code, std::string_view why) { return host != nullptr ? host->fail(host, code, str(why)) : code; }

// Every callback goes through here: no exception leaves the library.
template <class F>
mekik_status guard(F&& f) noexcept {
  try {
    f();
    return MEKIK_OK;
  } catch (const HostFailed& e) {
    return e.code;
  } catch (const Error& e) {
    return report(e.code, e.what());
  } catch (const std::bad_alloc&) {
    return report(MEKIK_E_NO_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return report(MEKIK_E_INTERNAL, e.what());
  } catch (...) {
    return report(MEKIK_E_INTERNAL, "unknown exception");
  }
}

// ---- services: each works, as far as it can, with a host that lacks it ---------------------------------------------------------------

// A service table, or nullptr if the host lacks it.
template <class T>
const T* service(const char* id) {
  return host != nullptr ? static_cast<const T*>(host->service(host, id)) : nullptr;
}

enum LogLevel : std::int32_t { kTrace = 0, kDebug = 1, kInfo = 2, kWarning = 3, kError = 4, kFatal = 5 };
inline void write_log(std::int32_t level, std::string_view component, std::string_view message) {
  if (const auto* table = service<mekik_log>(MEKIK_LOG)) table->write(host, level, str(component), str(message));
}

// The same for functions that have no status: what they throw is logged, and ends here.
template <class F>
void quietly(F&& f) noexcept {
  try {
    f();
  } catch (const std::exception& e) {
    write_log(4, "plugin", e.what());
  } catch (...) {
    write_log(4, "plugin", "unknown exception");
  }
}
// write_logf(kInfo, "mine", "%d sequences", n): the text is made only where somebody reads it. Thread: any.
[[gnu::format(printf, 3, 4)]] inline void write_logf(LogLevel level, const char* component, const char* format, ...) {
  const auto* table = service<mekik_log>(MEKIK_LOG);
  if (table == nullptr || table->enabled(host, level) == 0) return;
  char text[1024];
  std::va_list values;
  va_start(values, format);
  const int n = std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  if (n > 0) table->write(host, level, str(component), {text, std::min<std::size_t>(static_cast<std::size_t>(n), sizeof text - 1)});
}

// Series in /metrics and in every sink. Make them in create(), keep them: a handle costs a look-up, add() and its like a few
// nanoseconds. Names begin with "mekik_<component>_"; labels are "k=v,k=v". Without the service they do nothing. Thread: any.
class Metric {
 public:
  Metric() = default;

 protected:
  Metric(const mekik_metrics* table, mekik_metric* handle) : table_{table}, handle_{handle} {}
  void record(double value) const {
    if (handle_ != nullptr) table_->record(handle_, value);
  }

 private:
  const mekik_metrics* table_ = nullptr;
  mekik_metric* handle_ = nullptr;
};
class Counter : public Metric {
 public:
  Counter() = default;
  Counter(const char* name, const char* help, const char* labels = "")
      : Counter{service<mekik_metrics>(MEKIK_METRICS), name, help, labels} {}
  void add(double n = 1) const { record(n); }

 private:
  Counter(const mekik_metrics* t, const char* name, const char* help, const char* labels)
      : Metric{t, t != nullptr ? t->counter(host, name, help, labels) : nullptr} {}
};
class Gauge : public Metric {
 public:
  Gauge() = default;
  Gauge(const char* name, const char* help, const char* labels = "") : Gauge{service<mekik_metrics>(MEKIK_METRICS), name, help, labels} {}
  void set(double value) const { record(value); }

 private:
  Gauge(const mekik_metrics* t, const char* name, const char* help, const char* labels)
      : Metric{t, t != nullptr ? t->gauge(host, name, help, labels) : nullptr} {}
};
class Histogram : public Metric {
 public:
  Histogram() = default;
  // bounds ascend; a value counts for the first bound that it does not exceed.
  Histogram(const char* name, const char* help, std::span<const double> bounds, const char* labels = "")
      : Histogram{service<mekik_metrics>(MEKIK_METRICS), name, help, bounds, labels} {}
  void observe(double value) const { record(value); }

 private:
  Histogram(const mekik_metrics* t, const char* name, const char* help, std::span<const double> bounds, const char* labels)
      : Metric{t,
               t != nullptr ? t->histogram(host, name, help, labels, bounds.data(), static_cast<std::uint32_t>(bounds.size())) : nullptr} {}
};

// How many threads parallel() may use.
inline std::uint32_t width() {
  const auto* tasks = service<mekik_tasks>(MEKIK_TASKS);
  return tasks != nullptr ? tasks->width(host) : 1;
}
// Runs f(0) .. f(n - 1) on the host's threads and returns when all are done. f must not throw.
template <class F>
void parallel(std::uint32_t n, F&& f) {
  const auto* tasks = service<mekik_tasks>(MEKIK_TASKS);
  if (tasks == nullptr || n < 2) {
    for (std::uint32_t i = 0; i < n; ++i) f(i);
    return;
  }
  tasks->parallel(
      host, n, [](void* ctx, std::uint32_t i) { (*static_cast<std::remove_reference_t<F>*>(ctx))(i); }, &f);
}

// ---- options -----------------------------------------------------------------------------------------------------------------------

// The options of this instance, already checked against the declared rows. Read them in the constructor: the table is gone after it.
class Config {
 public:
  explicit Config(const mekik_config* config) : config_{config}, api_{service<mekik_config_api>(MEKIK_CONFIG)} {}
  std::int64_t i64(const char* key) const { return api().i64(config_, key); }  // also a choice's index, bytes, nanoseconds
  bool boolean(const char* key) const { return api().i64(config_, key) != 0; }
  double f64(const char* key) const { return api().f64(config_, key); }
  std::string_view text(const char* key) const { return view(api().text(config_, key)); }
  // Items of a list, whose item i is "key.i", or of a list of tables; else 0 for what was neither given nor has a default, or 1.
  std::uint32_t length(const char* key) const { return api().length(config_, key); }
  Config table(const char* key, std::uint32_t i = 0) const { return Config{api().table(config_, key, i)}; }
  // A complaint that only the plugin can make; the host adds file, line and column.
  [[noreturn]] void reject(const char* key, const std::string& why) const {
    const mekik_status code = api().reject(config_, key, str(why));
    throw HostFailed{code != MEKIK_OK ? code : mekik_status{MEKIK_E_INVALID}};
  }

 private:
  const mekik_config_api& api() const {
    if (api_ == nullptr || config_ == nullptr) throw Error{MEKIK_E_UNSUPPORTED, "this host gives no options (" MEKIK_CONFIG ")"};
    return *api_;
  }
  const mekik_config* config_;
  const mekik_config_api* api_;
};

namespace opt {  // option rows; `fallback`, the default, is spelled as TOML; nullptr: none

constexpr mekik_option option(std::uint32_t type, const char* key, const char* fallback, const char* doc) {
  mekik_option o{};
  o.key = key;
  o.type = type;
  o.fallback = fallback;
  o.min = 1;
  o.max = 0;
  o.doc = doc;
  return o;
}
constexpr mekik_option boolean(const char* key, const char* fallback, const char* doc) {
  return option(MEKIK_OPT_BOOL, key, fallback, doc);
}
constexpr mekik_option text(const char* key, const char* fallback, const char* doc) { return option(MEKIK_OPT_TEXT, key, fallback, doc); }
// Relative to the file that names it; the plugin gets it whole.
constexpr mekik_option path(const char* key, const char* fallback, const char* doc) { return option(MEKIK_OPT_PATH, key, fallback, doc); }
constexpr mekik_option number(std::uint32_t type, const char* key, const char* fallback, double lo, double hi, const char* doc) {
  mekik_option o = option(type, key, fallback, doc);
  o.min = lo;
  o.max = hi;
  return o;
}
constexpr mekik_option integer(const char* key, const char* fallback, double lo, double hi, const char* doc) {
  return number(MEKIK_OPT_INT, key, fallback, lo, hi, doc);
}
constexpr mekik_option real(const char* key, const char* fallback, double lo, double hi, const char* doc) {
  return number(MEKIK_OPT_REAL, key, fallback, lo, hi, doc);
}
constexpr mekik_option size(const char* key, const char* fallback, double lo, double hi, const char* doc) {  // "\"1GiB\"": bytes
  return number(MEKIK_OPT_SIZE, key, fallback, lo, hi, doc);
}
constexpr mekik_option duration(const char* key, const char* fallback, double lo, double hi, const char* doc) {  // "\"250ms\"": ns
  return number(MEKIK_OPT_DURATION, key, fallback, lo, hi, doc);
}
constexpr mekik_option choice(const char* key, const char* fallback, const char* choices, const char* doc) {  // "\"a\"", "a|b|c"
  mekik_option o = option(MEKIK_OPT_CHOICE, key, fallback, doc);
  o.choices = choices;
  return o;
}
constexpr mekik_option table(const char* key, std::span<const mekik_option> fields, const char* doc) {
  mekik_option o = option(MEKIK_OPT_TABLE, key, nullptr, doc);
  o.fields = fields.data();
  o.n_fields = static_cast<std::uint32_t>(fields.size());
  o.field_size = sizeof(mekik_option);
  return o;
}
constexpr mekik_option with(mekik_option o, std::uint32_t flags) {  // flags: mekik_option_flag
  o.flags |= flags;
  return o;
}
constexpr mekik_option required(mekik_option o) { return with(o, MEKIK_OPT_REQUIRED); }
constexpr mekik_option list(mekik_option o) { return with(o, MEKIK_OPT_LIST); }

}  // namespace opt

// ---- arrays ------------------------------------------------------------------------------------------------------------------------

// An array with a stride: the host's elements may be bigger than this header knows, in what it sends and in what it asks for. Never
// step through such an array with a pointer of its own.
template <class T>
struct Strided {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  T* data;
  std::size_t n, step;
  T& operator[](std::size_t i) const { return *reinterpret_cast<T*>(reinterpret_cast<Byte*>(data) + i * step); }
  std::size_t size() const { return n; }
  bool empty() const { return n == 0; }

  struct Iterator {
    using value_type = std::remove_const_t<T>;
    using difference_type = std::ptrdiff_t;
    const Strided* of;
    std::size_t i;
    T& operator*() const { return (*of)[i]; }
    Iterator& operator++() { return ++i, *this; }
    Iterator operator++(int) { return {of, i++}; }
    bool operator==(const Iterator& other) const { return i == other.i; }
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, n}; }
};

// ---- components --------------------------------------------------------------------------------------------------------------------

constexpr mekik_component component(const char* kind, const char* name, const char* version, const char* summary,
                                    std::span<const mekik_option> options, const void* table,
                                    const void* (*extension)(const char*) = nullptr) {
  mekik_component c{};
  c.struct_size = sizeof c;
  c.kind = kind;
  c.name = name;
  c.version = version;
  c.summary = summary;
  c.options = options.data();
  c.n_options = static_cast<std::uint32_t>(options.size());
  c.option_size = sizeof(mekik_option);
  c.table = table;
  c.extension = extension;
  return c;
}
// Of a class with static name, version, summary, and options where it has any.
template <class S>
constexpr mekik_component component_of(const char* kind, const void* table, const void* (*extension)(const char*) = nullptr) {
  if constexpr (requires { S::options; }) return component(kind, S::name, S::version, S::summary, S::options, table, extension);
  else return component(kind, S::name, S::version, S::summary, {}, table, extension);
}

// What create() hands out: the object of a component, and in debug builds (no NDEBUG) whether a call is inside of it.
template <class S>
struct Held {
  S object;
#ifndef NDEBUG
  std::atomic<bool> inside{false};
#endif
  template <class Handle, class... Args>
  static void make(Handle** out, Args&&... args) {
    *out = reinterpret_cast<Handle*>(new Held{S{std::forward<Args>(args)...}});
  }
  static Held& of(const void* handle) { return *static_cast<Held*>(const_cast<void*>(handle)); }
};
// The object for a call of the thread tag [engine]. Debug builds end the process when two of them overlap: then it is the host, or a test,
// that broke the rule.
template <class S>
class Turn {
 public:
  explicit Turn(const void* handle) : held_{Held<S>::of(handle)} {
#ifndef NDEBUG
    if (held_.inside.exchange(true)) {
      std::fprintf(stderr, "mekik: two [engine] calls on one instance of %s at a time\n", S::name);
      std::abort();
    }
#endif
  }
#ifndef NDEBUG
  ~Turn() { held_.inside = false; }
#endif
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  S* operator->() const { return &held_.object; }

 private:
  Held<S>& held_;
};

#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik

// Who made the plugin, and under which licence: define both before including mekik/plugin.hpp, or leave them empty.
#ifndef MEKIK_VENDOR
#define MEKIK_VENDOR ""
#endif
#ifndef MEKIK_LICENSE
#define MEKIK_LICENSE ""
#endif

// MEKIK_PLUGIN("org.example.mine", "1.0", mekik::scheduler<Mine>(), mekik::sink<Other>()): the entry of the library. One a library.
#define MEKIK_PLUGIN(ID, VERSION, ...)                                        \
  static constexpr mekik_component mekik_components[] = {__VA_ARGS__};        \
  extern "C" const mekik_plugin MEKIK_ENTRY = {                               \
      MEKIK_MAGIC,                                                            \
      sizeof(mekik_plugin),                                                   \
      MEKIK_ABI_MINOR,                                                        \
      0,                                                                      \
      ID,                                                                     \
      MEKIK_VENDOR,                                                           \
      VERSION,                                                                \
      MEKIK_LICENSE,                                                          \
      MEKIK_VERSION,                                                          \
      [](const mekik_host* h, mekik_str) -> mekik_status {                    \
        mekik::host = h;                                                      \
        return MEKIK_OK;                                                      \
      },                                                                      \
      [] { mekik::host = nullptr; },                                          \
      [] { return static_cast<std::uint32_t>(std::size(mekik_components)); }, \
      [](std::uint32_t i) { return i < std::size(mekik_components) ? &mekik_components[i] : nullptr; }}
