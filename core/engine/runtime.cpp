#include "engine/runtime.hpp"

namespace mekik::engine {

Result<std::vector<sample::Link>> sampler_links(plugin::Registry& registry, const config::Pipeline& pipeline) {
  std::vector<sample::Link> out;
  for (const auto& use : pipeline.samplers) {
    MEKIK_TRY(component, registry.find(use));
    out.push_back({component.raw, component.host, use.options ? plugin::abi_config(*use.options) : nullptr});
  }
  return out;
}

mekik_vocab vocab_view(const text::Tokenizer* tokenizer, std::uint32_t vocab) {
  mekik_vocab out{};
  out.struct_size = sizeof out;
  out.n = vocab;
  out.self = tokenizer;
  // A model's logits may be padded beyond its vocabulary: those ids have no text and are never meant.
  out.piece = [](const void* self, std::int32_t id) -> mekik_str {
    const auto* t = static_cast<const text::Tokenizer*>(self);
    if (t == nullptr || id < 0 || static_cast<std::uint32_t>(id) >= t->size()) return {nullptr, 0};
    const auto piece = t->piece(id);
    return {piece.data(), piece.size()};
  };
  out.flags = [](const void* self, std::int32_t id) -> std::uint32_t {
    const auto* t = static_cast<const text::Tokenizer*>(self);
    if (t == nullptr) return 0;
    if (id < 0 || static_cast<std::uint32_t>(id) >= t->size()) return MEKIK_TOKEN_UNUSED;
    return t->flags(id);
  };
  return out;
}

}  // namespace mekik::engine
