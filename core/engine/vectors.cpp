#include "engine/vectors.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/json.hpp"

namespace mekik::engine {

namespace {

// `{arch}.classifier.output_labels` of a GGUF file: the place of "yes".
std::uint32_t yes_of(const json::value& config) {
  const json::value* arch = json::find(config, "general.architecture");
  if (arch == nullptr || !arch->is_string()) return 1;
  const json::value* labels = json::find(config, std::string{std::string_view{arch->get_string()}} + ".classifier.output_labels");
  if (labels == nullptr || !labels->is_array()) return 1;
  for (std::size_t i = 0; i < labels->get_array().size(); ++i)
    if (const json::value& label = labels->get_array()[i]; label.is_string() && label.get_string() == "yes")
      return static_cast<std::uint32_t>(i);
  return 1;
}

bool says_identity(const json::value& config) {
  const json::value* own = json::find(config, "sentence_transformers");
  for (const json::value* group : {own, &config})
    for (const char* key : {"activation_fn", "sbert_ce_default_activation_function"})
      if (const json::value* name = group == nullptr ? nullptr : json::find(*group, key); name != nullptr && name->is_string())
        return std::string_view{name->get_string()}.ends_with("Identity");
  return false;
}

}  // namespace

std::vector<float> normalised(std::span<const float> row, std::size_t dimensions) {
  if (dimensions != 0) row = row.first(std::min(dimensions, row.size()));
  double sum = 0;
  for (const float x : row) sum += static_cast<double>(x) * static_cast<double>(x);
  const double length = std::sqrt(sum);
  std::vector<float> out(row.begin(), row.end());
  if (length > 0)
    for (float& x : out) x = static_cast<float>(static_cast<double>(x) / length);
  return out;
}

Status check_finite(std::span<const float> row) {
  if (std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); })) return {};
  return internal_error("the model's output holds a number that is not finite; its weights or this backend's numbers are damaged");
}

double Scoring::of(std::span<const float> row) const {
  if (kind == Kind::raw) return static_cast<double>(row[0]);
  if (kind == Kind::sigmoid) return 1 / (1 + std::exp(-static_cast<double>(row[0])));
  const auto top = static_cast<double>(*std::max_element(row.begin(), row.end()));
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x) - top);
  return std::exp(static_cast<double>(row[positive]) - top) / sum;
}

Result<Scoring> scoring_of(const program::ModelMeta& meta, std::uint64_t classes) {
  if (classes == 1) return Scoring{says_identity(meta.config) ? Scoring::Kind::raw : Scoring::Kind::sigmoid, 0};
  if (classes == 2) return Scoring{Scoring::Kind::softmax, yes_of(meta.config)};
  return unsupported(
      "the model tells " + std::to_string(classes) +
      " classes apart, and none of them is the score of a pair, so it cannot rank; a reranker has one class or two. `mekik logits` "
      "shows the numbers of all classes");
}

}  // namespace mekik::engine
