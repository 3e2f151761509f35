// mekik/plugin.hpp - header-only C++20 comfort over mekik/plugin.h. Nothing here crosses the binary boundary.
//
// A plugin is one shared library: classes for its components, and at the end
//   MEKIK_PLUGIN("org.example.mine", "1.0", mekik::scheduler<Mine>())
// Functions of a component may throw mekik::Error (or anything): guard() turns it into a status and the text of mekik_host.fail.
#pragma once
#include <mekik/plugin.h>
#include <mekik/version.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mekik {

#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {  // several plugins in one program: each keeps a state of its own
#endif

inline const mekik_host* host = nullptr;  // set by init; one per shared library, symbols are hidden

inline std::string_view view(mekik_str s) { return {s.ptr, s.len}; }
inline mekik_str str(std::string_view s) { return {s.data(), s.size()}; }

struct Error : std::runtime_error {
  mekik_status code;
  Error(mekik_status status, const std::string& message) : std::runtime_error{message}, code{status} {}
};

inline mekik_status report(mekik_status code, std::string_view why) { return host->fail(host, code, str(why)); }

// Every callback goes through here: no exception leaves the library.
template <class F>
mekik_status guard(F&& f) noexcept {
  try {
    f();
    return MEKIK_OK;
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

// A service table, or nullptr if the host lacks it.
template <class T>
const T* service(const char* id) {
  return static_cast<const T*>(host->service(host, id));
}

inline void write_log(std::int32_t level, std::string_view component, std::string_view message) {
  if (const auto* table = service<mekik_log>(MEKIK_LOG)) table->write(host, level, str(component), str(message));
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

// The options of this instance, already checked against the declared rows.
class Config {
 public:
  explicit Config(const mekik_config* config) : config_{config}, api_{service<mekik_config_api>(MEKIK_CONFIG)} {}
  std::int64_t i64(const char* key) const { return api_->i64(config_, key); }
  bool boolean(const char* key) const { return api_->i64(config_, key) != 0; }
  double f64(const char* key) const { return api_->f64(config_, key); }
  std::string_view text(const char* key) const { return view(api_->text(config_, key)); }
  std::uint32_t length(const char* key) const { return api_->length(config_, key); }
  Config table(const char* key, std::uint32_t i) const { return Config{api_->table(config_, key, i)}; }
  // A complaint that only the plugin can make; the host adds file, line and column.
  [[noreturn]] void reject(const char* key, const std::string& why) const {
    api_->reject(config_, key, str(why));
    throw Error{MEKIK_E_INVALID, why};
  }

 private:
  const mekik_config* config_;
  const mekik_config_api* api_;
};

namespace opt {  // option rows; `fallback` is spelled as TOML

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
constexpr mekik_option size(const char* key, const char* fallback, double lo, double hi, const char* doc) {
  return number(MEKIK_OPT_SIZE, key, fallback, lo, hi, doc);
}
constexpr mekik_option duration(const char* key, const char* fallback, double lo, double hi, const char* doc) {
  return number(MEKIK_OPT_DURATION, key, fallback, lo, hi, doc);
}
constexpr mekik_option choice(const char* key, const char* fallback, const char* choices, const char* doc) {
  mekik_option o = option(MEKIK_OPT_CHOICE, key, fallback, doc);
  o.choices = choices;
  return o;
}
constexpr mekik_option with(mekik_option o, std::uint32_t flags) {
  o.flags |= flags;
  return o;
}

}  // namespace opt

// An array with a stride: the host's elements may be bigger than this header knows, in what it sends and in what it asks for.
template <class T>
struct Strided {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  T* data;
  std::size_t n, step;
  T& operator[](std::size_t i) const { return *reinterpret_cast<T*>(reinterpret_cast<Byte*>(data) + i * step); }
  std::size_t size() const { return n; }
};

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

// S: static name, version, summary, options (an array); S(Config); uint32_t plan(view, seqs, out): how many of out are used;
// optional void observe(view, step_ns). A sequence with max_drafts > 0 may get drafts, of the blocks that are left when everyone else
// has had theirs.
template <class S>
struct SchedulerTable {
  static void observe(mekik_sched* s, const mekik_step_view* v, std::uint64_t step_ns) {
    if constexpr (requires(S & x) { x.observe(*v, step_ns); }) reinterpret_cast<S*>(s)->observe(*v, step_ns);
  }
  static constexpr mekik_scheduler table{
      sizeof(mekik_scheduler),
      0,
      [](const mekik_host*, const mekik_config* c, mekik_sched** out) {
        return guard([&] { *out = reinterpret_cast<mekik_sched*>(new S{Config{c}}); });
      },
      [](mekik_sched* s) { delete reinterpret_cast<S*>(s); },
      [](mekik_sched* s, const mekik_step_view* v, mekik_choice* out, std::uint32_t size, std::uint32_t* n) {
        return guard([&] {
          *n = reinterpret_cast<S*>(s)->plan(*v, Strided<const mekik_seq_view>{v->seqs, v->n_seqs, v->seq_size},
                                             Strided<mekik_choice>{out, *n, size});
        });
      },
      observe};
};
template <class S>
constexpr mekik_component scheduler() {
  return component(MEKIK_KIND_SCHEDULER, S::name, S::version, S::summary, S::options, &SchedulerTable<S>::table);
}

// S: S(Config, const mekik_vocab&, std::string_view request_json), copyable (fork); accept(span<const int32_t>, bool prompt);
// apply(span<float> logits, double uniform). The device path is not offered by this wrapper.
template <class S>
struct SamplerTable {
  static constexpr mekik_sampler table{
      sizeof(mekik_sampler),
      0,
      [](const mekik_host*, const mekik_config* c, const mekik_vocab* v, mekik_str request, mekik_chain** out) {
        return guard([&] { *out = reinterpret_cast<mekik_chain*>(new S{Config{c}, *v, view(request)}); });
      },
      [](mekik_chain* s) { delete reinterpret_cast<S*>(s); },
      [](const mekik_chain* s, mekik_chain** out) {
        return guard([&] { *out = reinterpret_cast<mekik_chain*>(new S{*reinterpret_cast<const S*>(s)}); });
      },
      [](mekik_chain* s, const std::int32_t* tokens, std::uint32_t n, int prompt) {
        reinterpret_cast<S*>(s)->accept(std::span<const std::int32_t>{tokens, n}, prompt != 0);
      },
      [](mekik_chain* s, float* logits, std::uint32_t vocab, double uniform) {
        return guard([&] { reinterpret_cast<S*>(s)->apply(std::span<float>{logits, vocab}, uniform); });
      },
      nullptr,
      nullptr};
};
template <class S>
constexpr mekik_component sampler() {
  return component(MEKIK_KIND_SAMPLER, S::name, S::version, S::summary, S::options, &SamplerTable<S>::table);
}

// S: S(Config); victims(nodes, bytes, chosen) -> how many; touched(key, now). With a slower tier also has(key, bytes, expected_ns) -> bool,
// store(key, data, bytes, done, ctx) and fetch(key, data, bytes, done, ctx), which throw Error where they do not begin, and cancel(ctx);
// store throws MEKIK_E_UNSUPPORTED where an instance has none. Optional: ask(span<const mekik_key>, bool chain, Strided<mekik_known> out,
// done, ctx).
template <class S>
struct CacheTable {
  static constexpr bool tier = requires(S & s, const mekik_key& key, std::uint64_t& n) { s.has(key, n, n); };
  static int has(mekik_cache* s, const mekik_key* key, std::uint64_t* bytes, std::uint64_t* expected_ns) {
    if constexpr (tier) {
      bool found = false;
      const auto code = guard([&] { found = reinterpret_cast<S*>(s)->has(*key, *bytes, *expected_ns); });
      return code == MEKIK_OK && found ? 1 : 0;
    }
    return 0;
  }
  static mekik_status store(mekik_cache* s, const mekik_key* key, const void* data, std::uint64_t bytes, mekik_done done, void* ctx) {
    return guard([&] {
      if constexpr (tier) reinterpret_cast<S*>(s)->store(*key, data, bytes, done, ctx);
    });
  }
  static mekik_status fetch(mekik_cache* s, const mekik_key* key, void* data, std::uint64_t bytes, mekik_done done, void* ctx) {
    return guard([&] {
      if constexpr (tier) reinterpret_cast<S*>(s)->fetch(*key, data, bytes, done, ctx);
    });
  }
  static void cancel(mekik_cache* s, void* ctx) {
    if constexpr (tier) reinterpret_cast<S*>(s)->cancel(ctx);
  }
  static constexpr bool asks = requires(S & s, const mekik_key* keys, Strided<mekik_known> out, mekik_done done, void* ctx) {
    s.ask(std::span{keys, 1}, true, out, done, ctx);
  };
  static mekik_status ask(mekik_cache* s, const mekik_key* keys, std::uint32_t n, std::uint32_t chain, mekik_known* out, std::uint32_t size,
                          mekik_done done, void* ctx) {
    return guard([&] {
      if constexpr (asks) reinterpret_cast<S*>(s)->ask(std::span{keys, n}, chain != 0, Strided<mekik_known>{out, n, size}, done, ctx);
    });
  }
  static constexpr mekik_cache_policy table{
      sizeof(mekik_cache_policy),
      0,
      [](const mekik_host*, const mekik_config* c, mekik_cache** out) {
        return guard([&] { *out = reinterpret_cast<mekik_cache*>(new S{Config{c}}); });
      },
      [](mekik_cache* s) { delete reinterpret_cast<S*>(s); },
      [](mekik_cache* s, const mekik_key* key, std::uint64_t now_ns) { reinterpret_cast<S*>(s)->touched(*key, now_ns); },
      [](mekik_cache* s, const mekik_node* nodes, std::uint32_t n, std::uint32_t size, std::uint64_t bytes, std::uint32_t* chosen) {
        return reinterpret_cast<S*>(s)->victims(Strided<const mekik_node>{nodes, n, size}, bytes, chosen);
      },
      tier ? &has : nullptr,
      tier ? &store : nullptr,
      tier ? &fetch : nullptr,
      tier ? &cancel : nullptr,
      asks ? &ask : nullptr};
};
template <class S>
constexpr mekik_component cache() {
  return component(MEKIK_KIND_CACHE, S::name, S::version, S::summary, S::options, &CacheTable<S>::table);
}

// S: S(Config, const mekik_vocab&); propose(asks, outs): fills tokens, probs and n of each; optional verified(seq, run, accepted) and
// forget(seq, tenant, span<const int32_t> tokens, n_prompt). Optional static wants.
template <class S>
struct DrafterTable {
  static constexpr std::uint32_t wants() {
    if constexpr (requires { S::wants; }) return S::wants;
    return 0;
  }
  static void verified(mekik_draft* s, std::uint64_t seq, std::uint32_t run, std::uint32_t accepted) {
    if constexpr (requires(S & x) { x.verified(seq, run, accepted); }) reinterpret_cast<S*>(s)->verified(seq, run, accepted);
  }
  static void forget(mekik_draft* s, std::uint64_t seq, std::uint64_t tenant, const std::int32_t* tokens, std::uint32_t n,
                     std::uint32_t n_prompt) {
    const std::span<const std::int32_t> all{tokens, n};
    if constexpr (requires(S & x) { x.forget(seq, tenant, all, n_prompt); }) reinterpret_cast<S*>(s)->forget(seq, tenant, all, n_prompt);
  }
  static constexpr mekik_drafter table{
      sizeof(mekik_drafter),
      wants(),
      [](const mekik_host*, const mekik_config* c, const mekik_vocab* v, mekik_draft** out) {
        return guard([&] { *out = reinterpret_cast<mekik_draft*>(new S{Config{c}, *v}); });
      },
      [](mekik_draft* s) { delete reinterpret_cast<S*>(s); },
      [](mekik_draft* s, const mekik_draft_ask* asks, std::uint32_t n, std::uint32_t ask_size, mekik_draft_out* out,
         std::uint32_t out_size) {
        return guard([&] {
          reinterpret_cast<S*>(s)->propose(Strided<const mekik_draft_ask>{asks, n, ask_size}, Strided<mekik_draft_out>{out, n, out_size});
        });
      },
      verified,
      forget};
};
template <class S>
constexpr mekik_component drafter() {
  return component(MEKIK_KIND_DRAFTER, S::name, S::version, S::summary, S::options, &DrafterTable<S>::table);
}

// S: S(Config); publish(now_ns, samples); optional event(name, now_ns, fields); optional
// scrape(accept, samples, write) -> const char* content type (static), where write(std::string_view) emits the body.
template <class S>
struct SinkTable {
  using Samples = Strided<const mekik_sample>;
  static mekik_status scrape(mekik_sink* s, mekik_str accept, const mekik_sample* samples, std::uint32_t n, std::uint32_t size,
                             void (*write)(void*, mekik_str), void* ctx, mekik_str* content_type) {
    const auto emit = [&](std::string_view body) { write(ctx, str(body)); };
    if constexpr (requires(S & x) { x.scrape(view(accept), Samples{}, emit); }) {
      return guard([&] { *content_type = str(reinterpret_cast<S*>(s)->scrape(view(accept), Samples{samples, n, size}, emit)); });
    } else {
      return MEKIK_E_UNSUPPORTED;
    }
  }
  static void event(mekik_sink* s, const char* name, std::uint64_t now_ns, const mekik_field* fields, std::uint32_t n, std::uint32_t size) {
    using Fields = Strided<const mekik_field>;
    if constexpr (requires(S & x) { x.event(std::string_view{}, now_ns, Fields{}); })
      reinterpret_cast<S*>(s)->event(std::string_view{name}, now_ns, Fields{fields, n, size});
  }
  static constexpr bool kScrapes = requires(S & x) {
    x.scrape(std::string_view{}, Samples{}, [](std::string_view) {});
  };
  static constexpr mekik_sink_api table{
      sizeof(mekik_sink_api),
      0,
      [](const mekik_host*, const mekik_config* c, mekik_sink** out) {
        return guard([&] { *out = reinterpret_cast<mekik_sink*>(new S{Config{c}}); });
      },
      [](mekik_sink* s) { delete reinterpret_cast<S*>(s); },
      [](mekik_sink* s, std::uint64_t now_ns, const mekik_sample* samples, std::uint32_t n, std::uint32_t size) {
        reinterpret_cast<S*>(s)->publish(now_ns, Samples{samples, n, size});
      },
      event,
      kScrapes ? scrape : nullptr};
};
template <class S>
constexpr mekik_component sink() {
  return component(MEKIK_KIND_SINK, S::name, S::version, S::summary, S::options, &SinkTable<S>::table);
}

#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik

// Loaders, schemes and backends fill their tables themselves and pass component(...).
#define MEKIK_PLUGIN(ID, VERSION, ...)                                        \
  static constexpr mekik_component mekik_components[] = {__VA_ARGS__};        \
  extern "C" const mekik_plugin MEKIK_ENTRY = {                               \
      MEKIK_MAGIC,                                                            \
      sizeof(mekik_plugin),                                                   \
      MEKIK_ABI_MINOR,                                                        \
      0,                                                                      \
      ID,                                                                     \
      "mekik",                                                                \
      VERSION,                                                                \
      "Apache-2.0",                                                           \
      MEKIK_VERSION,                                                          \
      [](const mekik_host* h, mekik_str) -> mekik_status {                    \
        mekik::host = h;                                                      \
        return MEKIK_OK;                                                      \
      },                                                                      \
      [] { mekik::host = nullptr; },                                          \
      [] { return static_cast<std::uint32_t>(std::size(mekik_components)); }, \
      [](std::uint32_t i) { return i < std::size(mekik_components) ? &mekik_components[i] : nullptr; }}
