// A sampler for tests: the answer is the tokens that the request's field `force` lists, then whatever the rest of the chain likes.
// {"force": "10813,116,218"} makes any model say those three, so that what happens to text can be tested on real vocabularies.
#include <array>
#include <charconv>
#include <limits>
#include <mekik/plugin.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace {

// The text of `"force":"..."` in the request, which holds nothing but this sampler's own field and those of other samplers.
std::string_view forced(std::string_view request) {
  constexpr std::string_view key = "\"force\":\"";
  const std::size_t at = request.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = request.substr(at + key.size());
  return rest.substr(0, rest.find('"'));
}

class Force {
 public:
  static constexpr const char* name = "force";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Makes the answer begin with the given tokens. For tests.";
  static constexpr std::array options{mekik::opt::text("force", "\"\"", "Token ids, separated by commas.")};

  Force(mekik::Config, const mekik_vocab& vocab, std::string_view request) {
    std::string_view list = forced(request);
    while (!list.empty()) {
      std::uint32_t id = 0;
      const auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), id);
      if (error != std::errc{} || id >= vocab.n) throw mekik::Error{MEKIK_E_INVALID, "force must be token ids separated by commas"};
      tokens_.push_back(id);
      list.remove_prefix(static_cast<std::size_t>(end - list.data()));
      if (!list.empty()) list.remove_prefix(1);
    }
  }
  void accept(std::span<const std::int32_t> tokens, bool prompt) {
    if (!prompt) made_ += tokens.size();
  }
  void apply(std::span<float> logits, double) const {
    if (made_ >= tokens_.size()) return;
    for (float& logit : logits) logit = -std::numeric_limits<float>::infinity();
    logits[tokens_[made_]] = 0;
  }

 private:
  std::vector<std::uint32_t> tokens_;
  std::size_t made_ = 0;
};

}  // namespace

MEKIK_PLUGIN("mekik.sampler.force", "1.0", mekik::sampler<Force>());
