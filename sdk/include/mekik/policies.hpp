// mekik/policies.hpp - scheduler, sampler, cache, drafter and sink from a class. Included by mekik/plugin.hpp; see there.
//
// "create" of each table is the constructor; it may use every service, and may refuse by throwing (Config::reject where an option is at
// fault). One pipeline has one instance of a scheduler, a cache, a drafter and of each sink; a sampler has one a sequence. Calls marked
// [engine] on one instance never overlap, so they need no lock; those marked [any] come from any thread, also while others run.
#pragma once
#include <mekik/base.hpp>

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {
#endif

// S: S(Config).
// std::uint32_t plan(const mekik_step_view& view, Strided<const mekik_seq_view> seqs, Strided<mekik_choice> out)   [engine]
//   Who runs in the next step, and how many tokens of each. out has room for every sequence; returns how many of it are used. Whoever is
//   not listed keeps its blocks and waits. mekik/scheduling.hpp fills a step in a given order, which is all that most policies need.
//   Limits: the tokens of all together are at most view.max_tokens, the sequences at most view.max_seqs; what needs more blocks than
//   view.free_blocks gets fewer tokens. What breaks a limit is cut back by the host, and logged once.
//   One that decodes (prompt_left 0) gets 1 token; a prompt gets any part of prompt_left. A plan in which nobody runs is for a view in
//   which nobody can.
// void observe(const mekik_step_view& view, std::uint64_t step_ns)   [engine], optional
//   The same view after its step was run, and how long that took.
template <class S>
struct SchedulerTable {
  static void observe(mekik_sched* s, const mekik_step_view* v, std::uint64_t step_ns) {
    if constexpr (requires(S & x) { x.observe(*v, step_ns); }) quietly([&] { Turn<S>{s}.operator->()->observe(*v, step_ns); });
  }
  static constexpr mekik_scheduler table{
      sizeof(mekik_scheduler),
      0,
      [](const mekik_host*, const mekik_config* c, mekik_sched** out) { return guard([&] { Held<S>::make(out, Config{c}); }); },
      [](mekik_sched* s) { delete &Held<S>::of(s); },
      [](mekik_sched* s, const mekik_step_view* v, mekik_choice* out, std::uint32_t size, std::uint32_t* n) {
        return guard([&] {
          *n = Turn<S> {
            s
            } -> plan(*v, Strided<const mekik_seq_view>{v->seqs, v->n_seqs, v->seq_size}, Strided<mekik_choice>{out, *n, size});
        });
      },
      observe};
};
template <class S>
constexpr mekik_component scheduler() {
  return component_of<S>(MEKIK_KIND_SCHEDULER, &SchedulerTable<S>::table);
}

// One link of the chain over the logits. S: S(Config, const mekik_vocab&, std::string_view request_json), copyable.   create: [any]
//   request_json: the fields of the request that are named like this component's options, already checked against their rows;
//   mekik/request.hpp reads them. Each option of a sampler is so a field of requests, too. The vocabulary outlives the instance.
// void apply(std::span<float> logits, double uniform)   [engine]
//   logits: one for each token of the vocabulary, as the links before left them; -inf bans a token. uniform in [0, 1), made from the
//   request's seed and the token's position, is the only randomness to use: then the same request gets the same answer again.
// void accept(std::span<const std::int32_t> tokens, bool prompt)   [engine]
//   Tokens that are now part of the sequence: all of the prompt in one call or several, then each token of the answer.
// The copy is made for drafts by a model, and lives beside its original.
template <class S>
struct SamplerTable {
  static constexpr mekik_sampler table{
      sizeof(mekik_sampler),
      0,
      [](const mekik_host*, const mekik_config* c, const mekik_vocab* v, mekik_str request, mekik_chain** out) {
        return guard([&] { Held<S>::make(out, Config{c}, *v, view(request)); });
      },
      [](mekik_chain* s) { delete &Held<S>::of(s); },
      [](const mekik_chain* s, mekik_chain** out) { return guard([&] { Held<S>::make(out, std::as_const(*Turn<S>{s}.operator->())); }); },
      [](mekik_chain* s, const std::int32_t* tokens, std::uint32_t n, int prompt) {
        quietly([&] { Turn<S>{s}.operator->()->accept(std::span<const std::int32_t>{tokens, n}, prompt != 0); });
      },
      [](mekik_chain* s, float* logits, std::uint32_t vocab, double uniform) {
        return guard([&] {
          Turn<S> { s } -> apply(std::span<float>{logits, vocab}, uniform);
        });
      },
      nullptr,
      nullptr};
};
template <class S>
constexpr mekik_component sampler() {
  return component_of<S>(MEKIK_KIND_SAMPLER, &SamplerTable<S>::table);
}

// S: S(Config).
// std::uint32_t victims(Strided<const mekik_node> nodes, std::uint64_t bytes, std::uint32_t* chosen)   [engine]
//   Writes indices of nodes that free at least `bytes` together, the first to go first, into chosen, which has room for all; returns how
//   many. nodes: what nobody uses and nothing else kept depends on. bytes 0 asks what need not be kept at all: 0 for most policies. The
//   same nodes must give the same victims.
// void touched(const mekik_key&, std::uint64_t now_ns)   [engine], optional: a kept node was used again (nodes count uses, too).
// A slower tier below the backend's memory, as a whole or not at all: bool has(key, bytes, expected_ns) [any], fills the two; store(key,
// data, bytes, done, ctx) and fetch(key, data, bytes, done, ctx) [engine], which return at once, and throw Error where they do not begin
// (then done is not called); cancel(ctx) [any]. Optional: ask(std::span<const mekik_key>, bool chain, Strided<mekik_known> out, done,
// ctx) [engine] in place of many has(). What each promises stands at mekik_cache_policy in mekik/plugin.h.
template <class S>
struct CacheTable {
  static constexpr bool tier = requires(S & s, const mekik_key& key, std::uint64_t& n) { s.has(key, n, n); };
  static void touched(mekik_cache* s, const mekik_key* key, std::uint64_t now_ns) {
    if constexpr (requires(S & x) { x.touched(*key, now_ns); }) quietly([&] { Turn<S>{s}.operator->()->touched(*key, now_ns); });
  }
  static int has(mekik_cache* s, const mekik_key* key, std::uint64_t* bytes, std::uint64_t* expected_ns) {
    bool found = false;
    if constexpr (tier) static_cast<void>(guard([&] { found = Held<S>::of(s).object.has(*key, *bytes, *expected_ns); }));
    return found ? 1 : 0;
  }
  static mekik_status store(mekik_cache* s, const mekik_key* key, const void* data, std::uint64_t bytes, mekik_done done, void* ctx) {
    return guard([&] {
      if constexpr (tier) Turn<S> {
          s
          } -> store(*key, data, bytes, done, ctx);
    });
  }
  static mekik_status fetch(mekik_cache* s, const mekik_key* key, void* data, std::uint64_t bytes, mekik_done done, void* ctx) {
    return guard([&] {
      if constexpr (tier) Turn<S> {
          s
          } -> fetch(*key, data, bytes, done, ctx);
    });
  }
  static void cancel(mekik_cache* s, void* ctx) {
    if constexpr (tier) quietly([&] { Held<S>::of(s).object.cancel(ctx); });
  }
  static constexpr bool asks = requires(S & s, const mekik_key* keys, Strided<mekik_known> out, mekik_done done, void* ctx) {
    s.ask(std::span{keys, 1}, true, out, done, ctx);
  };
  static mekik_status ask(mekik_cache* s, const mekik_key* keys, std::uint32_t n, std::uint32_t chain, mekik_known* out, std::uint32_t size,
                          mekik_done done, void* ctx) {
    return guard([&] {
      if constexpr (asks) Turn<S> {
          s
          } -> ask(std::span{keys, n}, chain != 0, Strided<mekik_known>{out, n, size}, done, ctx);
    });
  }
  static constexpr mekik_cache_policy table{
      sizeof(mekik_cache_policy),
      0,
      [](const mekik_host*, const mekik_config* c, mekik_cache** out) { return guard([&] { Held<S>::make(out, Config{c}); }); },
      [](mekik_cache* s) { delete &Held<S>::of(s); },
      touched,
      [](mekik_cache* s, const mekik_node* nodes, std::uint32_t n, std::uint32_t size, std::uint64_t bytes, std::uint32_t* chosen) {
        std::uint32_t chose = 0;
        quietly([&] { chose = Turn<S>{s}.operator->()->victims(Strided<const mekik_node>{nodes, n, size}, bytes, chosen); });
        return chose;
      },
      tier ? &has : nullptr,
      tier ? &store : nullptr,
      tier ? &fetch : nullptr,
      tier ? &cancel : nullptr,
      asks ? &ask : nullptr,
      [](mekik_cache* s) -> std::uint64_t {
        if constexpr (requires(const S& x) { x.host_bytes(); }) return Held<S>::of(s).object.host_bytes();
        return 0;
      }};
};
template <class S>
constexpr mekik_component cache() {
  return component_of<S>(MEKIK_KIND_CACHE, &CacheTable<S>::table);
}

// A draft kind: its plugins load into the engine version that they are built for only. S: S(Config, const mekik_vocab&).
// void propose(Strided<const mekik_draft_ask> asks, Strided<mekik_draft_out> outs)   [engine]
//   For each sequence that is asked for, tokens that may come next, one after the other: up to ask.room of them into out.tokens, for each
//   how likely it is if those before it are right into out.probs, and their number into out.n (0 when called). What is proposed never
//   changes an answer, only how fast it comes.
// void verified(seq, std::uint32_t run, std::uint32_t accepted)   [engine], optional: what became of the last proposal.
// void forget(seq, tenant, std::span<const std::int32_t> tokens, std::uint32_t n_prompt)   [engine], optional: a sequence has ended.
// Optional: static std::uint32_t wants (mekik_draft_want).
template <class S>
struct DrafterTable {
  static constexpr std::uint32_t wants() {
    if constexpr (requires { S::wants; }) return S::wants;
    return 0;
  }
  static void verified(mekik_draft* s, std::uint64_t seq, std::uint32_t run, std::uint32_t accepted) {
    if constexpr (requires(S & x) { x.verified(seq, run, accepted); })
      quietly([&] { Turn<S>{s}.operator->()->verified(seq, run, accepted); });
  }
  static void forget(mekik_draft* s, std::uint64_t seq, std::uint64_t tenant, const std::int32_t* tokens, std::uint32_t n,
                     std::uint32_t n_prompt) {
    const std::span<const std::int32_t> all{tokens, n};
    if constexpr (requires(S & x) { x.forget(seq, tenant, all, n_prompt); })
      quietly([&] { Turn<S>{s}.operator->()->forget(seq, tenant, all, n_prompt); });
  }
  static constexpr mekik_drafter table{
      sizeof(mekik_drafter),
      wants(),
      [](const mekik_host*, const mekik_config* c, const mekik_vocab* v, mekik_draft** out) {
        return guard([&] { Held<S>::make(out, Config{c}, *v); });
      },
      [](mekik_draft* s) { delete &Held<S>::of(s); },
      [](mekik_draft* s, const mekik_draft_ask* asks, std::uint32_t n, std::uint32_t ask_size, mekik_draft_out* out,
         std::uint32_t out_size) {
        return guard([&] {
          Turn<S> { s } -> propose(Strided<const mekik_draft_ask>{asks, n, ask_size}, Strided<mekik_draft_out>{out, n, out_size});
        });
      },
      verified,
      forget};
};
template <class S>
constexpr mekik_component drafter() {
  return component_of<S>(MEKIK_KIND_DRAFTER, &DrafterTable<S>::table);
}

// S: S(Config). At least one of:
// void publish(std::uint64_t now_ns, Strided<const mekik_sample>)   [engine], once a second: all series as they are.
// void event(std::string_view name, std::uint64_t now_ns, Strided<const mekik_field>)   [any]
//   Something happened: "request_finished", with a field for each number of the finished request. It must return soon.
// const char* scrape(std::string_view accept, Strided<const mekik_sample>, write)   [any]
//   The body of GET /metrics, by calls of write(std::string_view); returns its content type, a string that stays.
// now_ns is of the monotonic clock.
template <class S>
struct SinkTable {
  using Samples = Strided<const mekik_sample>;
  static void publish(mekik_sink* s, std::uint64_t now_ns, const mekik_sample* samples, std::uint32_t n, std::uint32_t size) {
    if constexpr (requires(S & x) { x.publish(now_ns, Samples{}); })
      quietly([&] { Turn<S>{s}.operator->()->publish(now_ns, Samples{samples, n, size}); });
  }
  static mekik_status scrape(mekik_sink* s, mekik_str accept, const mekik_sample* samples, std::uint32_t n, std::uint32_t size,
                             void (*write)(void*, mekik_str), void* ctx, mekik_str* content_type) {
    const auto emit = [&](std::string_view body) { write(ctx, str(body)); };
    if constexpr (requires(S & x) { x.scrape(view(accept), Samples{}, emit); }) {
      return guard([&] { *content_type = str(Held<S>::of(s).object.scrape(view(accept), Samples{samples, n, size}, emit)); });
    } else {
      return MEKIK_E_UNSUPPORTED;
    }
  }
  static void event(mekik_sink* s, const char* name, std::uint64_t now_ns, const mekik_field* fields, std::uint32_t n, std::uint32_t size) {
    using Fields = Strided<const mekik_field>;
    if constexpr (requires(S & x) { x.event(std::string_view{}, now_ns, Fields{}); })
      quietly([&] { Held<S>::of(s).object.event(std::string_view{name}, now_ns, Fields{fields, n, size}); });
  }
  static constexpr bool kScrapes = requires(S & x) {
    x.scrape(std::string_view{}, Samples{}, [](std::string_view) {});
  };
  static constexpr mekik_sink_api table{
      sizeof(mekik_sink_api),
      0,
      [](const mekik_host*, const mekik_config* c, mekik_sink** out) { return guard([&] { Held<S>::make(out, Config{c}); }); },
      [](mekik_sink* s) { delete &Held<S>::of(s); },
      publish,
      event,
      kScrapes ? scrape : nullptr};
};
template <class S>
constexpr mekik_component sink() {
  return component_of<S>(MEKIK_KIND_SINK, &SinkTable<S>::table);
}

#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
