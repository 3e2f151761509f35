#include "text/hf/pipeline.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mekik::text::hf {

namespace {

// The parts as one text, and which stretches of it are trusted.
struct Joined {
  Text text;
  std::vector<Stretch> stretches;
};

Joined join_parts(std::span<const TextPart> parts) {
  Joined joined;
  std::string whole;
  for (const TextPart& part : parts) whole += part.text;
  const bool valid = is_utf8(whole);
  for (const TextPart& part : parts) {
    joined.text.bytes += valid ? part.text : utf8_replace_invalid(part.text);
    const std::size_t end = joined.text.bytes.size();
    if (!joined.stretches.empty() && joined.stretches.back().trusted == part.trusted) joined.stretches.back().end = end;
    else if (end > (joined.stretches.empty() ? 0 : joined.stretches.back().end)) joined.stretches.push_back({end, part.trusted});
  }
  return joined;
}

Text part_of(const Text& text, std::size_t begin, std::size_t end) {
  Text part;
  part.tracked = text.tracked;
  part.bound = text.bound;
  part.bytes.assign(text.bytes, begin, end - begin);
  if (text.tracked)
    part.starts.assign(text.starts.begin() + static_cast<std::ptrdiff_t>(begin), text.starts.begin() + static_cast<std::ptrdiff_t>(end));
  return part;
}

void append(Spans& spans, const Text& text, std::size_t begin, std::size_t end, std::int32_t token) {
  const std::uint32_t from = static_cast<std::uint32_t>(spans.text.bytes.size());
  spans.text.bytes.append(text.bytes, begin, end - begin);
  if (text.bound != nullptr) text.bound->check(spans.text.bytes.size());
  if (text.tracked)
    spans.text.starts.insert(spans.text.starts.end(), text.starts.begin() + static_cast<std::ptrdiff_t>(begin),
                             text.starts.begin() + static_cast<std::ptrdiff_t>(end));
  spans.spans.push_back({from, static_cast<std::uint32_t>(spans.text.bytes.size()), token});
}

// Of all tokens together.
std::size_t text_bytes(const TokenTable& tokens, std::span<const AddedToken> added) {
  std::size_t bytes = 0;
  for (std::int32_t id = 0; id < tokens.limit(); ++id) bytes += tokens.text(id).size();
  for (const AddedToken& token : added) bytes += token.content.size() + token.pattern.size();
  return bytes;
}

}  // namespace

PipelineTokenizer::PipelineTokenizer(Pipeline parts)
    : parts_(std::move(parts)), plain_(parts_.added, false), normalized_(parts_.added, true) {
  const TokenTable& tokens = parts_.model->tokens();
  std::size_t size = static_cast<std::size_t>(tokens.limit());
  for (const AddedToken& token : parts_.added) size = std::max(size, static_cast<std::size_t>(token.id) + 1);
  std::vector<const AddedToken*> added(size, nullptr);
  Bound bound{text_bytes(tokens, parts_.added)};
  for (const AddedToken& token : parts_.added) added[static_cast<std::size_t>(token.id)] = &token;
  for (std::size_t i = 0; i < size; ++i) {
    const std::int32_t id = static_cast<std::int32_t>(i);
    const bool special = added[i] != nullptr && added[i]->special;
    const std::string_view token = added[i] != nullptr ? std::string_view{added[i]->content} : tokens.text(id);
    spelled_.push(token);
    // The decoder undoes what the normalizer did to a token.
    decoded_.push(added[i] != nullptr && added[i]->normalized ? std::string_view{added[i]->pattern} : token);
    if (added[i] == nullptr) pieces_.push(tokens.has(id) ? parts_.decoder.piece(token, bound) : std::string{});
    else pieces_.push(special ? added[i]->content : parts_.decoder.piece(decoded_[i], bound));
    const bool placeholder = special && token.find("unused") != std::string_view::npos;
    const bool hole = added[i] == nullptr && !tokens.has(id);
    flags_.push_back((special ? std::uint32_t{kTokenSpecial} : 0u) | (placeholder || hole ? std::uint32_t{kTokenUnused} : 0u));
  }
  for (const std::int32_t id : parts_.ends) flags_[static_cast<std::size_t>(id)] |= kTokenEnd;
  for (const AddedToken& token : parts_.added)
    if (token.special) hidden_.insert(token.content);
  for (const auto& step : parts_.pre_tokenizers) needs_places_ = needs_places_ || step->needs_places();
  drops_first_space_ = parts_.decoder.drops_first_space();
  find_bounds();
}

void PipelineTokenizer::find_bounds() {
  std::size_t shrinks = 1;
  for (const auto& step : parts_.normalizers) shrinks = std::min<std::size_t>(shrinks * step->shrinks(), 1024);
  bool bytes = false;
  for (const auto& step : parts_.pre_tokenizers) {
    if (!step->keeps_text()) shrinks = 0;
    bytes = bytes || step->spells_bytes();
  }
  const TokenTable& tokens = parts_.model->tokens();
  const bool all = parts_.model->reads_all();
  if (shrinks == 0 || (!all && !bytes)) return;
  // A letter of the alphabet of bytes that is no token is left out.
  for (std::size_t byte = 0; byte < kept_.size(); ++byte)
    kept_[byte] = all || tokens.find(letter_of_byte(static_cast<unsigned char>(byte))) >= 0;
  for (const AddedToken& token : parts_.added) {
    longest_ = std::max({longest_, token.content.size(), token.pattern.size()});
    if (!token.lstrip && !token.rstrip) continue;
    // White space around it vanishes: none of its bytes counts.
    for (std::size_t byte = 0; byte < kept_.size(); ++byte) kept_[byte] = kept_[byte] && byte > ' ' && byte < 0x80;
  }
  for (std::size_t id = 0; id < spelled_.size(); ++id)
    longest_ = std::max(longest_, bytes ? utf8_length(spelled_[id]) : spelled_[id].size());  // a letter of that alphabet is one byte
  longest_ *= shrinks;
}

Spans PipelineTokenizer::added_spans(const Text& text, std::span<const Stretch> stretches, MatchScratch& scratch) const {
  Spans spans;
  spans.text.tracked = text.tracked;
  spans.text.bound = text.bound;
  std::vector<AddedMatcher::Found> outer, inner;
  plain_.find(text, parts_.added, stretches, outer);
  for (const AddedMatcher::Found& part : outer) {
    if (part.begin == part.end) continue;
    if (part.id >= 0) {
      append(spans, text, part.begin, part.end, part.id);
      continue;
    }
    Text normal = part_of(text, part.begin, part.end);
    normalize(parts_.normalizers, normal, scratch);
    normalized_.find(normal, parts_.added, stretches, inner);
    for (const AddedMatcher::Found& found : inner)
      if (found.begin < found.end) append(spans, normal, found.begin, found.end, found.id);
  }
  return spans;
}

std::vector<std::int32_t> PipelineTokenizer::text_ids(std::span<const TextPart> parts) const {
  Joined joined = join_parts(parts);
  std::vector<std::int32_t> ids;
  if (joined.text.bytes.empty()) return ids;
  if (needs_places_ || joined.stretches.size() > 1) {
    joined.text.tracked = true;
    joined.text.starts.resize(joined.text.bytes.size());
    for (std::size_t i = 0; i < joined.text.starts.size(); ++i) {  // all bytes of a character stand for its first
      const bool inner = i > 0 && (static_cast<unsigned char>(joined.text.bytes[i]) & 0xC0) == 0x80;
      joined.text.starts[i] = inner ? joined.text.starts[i - 1] : static_cast<std::uint32_t>(i);
    }
  }
  MatchScratch matching;
  Bound bound{joined.text.bytes.size()};
  joined.text.bound = &bound;
  Spans spans = added_spans(joined.text, joined.stretches, matching);
  for (const auto& step : parts_.pre_tokenizers) run_step(step->where, [&] { step->apply(spans, matching); });
  ModelScratch scratch;
  scratch.merge.words.prepare(spans.text.bytes.size());
  for (const Span& span : spans.spans)
    if (span.token >= 0) ids.push_back(span.token);
    else if (span.end > span.begin)
      parts_.model->encode(std::string_view{spans.text.bytes}.substr(span.begin, span.end - span.begin), ids, scratch);
  return ids;
}

std::vector<std::int32_t> PipelineTokenizer::encode(std::span<const TextPart> parts, bool add_special) const {
  return parts_.post_processor.process({text_ids(parts)}, add_special).ids;
}

TypedTokens PipelineTokenizer::encode_typed(std::string_view text, bool add_special) const {
  const TextPart part{std::string{text}, false};
  return parts_.post_processor.process({text_ids({&part, 1})}, add_special);
}

TypedTokens PipelineTokenizer::encode_pair(std::string_view first, std::string_view second) const {
  const TextPart parts[2] = {{std::string{first}, false}, {std::string{second}, false}};
  return parts_.post_processor.process({text_ids({parts, 1}), text_ids({parts + 1, 1})}, true);
}

std::string PipelineTokenizer::decode(std::span<const std::int32_t> ids, bool special) const {
  std::vector<std::string> tokens;
  for (const std::int32_t id : ids) {
    const std::string_view token = known(id) ? decoded_[static_cast<std::size_t>(id)] : std::string_view{};
    if (!token.empty() && (special || !hidden_.contains(token))) tokens.emplace_back(token);
  }
  return parts_.decoder.decode(std::move(tokens));
}

}  // namespace mekik::text::hf
