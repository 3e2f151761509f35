#include "text/hf/added_tokens.hpp"

#include "text/hf/unicode.hpp"

namespace mekik::text::hf {

namespace {

// The first byte of the character that ends before `end`.
std::size_t previous(std::string_view text, std::size_t end) {
  do --end;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}

bool ends_in_word(std::string_view text, std::size_t end) {
  if (end == 0) return false;
  std::size_t at = previous(text, end);
  return contains(UnicodeSet::word, next_code_point(text, at));
}

bool begins_word(std::string_view text, std::size_t begin) {
  return begin < text.size() && contains(UnicodeSet::word, next_code_point(text, begin));
}

std::size_t spaces_begin(std::string_view text, std::size_t end, std::size_t least) {
  while (end > least) {
    const std::size_t from = previous(text, end);
    std::size_t at = from;
    if (!is_space(next_code_point(text, at))) break;
    end = from;
  }
  return std::max(end, least);
}

// Remembers the last run of spaces, so that many tokens before one long run do not look through it again and again.
class SpacesEnd {
 public:
  std::size_t after(std::string_view text, std::size_t begin) {
    if (begin >= begin_ && begin <= end_) return end_;
    begin_ = end_ = begin;
    for (std::size_t at = begin; at < text.size() && is_space(next_code_point(text, at));) end_ = at;
    return end_;
  }

 private:
  std::size_t begin_ = 1, end_ = 0;
};

// Which of the stretches hold a match. Matches come in order.
class Trust {
 public:
  Trust(const Text& text, std::span<const Stretch> stretches) : text_(text), stretches_(stretches) {}
  enum class Kind : std::uint8_t { none, some, all };
  Kind of(std::size_t begin, std::size_t end) {
    if (stretches_.size() == 1) return stretches_[0].trusted ? Kind::all : Kind::none;
    const std::size_t first = text_.starts[begin], last = text_.starts[end - 1];
    while (at_ > 0 && stretches_[at_ - 1].end > first) --at_;
    while (at_ + 1 < stretches_.size() && stretches_[at_].end <= first) ++at_;
    const bool inside = last < stretches_[at_].end;
    if (!inside) return Kind::some;
    return stretches_[at_].trusted ? Kind::all : Kind::none;
  }

 private:
  const Text& text_;
  std::span<const Stretch> stretches_;
  std::size_t at_ = 0;
};

}  // namespace

AddedMatcher::AddedMatcher(std::span<const AddedToken> tokens, bool normalized) {
  std::vector<PrefixTrie::Entry> entries;
  for (std::size_t i = tokens.size(); i-- > 0;) {  // of those that a normalizer makes equal the first counts
    const std::string& pattern = normalized ? tokens[i].pattern : tokens[i].content;
    if (tokens[i].normalized != normalized || pattern.empty()) continue;
    entries.emplace_back(pattern, static_cast<std::int32_t>(i));
    starts_[static_cast<unsigned char>(pattern[0])] = true;
  }
  count_ = entries.size();
  trie_ = PrefixTrie{std::move(entries)};
}

void AddedMatcher::find(const Text& text, std::span<const AddedToken> tokens, std::span<const Stretch> stretches,
                        std::vector<Found>& found) const {
  found.clear();
  const std::string_view bytes = text.bytes;
  Trust trust{text, stretches};
  SpacesEnd spaces;
  std::size_t done = 0;
  for (std::size_t at = 0; count_ > 0 && at < bytes.size();) {
    if (!starts_[static_cast<unsigned char>(bytes[at])]) {
      ++at;
      continue;
    }
    Match longest, allowed;
    trie_.prefixes(bytes.substr(at), [&](std::size_t length, std::int32_t token) {
      longest = {token, length};
      if (!tokens[static_cast<std::size_t>(token)].special || trust.of(at, at + length) == Trust::Kind::all) allowed = longest;
    });
    if (longest.token < 0) {
      ++at;
      continue;
    }
    if (allowed.length != longest.length && trust.of(at, at + longest.length) == Trust::Kind::none) {
      at += longest.length;  // users' text that looks like a special token
      continue;
    }
    if (allowed.token < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens[static_cast<std::size_t>(allowed.token)];
    std::size_t begin = at, end = at + allowed.length;
    at = end;
    if (token.single_word && (ends_in_word(bytes, begin) || begins_word(bytes, end))) continue;
    if (token.lstrip) begin = begin > done ? spaces_begin(bytes, begin, done) : done;
    if (token.rstrip) end = spaces.after(bytes, end);
    if (done < begin) found.push_back({done, begin, -1});
    found.push_back({begin, end, token.id});
    done = end;
  }
  if (done != bytes.size() || bytes.empty()) found.push_back({done, bytes.size(), -1});
}

}  // namespace mekik::text::hf
