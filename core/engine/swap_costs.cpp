#include "engine/swap_costs.hpp"

namespace mekik::engine {
namespace {

constexpr double kKept = 0.8;                           // of what was seen before, at each transfer
constexpr std::uint64_t kForgottenNs = 60'000'000'000;  // after so long without one
constexpr double kBegins = 0.8, kEnds = 1.25;           // cost over that of computing, at which swapping begins to pay and ends to

}  // namespace

void TransferRate::seen(std::uint64_t bytes, std::uint64_t took_ns, std::uint64_t now_ns) {
  if (bytes == 0) return;
  if (now_ns > last_ns_ && now_ns - last_ns_ > kForgottenNs) bytes_ = ns_ = 0;
  bytes_ = kKept * bytes_ + static_cast<double>(bytes);
  ns_ = kKept * ns_ + static_cast<double>(took_ns);
  last_ns_ = now_ns;
}

double TransferRate::ns_per_byte(std::uint64_t now_ns) const {
  if (bytes_ == 0 || (now_ns > last_ns_ && now_ns - last_ns_ > kForgottenNs)) return unknown_;
  return ns_ / bytes_;
}

bool SwapCosts::pays(std::uint64_t bytes, std::uint32_t tokens, std::uint64_t token_ns, bool did, std::uint64_t now_ns) const {
  if (bytes == 0 || tokens == 0) return false;
  if (token_ns == 0) return true;
  const double moving = static_cast<double>(bytes) * (write_.ns_per_byte(now_ns) + read_.ns_per_byte(now_ns));
  const double computing = static_cast<double>(token_ns) * tokens;
  return moving < computing * (did ? kEnds : kBegins);
}

}  // namespace mekik::engine
