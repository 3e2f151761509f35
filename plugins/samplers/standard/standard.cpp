// The usual request fields. Order: logit_bias, repetition_penalty, frequency_penalty, presence_penalty, temperature, min_p, top_k, top_p
// (vLLM's; as there, temperature below 1e-5 is greedy and what follows it does not matter).
#include <mekik/plugin.hpp>

#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <unordered_map>
#include <vector>

#include "filters.hpp"

namespace {

constexpr double kGreedyBelow = 1e-5;

using mekik::opt::integer;
using mekik::opt::real;

struct Settings {
  double temperature, top_p, min_p, repetition, presence, frequency;
  std::int64_t top_k, repeat_last_n;
  std::vector<std::pair<std::int32_t, float>> bias;
};

[[noreturn]] void refuse(const std::string& why) { throw mekik::Error{MEKIK_E_INVALID, why}; }

double number(const boost::json::value& v) {
  return v.is_double() ? v.get_double() : v.is_int64() ? static_cast<double>(v.get_int64()) : static_cast<double>(v.get_uint64());
}

std::vector<std::pair<std::int32_t, float>> parse_bias(std::string_view text, std::uint32_t vocab) {
  std::vector<std::pair<std::int32_t, float>> out;
  if (text.empty()) return out;
  boost::system::error_code error;
  const auto value = boost::json::parse(text, error);
  if (error || !value.is_object()) refuse("logit_bias must be an object of token ids and numbers, like {\"198\": -100}");
  for (const auto& [key, bias] : value.get_object()) {
    std::int32_t id = -1;
    const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (code != std::errc{} || end != key.data() + key.size() || id < 0 || static_cast<std::uint32_t>(id) >= vocab)
      refuse("logit_bias names the token '" + std::string{key.substr(0, 40)} + "'; ids are 0 to " + std::to_string(vocab - 1));
    if (!bias.is_number() || !(number(bias) >= -100 && number(bias) <= 100))
      refuse("logit_bias of token " + std::to_string(id) + " must be a number from -100 to 100");
    out.emplace_back(id, static_cast<float>(number(bias)));
  }
  return out;
}

// What a call needs for its time only. One for all answers of a thread: it grows as large as the vocabulary.
struct Scratch {
  std::vector<standard::Candidate> candidates;
  standard::TopP top_p;
};
Scratch& scratch() {
  thread_local Scratch memory;
  return memory;
}

class Standard {
 public:
  static constexpr const char* name = "standard";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Temperature, top-k, top-p, min-p, penalties and biases, as requests give them.";
  static constexpr std::array options{
      real("temperature", "1.0", 0, 1e9, "Divides the logits; 0 (or less than 0.00001) always takes the likeliest token."),
      integer("top_k", "0", -1, 2147483647, "Keeps the k likeliest tokens; 0 and -1 keep all."),
      real("top_p", "1.0", 0, 1, "Keeps the likeliest tokens that together reach this probability, at least one; 1 keeps all."),
      real("min_p", "0.0", 0, 1, "Drops tokens less likely than this times the likeliest; 0 drops none."),
      real("repetition_penalty", "1.0", 1e-6, 1e6,
           "Divides positive and multiplies negative logits of tokens in the prompt or the answer."),
      real("presence_penalty", "0.0", -2, 2, "Subtracted from the logits of tokens that are in the answer."),
      real("frequency_penalty", "0.0", -2, 2, "Subtracted from a token's logit once for each time it is in the answer."),
      integer("repeat_last_n", "-1", -1, 2147483647, "Penalties look at this many last tokens; 0 turns them off, -1 takes all."),
      mekik::opt::text("logit_bias", "\"\"", "JSON object of token ids and numbers from -100 to 100 that are added to their logits."),
  };

  Standard(mekik::Config config, const mekik_vocab& vocab, std::string_view request) {
    const auto parsed = boost::json::parse(request);
    const auto& fields = parsed.as_object();
    const auto real_of = [&](const char* key) { return fields.contains(key) ? number(fields.at(key)) : config.f64(key); };
    const auto int_of = [&](const char* key) {
      return fields.contains(key) ? static_cast<std::int64_t>(number(fields.at(key))) : config.i64(key);
    };
    settings_.temperature = real_of("temperature");
    settings_.top_k = int_of("top_k");
    settings_.top_p = real_of("top_p");
    settings_.min_p = real_of("min_p");
    settings_.repetition = real_of("repetition_penalty");
    settings_.presence = real_of("presence_penalty");
    settings_.frequency = real_of("frequency_penalty");
    settings_.repeat_last_n = int_of("repeat_last_n");
    settings_.bias = fields.contains("logit_bias") ? parse_bias(fields.at("logit_bias").as_string(), vocab.n) : own_bias(config, vocab.n);
    penalises_ = settings_.repeat_last_n != 0 && (settings_.repetition != 1 || settings_.presence != 0 || settings_.frequency != 0);
  }

  void accept(std::span<const std::int32_t> tokens, bool prompt) {
    if (!penalises_) return;
    for (const auto id : tokens) {
      history_.push_back({id, prompt});
      auto& count = counts_[id];
      ++(prompt ? count.prompt : count.answer);
      if (settings_.repeat_last_n < 0 || history_.size() - first_ <= static_cast<std::size_t>(settings_.repeat_last_n)) continue;
      const auto& oldest = history_[first_++];
      auto& left = counts_[oldest.id];
      --(oldest.prompt ? left.prompt : left.answer);
      if (left.prompt + left.answer == 0) counts_.erase(oldest.id);
    }
  }

  void apply(std::span<float> logits, double) {
    for (const auto& [id, bias] : settings_.bias)
      if (static_cast<std::size_t>(id) < logits.size()) logits[static_cast<std::size_t>(id)] += bias;
    if (penalises_) penalise(logits);
    if (settings_.temperature < kGreedyBelow) return standard::greedy(logits);
    if (settings_.temperature != 1) standard::temper(logits, settings_.temperature);
    standard::keep_min_p(logits, settings_.min_p);
    if (settings_.top_k > 0) standard::keep_top_k(logits, static_cast<std::uint32_t>(settings_.top_k), scratch().candidates);
    standard::keep_top_p(logits, settings_.top_p, scratch().top_p);
  }

 private:
  struct Seen {
    std::int32_t id;
    bool prompt;
  };
  struct Count {
    std::uint32_t prompt = 0, answer = 0;
  };

  // The pipeline's: a mistake in it is told with its place.
  static std::vector<std::pair<std::int32_t, float>> own_bias(const mekik::Config& config, std::uint32_t vocab) {
    try {
      return parse_bias(config.text("logit_bias"), vocab);
    } catch (const mekik::Error& error) {
      config.reject("logit_bias", error.what());
    }
  }

  void penalise(std::span<float> logits) const {
    for (const auto& [id, count] : counts_) {
      if (static_cast<std::size_t>(id) >= logits.size()) continue;
      float& l = logits[static_cast<std::size_t>(id)];
      double value = l;
      if (settings_.repetition != 1) value = value > 0 ? value / settings_.repetition : value * settings_.repetition;
      if (count.answer > 0) value -= settings_.frequency * count.answer + settings_.presence;
      l = static_cast<float>(value);
    }
  }

  Settings settings_{};
  bool penalises_ = false;
  std::vector<Seen> history_;
  std::size_t first_ = 0;  // history_ before it has left the window
  std::unordered_map<std::int32_t, Count> counts_;
};

}  // namespace

MEKIK_PLUGIN("mekik.sampler.standard", "1.0", mekik::sampler<Standard>());
