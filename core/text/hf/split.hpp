// Cutting words at delimiters, in the five ways of Hugging Face's library.
#pragma once
#include <string_view>
#include <vector>

#include "text/hf/config.hpp"
#include "text/hf/text.hpp"

namespace mekik::text::hf {

enum class Delimiters : std::uint8_t { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Result<Delimiters> read_delimiters(const Section& section, std::string_view key, Delimiters fallback);

// A part of a word; the parts of a word follow each other without gaps. Matches may be empty.
struct Part {
  std::uint32_t begin, end;
  bool match;
};

// Appends what is left of the parts of one word, whose first byte is `base`.
void arrange(const std::vector<Part>& parts, Delimiters how, std::uint32_t base, std::vector<Span>& out);

// cut(word, base, out) appends the spans of one word; spans with a token stay.
template <class Cut>
void cut_words(Spans& spans, const Cut& cut) {
  std::vector<Span> out;
  out.reserve(spans.spans.size() * 2);
  for (const Span& span : spans.spans)
    if (span.token >= 0) out.push_back(span);
    else cut(std::string_view{spans.text.bytes}.substr(span.begin, span.end - span.begin), span.begin, out);
  spans.spans = std::move(out);
}

// Every code point for which is_delimiter holds is a delimiter.
template <class IsDelimiter>
void cut_at(Spans& spans, Delimiters how, const IsDelimiter& is_delimiter) {
  std::vector<Part> parts;
  cut_words(spans, [&](std::string_view word, std::uint32_t base, std::vector<Span>& out) {
    parts.clear();
    std::uint32_t done = 0;
    for (std::size_t at = 0; at < word.size();) {
      const std::uint32_t from = static_cast<std::uint32_t>(at);
      if (!is_delimiter(next_code_point(word, at))) continue;
      if (from > done) parts.push_back({done, from, false});
      parts.push_back({from, static_cast<std::uint32_t>(at), true});
      done = static_cast<std::uint32_t>(at);
    }
    if (done < word.size()) parts.push_back({done, static_cast<std::uint32_t>(word.size()), false});
    arrange(parts, how, base, out);
  });
}

}  // namespace mekik::text::hf
