#include "text/hf/post_processor.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mekik::text::hf {

namespace {

void append(TypedTokens& out, const std::vector<std::int32_t>& ids, std::int32_t type) {
  out.ids.insert(out.ids.end(), ids.begin(), ids.end());
  out.types.resize(out.ids.size(), type);
}

Result<std::int32_t> id_of(const json::value& value, const std::string& where, std::int32_t limit) {
  const std::int64_t id = value.is_int64()    ? value.get_int64()
                          : value.is_uint64() ? static_cast<std::int64_t>(value.get_uint64() >> 1)
                                              : -1;
  if (!value.is_int64() || id < 0 || id >= limit)
    return invalid(where + " is " + json::serialize(value) + ", no id of the vocabulary (0 to " + std::to_string(limit - 1) + ")");
  return static_cast<std::int32_t>(id);
}

// ["[SEP]", 102]
Result<std::int32_t> token_pair(const Section& section, std::string_view key, std::int32_t limit) {
  MEKIK_TRY(pair, section.need_array(key));
  if (pair->size() != 2) return section.wrong(key, "a token and its id");
  return id_of((*pair)[1], section.path(key) + "[1]", limit);
}

}  // namespace

Result<PostProcessor> PostProcessor::read(const Section& section, std::int32_t limit) {
  PostProcessor processor;
  const auto read_step_here = [&](const Section& one, const std::string& type) { return read_step(one, type, limit); };
  MEKIK_CHECK_OK(read_sequence(section, "processors", processor.steps_, read_step_here));
  std::erase_if(processor.steps_, [](const Step& step) { return std::holds_alternative<MovesOffsets>(step); });
  const auto is_template = [](const Step& step) { return std::holds_alternative<Template>(step); };
  if (std::count_if(processor.steps_.begin(), processor.steps_.end(), is_template) > 1)
    return unsupported(section.name() + ": a second template in one sequence");
  return processor;
}

Result<PostProcessor::Step> PostProcessor::read_step(const Section& section, const std::string& type, std::int32_t limit) {
  if (type == "ByteLevel") return Step{MovesOffsets{}};
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    MEKIK_TRY(first, token_pair(section, "cls", limit));
    MEKIK_TRY(separator, token_pair(section, "sep", limit));
    return Step{Bert{first, separator, type == "RobertaProcessing"}};
  }
  if (type != "TemplateProcessing") return unsupported(section.name() + ": the kind " + quoted(type) + " of post-processor is not known");
  MEKIK_TRY(single, read_template(section, "single", limit));
  MEKIK_TRY(pair, read_template(section, "pair", limit));
  return Step{Template{std::move(single), std::move(pair)}};
}

Result<std::vector<PostProcessor::Piece>> PostProcessor::read_template(const Section& section, std::string_view key, std::int32_t limit) {
  MEKIK_TRY(list, section.need_array(key));
  MEKIK_TRY(specials, section.need_section("special_tokens"));
  // A text of a few words has a few; a short file could ask for all memory by naming one long list a million times.
  constexpr std::size_t kMostPieces = 256, kMostIds = 65536;
  if (list->size() > kMostPieces) return section.wrong(key, "a list of at most 256 pieces");
  std::size_t special_ids = 0;
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < list->size(); ++i) {
    MEKIK_TRY(element, section.element(*list, key, i));
    const bool text = element.has("Sequence");
    MEKIK_TRY(inside, element.need_section(text ? "Sequence" : "SpecialToken"));
    MEKIK_TRY(id, inside.need_text("id"));
    MEKIK_TRY(type, inside.integer("type_id", 0));
    if (type < 0 || type > 0x7FFF) return inside.wrong("type_id", "0 to 32767");
    Piece piece;
    piece.type = static_cast<std::int32_t>(type);
    if (text) {
      if (id != "A" && id != "B") return inside.wrong("id", "A or B");
      piece.text = id == "A" ? 0 : 1;
      if (piece.text == 1 && key == "single") return inside.wrong("id", "A: there is one text");
    } else {
      MEKIK_TRY(special, specials.need_section(id));
      MEKIK_TRY(ids, special.need_array("ids"));
      if ((special_ids += ids->size()) > kMostIds) return section.wrong(key, "a template with at most 65536 ids of special tokens");
      for (std::size_t k = 0; k < ids->size(); ++k) {
        MEKIK_TRY(one, id_of((*ids)[k], special.path("ids"), limit));
        piece.ids.push_back(one);
      }
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

TypedTokens PostProcessor::process(std::vector<std::vector<std::int32_t>> texts, bool add_special) const {
  std::vector<TypedTokens> parts;
  for (auto& ids : texts) {
    const std::int32_t type = static_cast<std::int32_t>(parts.size());
    parts.push_back({std::move(ids), {}});
    parts.back().types.assign(parts.back().ids.size(), type);
  }
  for (const Step& step : steps_) std::visit([&](const auto& of) { apply(of, parts, add_special); }, step);
  if (parts.size() == 1) return std::move(parts[0]);
  TypedTokens all;
  for (const TypedTokens& part : parts) {
    all.ids.insert(all.ids.end(), part.ids.begin(), part.ids.end());
    all.types.insert(all.types.end(), part.types.begin(), part.types.end());
  }
  return all;
}

void PostProcessor::apply(const Template& step, std::vector<TypedTokens>& parts, bool add_special) {
  std::vector<TypedTokens> out;
  for (const Piece& piece : parts.size() == 1 ? step.single : step.pair) {
    if (piece.text < 0 && !add_special) continue;
    append(out.emplace_back(), piece.text < 0 ? piece.ids : parts[static_cast<std::size_t>(piece.text)].ids, piece.type);
  }
  parts = std::move(out);
}

void PostProcessor::apply(const Bert& step, std::vector<TypedTokens>& parts, bool add_special) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    TypedTokens& part = parts[i];
    if (step.roberta) part.types.assign(part.ids.size(), 0);
    if (!add_special) continue;
    TypedTokens out;
    if (i == 0) append(out, {step.first}, 0);
    else if (step.roberta) append(out, {step.separator}, 0);
    out.ids.insert(out.ids.end(), part.ids.begin(), part.ids.end());
    out.types.insert(out.types.end(), part.types.begin(), part.types.end());
    append(out, {step.separator}, i == 0 || step.roberta ? 0 : 1);
    part = std::move(out);
  }
}

std::vector<std::int32_t> PostProcessor::around() const { return process({{}}, true).ids; }

}  // namespace mekik::text::hf
