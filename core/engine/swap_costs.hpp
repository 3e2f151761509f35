// Whether a sequence that must give up its blocks should have them stored in the slower tier, or compute them again.
#pragma once
#include <cstdint>

namespace mekik::engine {

// What moving a byte takes, by the last transfers: large ones count for more.
class TransferRate {
 public:
  explicit TransferRate(double unknown_ns_per_byte) : unknown_{unknown_ns_per_byte} {}
  void seen(std::uint64_t bytes, std::uint64_t took_ns, std::uint64_t now_ns);
  // The guess again when nothing was seen for long: a tier that was slow once may be quick now.
  double ns_per_byte(std::uint64_t now_ns) const;

 private:
  double unknown_, bytes_ = 0, ns_ = 0;
  std::uint64_t last_ns_ = 0;
};

class SwapCosts {
 public:
  void wrote(std::uint64_t bytes, std::uint64_t took_ns, std::uint64_t now_ns) { write_.seen(bytes, took_ns, now_ns); }
  void read(std::uint64_t bytes, std::uint64_t took_ns, std::uint64_t now_ns) { read_.seen(bytes, took_ns, now_ns); }
  // Whether writing and reading so many bytes takes less time than computing so many tokens, of which one takes token_ns (0: not known
  // yet, then it does). Who `did` pay before goes on to until it clearly does not, and the other way round.
  bool pays(std::uint64_t bytes, std::uint32_t tokens, std::uint64_t token_ns, bool did, std::uint64_t now_ns) const;

 private:
  TransferRate write_{0.25}, read_{1};
};

}  // namespace mekik::engine
