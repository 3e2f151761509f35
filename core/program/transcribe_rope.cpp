// Rotary scaling turned around: a group of keys, or a tensor of divisors, becomes the other format's.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/text.hpp"
#include "program/transcriber.hpp"

namespace mekik::program {

namespace {

struct Pair {
  const char *gguf, *hf;
};
// The keys of a scaling group that mean the same.
constexpr Pair kSame[] = {{"type", "rope_type"},
                          {"factor", "factor"},
                          {"original_context_length", "original_max_position_embeddings"},
                          {"attn_factor", "attention_factor"},
                          {"yarn_attn_factor", "attention_factor"},
                          {"yarn_beta_fast", "beta_fast"},
                          {"yarn_beta_slow", "beta_slow"},
                          {"low_freq_factor", "low_freq_factor"},
                          {"high_freq_factor", "high_freq_factor"}};

const Datum* find(const std::vector<std::pair<std::string, Datum>>& group, std::string_view key) {
  for (const auto& [name, value] : group)
    if (name == key) return &value;
  return nullptr;
}

constexpr const char* kProportional = "proportional";
constexpr float kStill = 1e30f;  // the divisor of a pair that does not turn

constexpr double kTurn = 2 * std::numbers::pi;

// What low and high frequency factors make these divisors; both 0: none.
struct Blend {
  double factor = 0, low = 0, high = 0;
};
Blend blend_of(const std::vector<float>& divisors, double base, double length) {
  Blend out;
  const double dim = 2.0 * static_cast<double>(divisors.size());
  out.factor = *std::max_element(divisors.begin(), divisors.end());
  std::vector<std::pair<double, double>> points;  // length / wavelength, how much of the frequency is kept
  for (std::size_t i = 0; i < divisors.size(); ++i) {
    const double turns = length / kTurn * std::pow(base, -2.0 * static_cast<double>(i) / dim);
    const double kept = (1 / static_cast<double>(divisors[i]) - 1 / out.factor) / (1 - 1 / out.factor);
    if (kept > 1e-4 && kept < 1 - 1e-4) points.emplace_back(turns, kept);
  }
  if (points.size() < 2) {
    out.low = 1;
    out.high = 4;
    return out;
  }
  const auto [x1, y1] = points.front();
  const auto [x2, y2] = points.back();
  const double slope = (y2 - y1) / (x2 - x1);
  out.low = std::round((x1 - y1 / slope) * 1000) / 1000;
  out.high = std::round((x1 + (1 - y1) / slope) * 1000) / 1000;
  return out;
}

}  // namespace

// A tensor of divisors as the parameters of the recipe that made it. False: no such recipe did.
bool Transcriber::recover_scaling(const RopeRow& row, std::uint32_t tensor, json::object& config) {
  auto divisors = read_(tensor);
  if (!divisors.ok()) wrong(row.origin, divisors.status().text);
  RopeRequest request;
  request.dim = whole(*row.find("dim")->direct, {}, 2, "dim of a rotary table");
  request.base = rope_number(row, "base").value_or(0);
  const std::size_t pairs = static_cast<std::size_t>(request.dim / 2);
  if (divisors->size() != pairs) return false;
  const std::string group = spell_in(target_, row.find("scaling")->names[target_][0], std::nullopt, {});
  const auto still = std::find_if(divisors->begin(), divisors->end(), [](float d) { return d > 1e20f; });
  const float first = divisors->front();
  if (still != divisors->end() && std::all_of(divisors->begin(), still, [&](float d) { return d == first; }) &&
      std::all_of(still, divisors->end(), [](float d) { return d > 1e20f; })) {
    const auto turning = static_cast<double>(still - divisors->begin());
    put(config, group + ".rope_type", Datum::of(std::string{kProportional}));
    put(config, group + ".partial_rotary_factor", Datum::of(turning / static_cast<double>(pairs)));
    if (turning > 0 && first != 1) put(config, group + ".factor", Datum::of(static_cast<double>(first)));
    return true;
  }
  for (const double length : {8192.0, rope_number(row, "original").value_or(rope_number(row, "context").value_or(8192.0))}) {
    const Blend blend = blend_of(*divisors, request.base, length);
    request.scaling = {{"rope_type", Datum::of(std::string{kByWavelength})},
                       {"factor", Datum::of(blend.factor)},
                       {"low_freq_factor", Datum::of(blend.low)},
                       {"high_freq_factor", Datum::of(blend.high)},
                       {"original_max_position_embeddings", Datum::of(static_cast<std::int64_t>(length))}};
    const auto recipe = rope_recipe(request);
    if (!recipe.ok()) continue;
    bool equal = true;
    for (std::size_t i = 0; i < pairs; ++i) {
      const double plain = std::pow(request.base, -2.0 * static_cast<double>(i) / static_cast<double>(request.dim));
      equal = equal && std::fabs(plain / recipe->frequencies[i] / static_cast<double>((*divisors)[i]) - 1) < 1e-5;
    }
    if (!equal) continue;
    for (const auto& [key, value] : request.scaling) put(config, group + "." + key, value);
    return true;
  }
  return false;
}

// Two lists of divisors: in config.json part of the group, in GGUF tensors, and the magnitude beside them.
void Transcriber::long_rope(const RopeRow& row, const TableValue& table, const std::vector<std::pair<std::string, Datum>>& group,
                            const std::string& place, Transcript& out) {
  const bool to_hf = kFormats[target_] == std::string_view{"hf"};
  if (to_hf) put(out.config, place + ".rope_type", Datum::of(std::string{kLongRope}));
  for (const auto& [key, list] : {std::pair{"short", "short_factor"}, std::pair{"long", "long_factor"}}) {
    const RopeKey* named = row.find(key);
    const WeightRow* divisors = named != nullptr && named->direct ? page_.weight(named->direct->root.text) : nullptr;
    if (to_hf) {
      const auto tensor = rope_weight(row, key, table.dim);
      if (!tensor) wrong(row.origin, std::string{key} + " of a rotary table is missing");
      auto values = read_(*tensor);
      if (!values.ok()) wrong(row.origin, values.status().text);
      std::vector<Datum> numbers;
      for (const float value : *values) numbers.push_back(Datum::of(static_cast<double>(value)));
      put(out.config, place + "." + list, Datum::of(std::move(numbers)));
      continue;
    }
    const Datum* numbers = find(group, list);
    if (divisors == nullptr || divisors->sources[target_].empty() || numbers == nullptr || numbers->type != Datum::Type::list)
      wrong(row.origin, "rotary scaling of kind " + std::string{kLongRope} + " has no place in GGUF on page " + page_.name);
    Transcript::Tensor tensor;
    tensor.name = spell_in(target_, divisors->sources[target_][0].from, std::nullopt, {});
    tensor.small = true;
    tensor.shape = {table.dim / 2};
    for (const Datum& number : numbers->list) tensor.host.push_back(static_cast<float>(number.as_real()));
    out.tensors.push_back(std::move(tensor));
  }
  const RopeKey* factor = row.find("attn_factor");
  if (!to_hf && factor != nullptr && !factor->names[target_].empty())
    put(out.config, spell_in(target_, factor->names[target_][0], std::nullopt, {}), Datum::of(table.magnitude));
  if (to_hf && rope_number(row, "attn_factor")) put(out.config, place + ".attention_factor", Datum::of(table.magnitude));
}

void Transcriber::rope(const std::string& name, const RopeRow& row, Transcript& out) {
  const RopeKey* scaling = row.find("scaling");
  const bool to_hf = kFormats[target_] == std::string_view{"hf"};
  std::vector<std::pair<std::string, Datum>> group;
  if (scaling != nullptr)
    for (const NameText& names : scaling->names[format_])
      for (const std::string& spelled : spell(names, std::nullopt))
        if (group.empty()) group = config_group(spelled);
  const bool has_place = scaling != nullptr && !scaling->names[target_].empty();
  const std::string place = has_place ? spell_in(target_, scaling->names[target_][0], std::nullopt, {}) : std::string{};
  const Datum* kind = find(group, to_hf ? "type" : "rope_type");
  if (kind == nullptr) kind = find(group, "type");
  const std::string word = kind != nullptr && kind->type == Datum::Type::text ? kind->text : std::string{};
  if (to_hf && has_place && place.find("rope_parameters") != std::string::npos)
    put(out.config, place + ".rope_type", Datum::of(std::string{"default"}));
  const TableValue table = tables_[this->table(name, row.origin)];
  const RopeKey* factors = row.find("factors");
  const WeightRow* divided = factors != nullptr && factors->direct ? page_.weight(factors->direct->root.text) : nullptr;
  if (has_place && (word == kLongRope || word == "su" || (to_hf && row.find("short") != nullptr && rope_weight(row, "short", table.dim))))
    return long_rope(row, table, group, place, out);
  if (to_hf && table.divisors) {
    if (!has_place || !recover_scaling(row, *table.divisors, out.config))
      wrong(row.origin, "rotary table " + mekik::quoted(name) + ": tensor " + mekik::quoted(meta_.tensors[*table.divisors].name) +
                            " holds divisors that no scaling of config.json gives");
    return;
  }
  if (!to_hf && (word == kByWavelength || word == kProportional)) {
    if (divided == nullptr || divided->sources[target_].empty())
      wrong(row.origin,
            "rotary table " + mekik::quoted(name) + ": scaling of kind " + word + " has no place in GGUF on page " + page_.name);
    const double base = rope_number(row, "base").value_or(0), dim = static_cast<double>(table.dim);
    Transcript::Tensor tensor;
    tensor.name = spell_in(target_, divided->sources[target_][0].from, std::nullopt, {});
    tensor.small = true;
    tensor.shape = {table.dim / 2};
    for (std::size_t i = 0; i < static_cast<std::size_t>(table.dim / 2); ++i) {
      const double plain = std::pow(base, -2.0 * static_cast<double>(i) / dim), turns = static_cast<double>(table.numbers[i]);
      tensor.host.push_back(turns == 0 ? kStill : static_cast<float>(plain / turns));
    }
    out.tensors.push_back(std::move(tensor));
    if (const Datum* length = find(group, "original_max_position_embeddings"))  // for the way back
      put(out.config, place + ".original_context_length", *length);
    return;
  }
  if (word.empty() || word == "default" || word == "none" || !has_place) return;
  for (const auto& [key, value] : group)
    for (const Pair& pair : kSame) {
      if (key != (to_hf ? pair.gguf : pair.hf) && !(to_hf ? false : key == "type" && pair.gguf == std::string_view{"type"})) continue;
      put(out.config, place + "." + (to_hf ? pair.hf : pair.gguf), value);
      break;
    }
}

void Transcriber::ropes(Transcript& out) {
  for (const auto& [name, row] : page_.ropes)
    if (std::any_of(tables_.begin(), tables_.end(), [&, &n = name](const TableValue& table) { return table.name == n; }))
      rope(name, row, out);
}

}  // namespace mekik::program
