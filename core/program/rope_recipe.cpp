#include "program/rope_recipe.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/text.hpp"

namespace mekik::program {

namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// Every key of a scaling group that some recipe knows; both spellings of those that have two.
constexpr std::array<const char*, 32> kKeys{"rope_type",
                                            "type",
                                            "factor",
                                            "rope_theta",
                                            "partial_rotary_factor",
                                            "original_max_position_embeddings",
                                            "original_context_length",
                                            "max_position_embeddings",
                                            "attention_factor",
                                            "attn_factor",
                                            "yarn_attn_factor",
                                            "yarn_ext_factor",
                                            "beta_fast",
                                            "yarn_beta_fast",
                                            "beta_slow",
                                            "yarn_beta_slow",
                                            "mscale",
                                            "mscale_all_dim",
                                            "yarn_log_multiplier",
                                            "truncate",
                                            "short_factor",
                                            "short_mscale",
                                            "long_mscale",
                                            "long_factor",
                                            "low_freq_factor",
                                            "high_freq_factor",
                                            "finetuned",
                                            "mrope_section",
                                            "mrope_interleaved",
                                            "section",
                                            "extrapolation_factor",
                                            "name"};

class Recipe {
 public:
  explicit Recipe(const RopeRequest& request) : r_{request} {}

  Result<RopeRecipe> make() {
    if (r_.dim < 2 || r_.dim > 65536) return invalid("dim must be a number from 2 to 65536, not " + std::to_string(r_.dim));
    if (!(r_.base > 1)) return invalid("base must be larger than 1");
    MEKIK_CHECK_OK(check_keys());
    kind_ = kind();
    for (std::int64_t i = 0; 2 * i < r_.dim; ++i)
      out_.frequencies.push_back(std::pow(r_.base, -2.0 * static_cast<double>(i) / static_cast<double>(r_.dim)));
    for (const Kind& known : kKinds)
      if (kind_ == known.name) {
        MEKIK_CHECK_OK((this->*known.apply)());
        return out_;
      }
    return unsupported("rotary scaling of kind " + mekik::quoted(kind_) +
                       " is not known; known are linear, dynamic, yarn, longrope, llama3, proportional");
  }

 private:
  const Datum* find(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      for (const auto& [key, value] : r_.scaling)
        if (key == name && value.type != Datum::Type::none) return &value;
    return nullptr;
  }
  std::optional<double> number(std::initializer_list<const char*> names) const {
    const Datum* value = find(names);
    if (value == nullptr || !value->number()) return std::nullopt;
    return value->as_real();
  }
  Status check_keys() const {
    for (const auto& [key, value] : r_.scaling) {
      if (!rope_key_known(key)) return unsupported("the rotary scaling has a key " + mekik::quoted(key) + " that no recipe knows");
      if (key == "yarn_ext_factor" || key == "extrapolation_factor")
        if (value.number() && value.as_real() != 1) return unsupported("rotary scaling with " + key + " other than 1 is not known");
    }
    return {};
  }
  std::string kind() const {
    const Datum* stored = find({"rope_type", "type"});
    std::string name = stored != nullptr && stored->type == Datum::Type::text ? stored->text : std::string{};
    if (name.empty()) {
      const auto factor = number({"factor"});
      name = r_.flat && factor && *factor != 1 && *factor != 0 ? "linear" : "default";
      if (!r_.flat && factor && *factor != 1) name = "(none, but a factor)";
      if (name == "default" && r_.has_short_long) name = "longrope";
    }
    if (name == "none" || name == "mrope") name = "default";  // mrope: only the axes differ
    if (name == "su") name = "longrope";
    return name;
  }
  Result<double> positive(std::initializer_list<const char*> names) const {
    const auto value = number(names);
    if (!value) return invalid(kind_ + " scaling needs " + *names.begin());
    if (!(*value > 0) || !std::isfinite(*value)) return invalid(kind_ + " scaling: " + std::string{*names.begin()} + " must be positive");
    return *value;
  }
  Result<double> original() const {
    const auto stored = number({"original_max_position_embeddings", "original_context_length"});
    const double value = r_.original ? *r_.original : stored ? *stored : r_.context;
    if (!(value > 0) || !std::isfinite(value)) return invalid(kind_ + " scaling needs the original context length");
    return value;
  }
  std::optional<double> attention_factor() const {
    if (const auto stored = number({"attention_factor", "attn_factor", "yarn_attn_factor"})) return stored;
    return r_.attention_factor;
  }

  Status linear() {
    MEKIK_TRY(factor, positive({"factor"}));
    for (double& f : out_.frequencies) f /= factor;
    return {};
  }
  // The base grows with the length beyond the model's own; chosen once, by the planned length.
  Status dynamic() {
    MEKIK_TRY(factor, positive({"factor"}));
    if (!(r_.context > 0)) return invalid("dynamic scaling needs the model's context length");
    const double length = std::max(r_.planned, r_.context);
    const double dim = static_cast<double>(r_.dim);
    if (r_.dim < 4) return invalid("dynamic scaling needs dim of at least 4");
    const double base = r_.base * std::pow(factor * length / r_.context - (factor - 1), dim / (dim - 2));
    for (std::size_t i = 0; i < out_.frequencies.size(); ++i) out_.frequencies[i] = std::pow(base, -2.0 * static_cast<double>(i) / dim);
    out_.reach = factor * r_.context;
    out_.choice = "dynamic " + std::to_string(static_cast<std::int64_t>(length));
    return {};
  }
  double mscale(double factor, double by) const { return factor <= 1 ? 1.0 : 0.1 * by * std::log(factor) + 1.0; }
  // Peng et al. 2023: high frequencies stay, low ones are divided by the factor, a ramp between.
  Status yarn() {
    MEKIK_TRY(length, original());
    // Without a factor it is how much longer the context is than the original one.
    const double factor = number({"factor"}).value_or(r_.context > 0 ? r_.context / length : 0);
    if (!(factor > 0) || !std::isfinite(factor)) return invalid("yarn scaling: factor must be positive");
    const double dim = static_cast<double>(r_.dim);
    const auto pair_of = [&](double rotations) { return dim * std::log(length / (rotations * kTurn)) / (2 * std::log(r_.base)); };
    const auto nonzero = [&](std::initializer_list<const char*> names, double otherwise) {
      const auto stored = number(names);
      return stored && *stored > 0 ? *stored : otherwise;
    };
    double low = pair_of(nonzero({"beta_fast", "yarn_beta_fast"}, 32)), high = pair_of(nonzero({"beta_slow", "yarn_beta_slow"}, 1));
    const Datum* stored_truncate = find({"truncate"});
    bool truncate = r_.truncate;
    if (stored_truncate != nullptr && !truth(*stored_truncate, truncate).empty())
      return invalid("yarn scaling: truncate must be a boolean");
    if (truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, dim - 1);
    if (low == high) high += 0.001;
    for (std::size_t i = 0; i < out_.frequencies.size(); ++i) {
      const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
      double& f = out_.frequencies[i];
      f = f / factor * ramp + f * (1 - ramp);
    }
    const auto m = number({"mscale"}), m_all = number({"mscale_all_dim"});
    // GGUF's yarn_log_multiplier: the magnitude cancels, the page scales the scores instead.
    if (number({"yarn_log_multiplier"})) out_.magnitude = 1;
    else if (const auto given = attention_factor()) out_.magnitude = *given;
    else if (m && m_all && *m != 0 && *m_all != 0) out_.magnitude = mscale(factor, *m) / mscale(factor, *m_all);
    else out_.magnitude = mscale(factor, 1);
    return {};
  }
  // By wavelength: short ones stay, long ones are divided by the factor, those between are blended.
  Status by_wavelength() {
    MEKIK_TRY(factor, positive({"factor"}));
    MEKIK_TRY(low, positive({"low_freq_factor"}));
    MEKIK_TRY(high, positive({"high_freq_factor"}));
    MEKIK_TRY(length, original());
    if (!(high > low)) return invalid(kind_ + " scaling: high_freq_factor must be larger than low_freq_factor");
    for (double& f : out_.frequencies) {
      const double wavelength = kTurn / f;
      if (wavelength > length / low) {
        f /= factor;
      } else if (wavelength >= length / high) {
        const double smooth = (length / wavelength - low) / (high - low);
        f = (1 - smooth) * f / factor + smooth * f;
      }
    }
    return {};
  }
  // One list of divisors up to the original length, another beyond it.
  Status longrope() {
    MEKIK_TRY(length, original());
    const bool is_long = (r_.planned > 0 ? r_.planned : r_.context) > length;
    out_.choice = is_long ? "longrope long" : "longrope short";
    const Datum* factors = is_long ? find({"long_factor"}) : find({"short_factor"});
    if (factors != nullptr) {
      if (factors->type != Datum::Type::list || factors->list.size() != out_.frequencies.size())
        return invalid("longrope scaling needs " + std::to_string(out_.frequencies.size()) + " numbers in long_factor and short_factor");
      for (std::size_t i = 0; i < out_.frequencies.size(); ++i) {
        if (!factors->list[i].number() || !(factors->list[i].as_real() > 0))
          return invalid("longrope scaling: factors must be positive numbers");
        out_.frequencies[i] /= factors->list[i].as_real();
      }
    } else if (r_.has_short_long) {
      out_.divide = is_long ? RopeRecipe::Divide::by_long : RopeRecipe::Divide::by_short;
    } else {
      return invalid("longrope scaling needs long_factor and short_factor, or the tensors of them");
    }
    const auto own = is_long ? number({"long_mscale"}) : number({"short_mscale"});  // of Phi 3.5 MoE
    const auto given = own ? own : attention_factor();
    const double stretch = number({"factor"}).value_or(r_.context > 0 ? r_.context / length : 1);
    out_.magnitude = given ? *given : stretch <= 1 ? 1.0 : std::sqrt(1 + std::log(stretch) / std::log(length));
    return {};
  }

  // A part of the head turns, at the frequencies of the whole head; the other pairs stay.
  Status proportional() {
    const double share = number({"partial_rotary_factor"}).value_or(1), factor = number({"factor"}).value_or(1);
    if (!(share >= 0) || share > 1 || !(factor > 0)) return invalid("proportional scaling: a share from 0 to 1, a positive factor");
    const auto turning = static_cast<std::size_t>(std::floor(std::floor(share * static_cast<double>(r_.dim)) / 2));
    for (std::size_t i = 0; i < out_.frequencies.size(); ++i) out_.frequencies[i] = i < turning ? out_.frequencies[i] / factor : 0;
    return {};
  }

  Status plain() { return {}; }

  struct Kind {
    const char* name;
    Status (Recipe::*apply)();
  };
  static const Kind kKinds[7];

  const RopeRequest& r_;
  RopeRecipe out_;
  std::string kind_;
};

const Recipe::Kind Recipe::kKinds[7] = {
    {"default", &Recipe::plain},     {"linear", &Recipe::linear},        {"dynamic", &Recipe::dynamic},          {"yarn", &Recipe::yarn},
    {"longrope", &Recipe::longrope}, {"llama3", &Recipe::by_wavelength}, {"proportional", &Recipe::proportional}};

}  // namespace

bool rope_key_known(std::string_view key) { return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end(); }

Result<RopeRecipe> rope_recipe(const RopeRequest& request) { return Recipe{request}.make(); }

}  // namespace mekik::program
