#include "text/tokenizer_spm_normalise.hpp"

#include "text/tokenizer_sentencepiece.hpp"

namespace mekik::text {

SpmNormalizer::Step SpmNormalizer::step(std::string_view text) const {
  std::size_t kept = 0;
  kept_.prefixes(text, [&](std::size_t length, std::int32_t) { kept = length; });
  if (kept > 0) return {text.substr(0, kept), kept};
  if (rules_.charsmap)
    if (const auto match = rules_.charsmap->longest(text)) return {match->replacement, match->length};
  const std::size_t length = character_length(text, 0);
  if (length == 1 && static_cast<unsigned char>(text[0]) >= 0x80) return {"\xEF\xBF\xBD", 1};
  return {text.substr(0, length), length};
}

std::string SpmNormalizer::run(std::string_view text, bool prefix) const {
  std::string out;
  const bool tidy = rules_.remove_extra_spaces;
  while (tidy && !text.empty()) {
    const Step first = step(text);
    if (first.text != " ") break;
    text.remove_prefix(first.consumed);
  }
  if (text.empty()) return out;
  const bool space = prefix && rules_.dummy_prefix;
  if (space && !rules_.suffix) out += ' ';
  bool after_space = tidy;
  while (!text.empty()) {
    Step next = step(text);
    while (after_space && next.text.starts_with(' ')) next.text.remove_prefix(1);
    out += next.text;
    if (!next.text.empty()) after_space = next.text.ends_with(' ');
    if (!tidy) after_space = false;
    text.remove_prefix(next.consumed);
  }
  out = with_spaces(out);
  while (tidy && out.ends_with(' ')) out.pop_back();
  if (space && rules_.suffix) out += ' ';
  return out;
}

}  // namespace mekik::text
