// A sampler as somebody outside of the tree writes one: keeps the token with the lowest id that is not banned.
#include <mekik/plugin.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <span>

namespace {

class First {
 public:
  static constexpr const char* name = "first";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Keeps one token.";
  static constexpr std::array options{mekik::opt::integer("keep", "65", 0, 1000000, "The token that stays.")};

  First(mekik::Config config, const mekik_vocab&, std::string_view) : keep_{static_cast<std::size_t>(config.i64("keep"))} {}
  void accept(std::span<const std::int32_t>, bool) {}
  void apply(std::span<float> logits, double) {
    for (std::size_t i = 0; i < logits.size(); ++i)
      if (i != keep_) logits[i] = -std::numeric_limits<float>::infinity();
  }

 private:
  std::size_t keep_;
};

}  // namespace

MEKIK_PLUGIN("org.example.first", "1.0", mekik::sampler<First>());
