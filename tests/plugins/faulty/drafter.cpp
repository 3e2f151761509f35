// Proposes the last token again, wrong in one way.
#include <cstdlib>

#include "faulty.hpp"

namespace {

struct Draft {
  const std::int32_t* tokens;
  std::uint32_t n, calls;
};
std::uint32_t all_calls;

mekik_status create(const mekik_host*, const mekik_config*, const mekik_vocab*, mekik_draft** out) {
  auto* d = static_cast<Draft*>(std::calloc(1, sizeof(Draft)));
  if (d == nullptr) return fail(MEKIK_E_NO_MEMORY, "out of memory");
  *out = reinterpret_cast<mekik_draft*>(d);
  return MEKIK_OK;
}
void destroy(mekik_draft* d) { std::free(d); }
mekik_status propose(mekik_draft* self, const mekik_draft_ask* asks, std::uint32_t n, std::uint32_t ask_size, mekik_draft_out* outs,
                     std::uint32_t out_size) {
  auto& d = *reinterpret_cast<Draft*>(self);
  ++d.calls, ++all_calls;
  for (std::uint32_t i = 0; i < n; ++i) {
    const mekik_draft_ask& a = at(asks, i, ask_size);
    mekik_draft_out& o = at(outs, i, out_size);
    const std::uint32_t room = is("ignores_room") ? 4 : a.room;
    for (std::uint32_t j = 0; j < room; ++j) {
      o.tokens[j] = is("token_out_of_vocab") && j == 2 ? static_cast<std::int32_t>(a.vocab) : a.tokens[a.n_tokens - 1];
      if (!is("no_probs")) o.probs[j] = is("probs_above_one") ? 1.5f : is("probs_by_other") ? static_cast<float>(all_calls % 7) / 7 : 0.5f;
    }
    o.n = is("says_more") ? room + 1 : room;
    if (is("kept_tokens") && d.tokens != nullptr && d.tokens[0] < 0) o.n = 0;
    d.tokens = a.tokens;
  }
  return MEKIK_OK;
}
void verified(mekik_draft*, std::uint64_t seq, std::uint32_t, std::uint32_t) {
  if (is("unknown_sequence") && seq > 1000) std::abort();
}
void forget(mekik_draft*, std::uint64_t, std::uint64_t, const std::int32_t* tokens, std::uint32_t n, std::uint32_t) {
  if (is("reads_past_end")) all_calls += static_cast<std::uint32_t>(tokens[n]);
}

const mekik_drafter kTable{sizeof(mekik_drafter), 0, create, destroy, propose, verified, forget};
const mekik_component kComponent = one_component<mekik_drafter>(MEKIK_KIND_DRAFTER, &kTable, nullptr, 0);
void at_init() {}

}  // namespace

FAULTY_PLUGIN(kComponent, at_init);
