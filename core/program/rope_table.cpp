// [rope.NAME] rows: a recipe's request from the page and the metadata, and the table that the operation reads.
#include <cmath>

#include "base/text.hpp"
#include "program/model_reader.hpp"

namespace mekik::program {

Datum ModelReader::rope_key(const RopeRow& row, std::string_view key) {
  const RopeKey* found = row.find(key);
  if (found == nullptr) return {};
  if (found->direct) return evaluate(*found->direct, {});
  for (const NameText& name : found->names[format_])
    for (const std::string& spelled : spell(name, std::nullopt)) {
      const json::value* stored = config_value(spelled);
      Datum value;
      if (stored == nullptr) continue;
      if (const std::string why = from_json(*stored, value); !why.empty())
        wrong(found->origin, "metadata key " + mekik::quoted(spelled) + " " + why);
      return value;
    }
  return {};
}

std::optional<double> ModelReader::rope_number(const RopeRow& row, std::string_view key) {
  const Datum value = rope_key(row, key);
  if (value.type == Datum::Type::none) return std::nullopt;
  if (!value.number()) wrong(row.find(key)->origin, std::string{key} + " of a rotary table must be a number, not " + type_name(value.type));
  return value.as_real();
}

// A weight of divisors that a key of the table names; it counts as used whether it is chosen or not.
std::optional<std::uint32_t> ModelReader::rope_weight(const RopeRow& row, std::string_view key, std::int64_t dim) {
  const RopeKey* found = row.find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->direct || found->direct->root.kind != Expr::Kind::name || page_.weight(found->direct->root.text) == nullptr)
    wrong(found->origin, std::string{key} + " of a rotary table must be the name of a weight");
  const auto index = weight(found->direct->root.text, std::nullopt, found->origin);
  if (!index) return std::nullopt;
  const WeightValue& value = weights_[*index];
  const bool plain =
      value.pieces.size() == 1 && value.pieces[0].sources.size() == 1 && value.pieces[0].steps.empty() && value.value.empty();
  if (!plain || value.shape != std::vector<std::int64_t>{(dim + 1) / 2})
    wrong(found->origin, std::string{key} + ": weight " + mekik::quoted(value.symbol) + " must be one tensor of " +
                             std::to_string((dim + 1) / 2) + " numbers, it has " + shape_text(value.shape));
  used_[value.pieces[0].sources[0]] = true;
  return value.pieces[0].sources[0];
}

// Which position axis turns which pair. `restart`: each axis has frequencies of its own, from 0.
void ModelReader::rope_axes(const RopeRow& row, const RopeRequest& request, std::vector<double>& frequencies, std::vector<float>& owners,
                            TableValue& out) {
  const std::size_t pairs = frequencies.size();
  owners.assign(pairs, 0);
  const RopeKey* axes = row.find("axes");
  if (axes == nullptr) return;
  const Datum count = rope_key(row, "axes"), spread = rope_key(row, "spread"), sections = rope_key(row, "sections");
  if (count.type != Datum::Type::integer || count.integer < 1 || count.integer > 8)
    wrong(axes->origin, "axes must be a whole number from 1 to 8");
  out.axes = count.integer;
  if (out.axes == 1) return;
  const auto n_axes = static_cast<std::size_t>(out.axes);
  if (spread.type == Datum::Type::text && spread.text == "restart") {
    if (pairs % n_axes != 0) wrong(axes->origin, std::to_string(pairs) + " pairs cannot be shared by " + std::to_string(n_axes) + " axes");
    const std::size_t each = pairs / n_axes;
    for (std::size_t i = 0; i < pairs; ++i) {
      owners[i] = static_cast<float>(i / each);
      frequencies[i] = std::pow(request.base, -static_cast<double>(i % each) / static_cast<double>(each));
    }
    return;
  }
  const bool interleaved = spread.type == Datum::Type::text && spread.text == "interleaved";
  if (!interleaved && spread.type != Datum::Type::none && (spread.type != Datum::Type::text || spread.text != "blocks"))
    wrong(row.find("spread")->origin, "spread is one of 'blocks', 'interleaved', 'restart'");
  std::vector<std::size_t> sizes;
  std::size_t sum = 0;
  if (sections.type == Datum::Type::list)
    for (const Datum& size : sections.list) {
      if (size.type != Datum::Type::integer || size.integer < 0 || size.integer > request.dim)
        wrong(axes->origin, "sections must be counts of pairs");
      sizes.push_back(static_cast<std::size_t>(size.integer));
      sum += sizes.back();
    }
  while (sizes.size() > n_axes && sizes.back() == 0) sizes.pop_back();
  if (sizes.size() != n_axes || sum != pairs)
    wrong(axes->origin,
          "sections must be " + std::to_string(n_axes) + " counts that sum to " + std::to_string(pairs) + ", not " + to_text(sections));
  if (interleaved) {
    for (std::size_t a = 1; a < n_axes; ++a)
      for (std::size_t i = a; i < std::min(pairs, n_axes * sizes[a]); i += n_axes) owners[i] = static_cast<float>(a);
    return;
  }
  std::size_t at = 0;
  for (std::size_t a = 0; a < n_axes; ++a)
    for (std::size_t i = 0; i < sizes[a]; ++i) owners[at++] = static_cast<float>(a);
}

// Keys of the group that a hyperparameter of the page names are that row's business, if no recipe knows them.
std::vector<std::pair<std::string, Datum>> ModelReader::scaling_group(const std::string& path) {
  auto group = config_group(path);
  std::erase_if(group, [&](const auto& entry) {
    if (rope_key_known(entry.first)) return false;
    for (const auto& [symbol, row] : page_.hparams)
      for (const NameText& name : row.names[format_])
        for (const std::string& spelled : spell(name, 0))
          if (spelled == path + "." + entry.first) return true;
    return false;
  });
  return group;
}

// The group that transformers assumes of a config.json without one: `omitted` of the page has its keys behind the group's name and a dot.
std::vector<std::pair<std::string, Datum>> ModelReader::omitted_group(const RopeRow& row) const {
  std::vector<std::pair<std::string, Datum>> out;
  const RopeKey* scaling = row.find("scaling");
  if (scaling == nullptr || kFormats[format_] != std::string_view{"hf"}) return out;
  for (const NameText& name : scaling->names[format_])
    for (const auto& [key, meaning] : page_.omitted)
      if (const std::string group = without_prefix(name.text) + "."; key.compare(0, group.size(), group) == 0)
        out.emplace_back(key.substr(group.size()), meaning);
  return out;
}

std::uint32_t ModelReader::table(const std::string& name, const config::Origin& used_at) {
  if (const auto found = table_cache_.find(name); found != table_cache_.end()) return found->second;
  const RopeRow* row = page_.rope(name);
  if (row == nullptr) wrong(used_at, "unknown rotary table " + mekik::quoted(name));
  RopeRequest request;
  request.flat = meta_.format == "gguf";
  request.dim = whole(*row->find("dim")->direct, {}, 2, "dim of a rotary table");
  request.base = rope_number(*row, "base").value_or(0);
  request.context = rope_number(*row, "context").value_or(0);
  request.planned = options_.context != 0 ? static_cast<double>(options_.context) : request.context;
  request.original = rope_number(*row, "original");
  request.attention_factor = rope_number(*row, "attn_factor");
  if (const Datum truncate = rope_key(*row, "truncate"); truncate.type != Datum::Type::none)
    if (const std::string why = truth(truncate, request.truncate); !why.empty()) wrong(row->find("truncate")->origin, why);
  if (const RopeKey* scaling = row->find("scaling"))
    for (const NameText& group : scaling->names[format_])
      for (const std::string& spelled : spell(group, std::nullopt))
        if (request.scaling.empty()) request.scaling = scaling_group(spelled);
  if (request.scaling.empty()) request.scaling = omitted_group(*row);
  const auto by_short = rope_weight(*row, "short", request.dim), by_long = rope_weight(*row, "long", request.dim);
  const auto factors = rope_weight(*row, "factors", request.dim);
  request.has_short_long = by_short && by_long;
  Result<RopeRecipe> recipe = rope_recipe(request);
  if (!recipe.ok()) wrong(row->origin, "rotary table " + mekik::quoted(name) + ": " + recipe.status().text);
  TableValue out;
  out.name = name;
  out.dim = 2 * static_cast<std::int64_t>(recipe->frequencies.size());
  out.magnitude = recipe->magnitude;
  std::vector<float> owners;
  rope_axes(*row, request, recipe->frequencies, owners, out);
  const Datum pairs = rope_key(*row, "pairs");
  if (pairs.type == Datum::Type::text && pairs.text == "adjacent") out.pairs = 1;
  else if (pairs.type != Datum::Type::none && (pairs.type != Datum::Type::text || pairs.text != "halves"))
    wrong(row->find("pairs")->origin, "pairs is one of 'halves', 'adjacent'");
  for (const double f : recipe->frequencies) out.numbers.push_back(static_cast<float>(f));
  out.numbers.insert(out.numbers.end(), owners.begin(), owners.end());
  if (recipe->divide == RopeRecipe::Divide::by_short) out.divisors = by_short;
  else if (recipe->divide == RopeRecipe::Divide::by_long) out.divisors = by_long;
  if (factors) {
    if (out.divisors) wrong(row->origin, "rotary table " + mekik::quoted(name) + ": two tensors of divisors");
    out.divisors = factors;
  }
  reach_ = std::max(reach_, recipe->reach);
  if (!recipe->choice.empty()) {
    position_key_ += (position_key_.empty() ? "" : ";") + name + "=" + recipe->choice;
    notes_.push_back("rotary table " + name + ": " + recipe->choice + ", chosen once for a context of " +
                     std::to_string(static_cast<std::int64_t>(request.planned)) + " tokens");
  }
  tables_.push_back(std::move(out));
  return table_cache_[name] = static_cast<std::uint32_t>(tables_.size() - 1);
}

}  // namespace mekik::program
