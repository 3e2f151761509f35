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

Result<Instance<mekik_drafter, mekik_draft>> make_drafter(plugin::Registry& registry, const config::Use& use, const mekik_vocab& vocab) {
  MEKIK_TRY(component, registry.find(use));
  const auto* table = &component.table<mekik_drafter>();
  mekik_draft* self = nullptr;
  const auto* options = use.options ? plugin::abi_config(*use.options) : nullptr;
  MEKIK_CHECK_OK(plugin::to_status(table->create(component.host, options, &vocab, &self), use.kind + " " + use.name));
  return Instance<mekik_drafter, mekik_draft>{table, self};
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

// A value without bytes is none, and a cache without a slower tier says that it has none.
bool has_tier(const mekik_cache_policy& table, mekik_cache* cache) {
  if (table.has == nullptr || table.store == nullptr || table.fetch == nullptr || table.cancel == nullptr) return false;
  const mekik_key key{};
  const auto code = table.store(
      cache, &key, nullptr, 0, [](void*, mekik_status) {}, nullptr);
  plugin::take_failure();
  return code != MEKIK_E_UNSUPPORTED;
}

}  // namespace mekik::engine
