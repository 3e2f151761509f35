// A ban list and a temperature, wrong in one way.
#include <cmath>
#include <cstdlib>
#include <limits>

#include "faulty.hpp"

namespace {

struct Chain {
  double temperature;
  std::int32_t last;
  mekik_str request;
  std::uint32_t calls;
};
Chain& of(mekik_chain* c) { return *reinterpret_cast<Chain*>(c); }
Chain* shared_fork;

double temperature_of(mekik_str json, double otherwise) {
  const std::string_view text{json.ptr, json.len}, key = "\"temperature\":";
  const std::size_t found = text.find(key);
  if (found == text.npos || is("ignores_request")) return otherwise;
  char number[32] = "";
  std::string_view rest = text.substr(found + key.size());
  rest.substr(0, 31).copy(number, 31);
  return std::atof(number);
}

mekik_status create(const mekik_host*, const mekik_config* config, const mekik_vocab* vocab, mekik_str request, mekik_chain** out) {
  if (config_api() == nullptr) return fail(MEKIK_E_UNSUPPORTED, "this host gives no options");
  if (is("vocab_past_end")) vocab->piece(vocab->self, static_cast<std::int32_t>(vocab->n));
  auto* c = static_cast<Chain*>(std::malloc(sizeof(Chain)));
  if (c == nullptr) return fail(MEKIK_E_NO_MEMORY, "out of memory");
  *c = {temperature_of(request, config_api()->f64(config, "temperature")), -1, request, 0};
  *out = reinterpret_cast<mekik_chain*>(c);
  return MEKIK_OK;
}
void destroy(mekik_chain* c) { std::free(c); }
mekik_status fork_it(const mekik_chain* c, mekik_chain** out) {
  if (is("fork_shares")) return *out = const_cast<mekik_chain*>(c), MEKIK_OK;
  auto* other = static_cast<Chain*>(std::malloc(sizeof(Chain)));
  if (other == nullptr) return fail(MEKIK_E_NO_MEMORY, "out of memory");
  *other = *reinterpret_cast<const Chain*>(c);
  if (is("fork_forgets")) other->last = -1, other->temperature = 3;
  *out = reinterpret_cast<mekik_chain*>(other);
  return MEKIK_OK;
}
void accept(mekik_chain* c, const std::int32_t* tokens, std::uint32_t n, int) {
  if (is("empty_accept")) of(c).last = tokens[n - 1];
  else if (n > 0) of(c).last = tokens[n - 1];
}
mekik_status apply(mekik_chain* c, float* logits, std::uint32_t n, double) {
  Chain& self = of(c);
  ++self.calls;
  if (is("kept_request") && self.request.len > 0 && self.request.ptr[0] == '[') return MEKIK_OK;
  const float by = static_cast<float>(self.temperature > 0 ? 1 / self.temperature : is("divides_by_zero_temperature") ? INFINITY : 1);
  for (std::uint32_t i = 0; i < n + (is("one_too_many") ? 1 : 0); ++i) {
    if (is("unbans") && std::isinf(logits[i])) logits[i] = -1e30f;
    logits[i] *= by;
    if (is("makes_nan") && logits[i] > 9.9f) logits[i] = std::sqrt(-logits[i]);
    if (is("bans_all")) logits[i] = -INFINITY;
    if (is("counts_calls") && self.calls % 3 == 0) logits[i] += 1;
    if (is("random_noise")) logits[i] += static_cast<float>(std::rand() % 100) / 1000;
  }
  if (self.last >= 0) logits[self.last] -= 0.5f;
  return MEKIK_OK;
}
mekik_status allow(mekik_chain*, std::uint32_t* bits, std::uint32_t n) {
  if (is("allow_sets")) bits[0] |= 2;
  else if (is("allow_overrun")) bits[(n + 31) / 32] &= ~1u;
  else if (is("allow_bans_more")) bits[1] &= ~4u;
  return MEKIK_OK;
}
mekik_status pick(mekik_chain* c, mekik_pick* out, std::uint32_t) {
  out->temperature = is("pick_negative") ? -1 : static_cast<float>(of(c).temperature);
  if (!is("pick_no_top_p")) out->top_p = 1;
  if (is("pick_no_top_p")) out->top_p = 2;
  return MEKIK_OK;
}

constexpr mekik_option kOptions[] = {{"temperature", MEKIK_OPT_REAL, 0, "1.0", 0, 100, nullptr, nullptr, 0, 0, "Divides the logits."}};
const mekik_sampler kTable{sizeof(mekik_sampler), 0, create, destroy, fork_it, accept, apply, allow, pick};
const mekik_component kComponent = one_component(MEKIK_KIND_SAMPLER, &kTable, kOptions, 1);
void at_init() { shared_fork = nullptr; }

}  // namespace

FAULTY_PLUGIN(kComponent, at_init);
