#include "sample/chain.hpp"

#include <algorithm>
#include <limits>

#include "plugin/registry.hpp"

namespace mekik::sample {

Result<Chain> Chain::create(const std::vector<Link>& links, const mekik_vocab& vocab, std::string_view request_json) {
  Chain out;
  for (const auto& link : links) {
    mekik_chain* made = nullptr;
    const auto code = link.table().create(link.host, link.config, &vocab, plugin::abi_str(request_json), &made);
    MEKIK_CHECK_OK(plugin::to_status(code, std::string{"sampler "} + link.component->name));
    out.instances_.push_back({&link.table(), link.component->name, {made, Destroy{&link.table()}}});
  }
  return out;
}

Result<Chain> Chain::fork() const {
  Chain out;
  for (const auto& i : instances_) {
    if (i.table->fork == nullptr) return unsupported(std::string{"sampler "} + i.name + " cannot be copied");
    mekik_chain* made = nullptr;
    MEKIK_CHECK_OK(plugin::to_status(i.table->fork(i.chain.get(), &made), std::string{"sampler "} + i.name));
    out.instances_.push_back({i.table, i.name, {made, Destroy{i.table}}});
  }
  return out;
}

void Chain::accept(std::span<const std::int32_t> tokens, bool prompt) {
  for (auto& i : instances_) i.table->accept(i.chain.get(), tokens.data(), static_cast<std::uint32_t>(tokens.size()), prompt ? 1 : 0);
}

Status Chain::apply(std::span<float> logits, double uniform) {
  for (auto& i : instances_) {
    const auto code = i.table->apply(i.chain.get(), logits.data(), static_cast<std::uint32_t>(logits.size()), uniform);
    MEKIK_CHECK_OK(plugin::to_status(code, std::string{"sampler "} + i.name));
    // NaN counts as left: what makes it is told by who draws.
    constexpr float kBanned = -std::numeric_limits<float>::infinity();
    if (std::all_of(logits.begin(), logits.end(), [](float l) { return l == kBanned; }))
      return internal_error(std::string{"sampler "} + i.name +
                            ": every token is banned: no token can follow under the request's constraints");
  }
  return {};
}

}  // namespace mekik::sample
