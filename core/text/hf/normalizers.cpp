#include "text/hf/normalizers.hpp"

#include <algorithm>
#include <array>

#include "text/hf/charsmap.hpp"
#include "text/hf/unicode.hpp"

namespace mekik::text::hf {

namespace {

bool is_ascii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

// change(code point, place, rewriter) puts what takes the place of each code point.
template <class Change>
void each_character(Text& text, const Change& change) {
  Rewriter after{text};
  for (std::size_t at = 0; at < text.bytes.size();) {
    const std::size_t from = at;
    change(next_code_point(text.bytes, at), from, after);
  }
  text = after.take();
}

class UnicodeForm final : public Normalizer {
 public:
  explicit UnicodeForm(NormalForm form) : form_(form) {}
  void apply(Text& text, MatchScratch&) const override {
    if (is_ascii(text.bytes)) return;
    Rewriter after{text};
    for (const PlacedPoint placed : normal_form(text.bytes, form_)) after.put(placed.point, placed.from);
    text = after.take();
  }
  std::size_t shrinks() const override { return 8; }  // a letter of 4 bytes is its plain one, and takes accents in

 private:
  NormalForm form_;
};

class Lowercase final : public Normalizer {
 public:
  void apply(Text& text, MatchScratch&) const override {
    each_character(text, [](char32_t c, std::size_t from, Rewriter& after) {
      append_lower(after.bytes(), c);
      after.place(from);
    });
  }
  std::size_t shrinks() const override { return 4; }
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(Text& text, MatchScratch&) const override {
    const std::string_view bytes = text.bytes;
    std::size_t begin = 0, end = bytes.size();
    for (std::size_t at = 0; left_ && at < bytes.size() && is_space(next_code_point(bytes, at));) begin = at;
    while (right_ && end > begin) {
      std::size_t at = end - 1;
      while (at > begin && (static_cast<unsigned char>(bytes[at]) & 0xC0) == 0x80) --at;
      const std::size_t last = at;
      if (!is_space(next_code_point(bytes, at))) break;
      end = last;
    }
    if (begin == 0 && end == bytes.size()) return;
    Rewriter after{text};
    after.keep(begin, end);
    text = after.take();
  }

 private:
  bool left_, right_;
};

void remove_all(Text& text, UnicodeSet set) {
  if (is_ascii(text.bytes)) return;
  each_character(text, [set](char32_t c, std::size_t from, Rewriter& after) {
    if (!contains(set, c)) after.put(c, from);
  });
}

class StripAccents final : public Normalizer {
 public:
  void apply(Text& text, MatchScratch&) const override { remove_all(text, UnicodeSet::combining_mark); }
};

class Replace final : public Normalizer {
 public:
  Replace(Regex pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(Text& text, MatchScratch& scratch) const override { replace_all(text, pattern_, content_, scratch); }
  std::size_t shrinks() const override {
    return content_.empty() || pattern_.literal_text().empty() ? 0 : pattern_.literal_text().size() / content_.size() + 1;
  }

 private:
  Regex pattern_;
  std::string content_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string text) : text_(std::move(text)) {}
  void apply(Text& text, MatchScratch&) const override {
    if (text.bytes.empty()) return;
    Rewriter after{text};
    after.put(text_, 0);
    after.keep(0, text.bytes.size());
    text = after.take();
  }
  std::size_t shrinks() const override { return 1; }

 private:
  std::string text_;
};

bool is_chinese(char32_t c) {
  constexpr std::array<std::pair<char32_t, char32_t>, 8> kBlocks{{{0x4E00, 0x9FFF},
                                                                  {0x3400, 0x4DBF},
                                                                  {0x20000, 0x2A6DF},
                                                                  {0x2A700, 0x2B73F},
                                                                  {0x2B740, 0x2B81F},
                                                                  {0x2B920, 0x2CEAF},
                                                                  {0xF900, 0xFAFF},
                                                                  {0x2F800, 0x2FA1F}}};
  return std::any_of(kBlocks.begin(), kBlocks.end(), [c](const auto& block) { return c >= block.first && c <= block.second; });
}

class Bert final : public Normalizer {
 public:
  Bert(bool clean, bool chinese, bool accents, bool lower) : clean_(clean), chinese_(chinese), accents_(accents), lower_(lower) {}
  void apply(Text& text, MatchScratch& scratch) const override {
    if (clean_)
      each_character(text, [](char32_t c, std::size_t from, Rewriter& after) {
        if (!contains(UnicodeSet::control, c)) after.put(is_space(c) ? U' ' : c, from);
      });
    if (chinese_)
      each_character(text, [](char32_t c, std::size_t from, Rewriter& after) {
        if (is_chinese(c)) after.put(" ", from);
        after.put(c, from);
        if (is_chinese(c)) after.put(" ", from);
      });
    if (accents_) {
      UnicodeForm{{}}.apply(text, scratch);
      remove_all(text, UnicodeSet::mark_nonspacing);
    }
    if (lower_) Lowercase{}.apply(text, scratch);
  }

 private:
  bool clean_, chinese_, accents_, lower_;
};

class Nmt final : public Normalizer {
 public:
  void apply(Text& text, MatchScratch&) const override {
    each_character(text, [](char32_t c, std::size_t from, Rewriter& after) {
      const bool removed = (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
      const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
                         c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      if (!removed) after.put(space ? U' ' : c, from);
    });
  }
};

// Whole grapheme clusters of less than 6 bytes are looked up first, then their characters; of what is found the shortest prefix
// decides, and the whole cluster or character is replaced.
class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(Charsmap map) : map_(std::move(map)) {}
  void apply(Text& text, MatchScratch&) const override {
    const std::string_view bytes = text.bytes;
    Rewriter after{text};
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t length = grapheme_length(bytes, at), end = at + length;
      if (length < 6)
        if (const auto match = map_.shortest(bytes.substr(at, length))) {
          after.put(match->replacement, place(after, at));
          at = end;
          continue;
        }
      while (at < end) {
        const std::size_t from = at;
        next_code_point(bytes, at);
        if (const auto match = map_.shortest(bytes.substr(from, at - from))) after.put(match->replacement, place(after, from));
        else after.put(bytes.substr(from, at - from), place(after, from));
      }
    }
    text = after.take();
  }

 private:
  // The library forgets what is removed before anything is left: the text then still begins at its first character.
  static std::size_t place(const Rewriter& after, std::size_t at) { return after.size() == 0 ? 0 : at; }

  Charsmap map_;
};

class ByteLevel final : public Normalizer {
 public:
  void apply(Text& text, MatchScratch&) const override {
    Rewriter after{text};
    put_bytes(text.bytes, 0, after);
    text = after.take();
  }
  std::size_t shrinks() const override { return 1; }
};

Result<std::unique_ptr<Normalizer>> read_precompiled(const Section& section) {
  MEKIK_TRY(encoded, section.need_text("precompiled_charsmap"));
  auto blob = decode_base64(encoded);
  if (!blob) return std::move(blob.status()).in(section.path("precompiled_charsmap"));
  auto map = Charsmap::read(*blob);
  if (!map) return std::move(map.status()).in(section.path("precompiled_charsmap"));
  return std::unique_ptr<Normalizer>{std::make_unique<Precompiled>(std::move(*map))};
}

Result<std::unique_ptr<Normalizer>> read_bert(const Section& section) {
  MEKIK_TRY(clean, section.flag("clean_text", true));
  MEKIK_TRY(chinese, section.flag("handle_chinese_chars", true));
  MEKIK_TRY(lower, section.flag("lowercase", true));
  MEKIK_TRY(accents, section.flag("strip_accents", lower));
  return std::unique_ptr<Normalizer>{std::make_unique<Bert>(clean, chinese, accents, lower)};
}

// What is put in for one character of a text stays short, so that a text does not grow without bounds.
Result<std::string> need_short_text(const Section& section, std::string_view key) {
  constexpr std::size_t kLongest = 1024;
  MEKIK_TRY(text, section.need_text(key));
  if (text.size() > kLongest) return section.wrong(key, "a text of at most 1024 bytes");
  return text;
}

Result<std::unique_ptr<Normalizer>> read_replace(const Section& section) {
  MEKIK_TRY(pattern, read_pattern(section));
  MEKIK_TRY(content, need_short_text(section, "content"));
  return std::unique_ptr<Normalizer>{std::make_unique<Replace>(std::move(pattern), content)};
}

Result<std::unique_ptr<Normalizer>> read_step(const Section& section, const std::string& type) {
  using Made = std::unique_ptr<Normalizer>;
  if (type == "NFD") return Made{std::make_unique<UnicodeForm>(NormalForm{false, false})};
  if (type == "NFC") return Made{std::make_unique<UnicodeForm>(NormalForm{false, true})};
  if (type == "NFKD") return Made{std::make_unique<UnicodeForm>(NormalForm{true, false})};
  if (type == "NFKC") return Made{std::make_unique<UnicodeForm>(NormalForm{true, true})};
  if (type == "Lowercase") return Made{std::make_unique<Lowercase>()};
  if (type == "StripAccents") return Made{std::make_unique<StripAccents>()};
  if (type == "Nmt") return Made{std::make_unique<Nmt>()};
  if (type == "ByteLevel") return Made{std::make_unique<ByteLevel>()};
  if (type == "BertNormalizer" || type == "Bert") return read_bert(section);
  if (type == "Replace") return read_replace(section);
  if (type == "Precompiled") return read_precompiled(section);
  if (type == "Prepend") {
    MEKIK_TRY(text, need_short_text(section, "prepend"));
    return Made{std::make_unique<Prepend>(text)};
  }
  if (type == "Strip") {
    MEKIK_TRY(left, section.flag("strip_left", true));
    MEKIK_TRY(right, section.flag("strip_right", true));
    return Made{std::make_unique<Strip>(left, right)};
  }
  return unsupported(section.name() + ": the kind " + quoted(type) + " of normalizer is not known");
}

}  // namespace

Status read_normalizer(const Section& section, Normalizers& steps) { return read_sequence(section, "normalizers", steps, read_step); }

void normalize(const Normalizers& steps, Text& text, MatchScratch& scratch) {
  for (const auto& step : steps) {
    if (text.bytes.empty()) return;
    run_step(step->where, [&] { step->apply(text, scratch); });
  }
}

// GPT-2's alphabet: printable Latin-1 stands for itself, the other bytes for U+0100 onwards, in order.
namespace {

struct ByteAlphabet {
  std::array<std::string, 256> letters;
  std::array<std::int16_t, 0x144> bytes;
  ByteAlphabet() {
    char32_t next = 0x100;
    bytes.fill(-1);
    for (int byte = 0; byte < 256; ++byte) {
      const bool itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const char32_t letter = itself ? static_cast<char32_t>(byte) : next++;
      append_utf8(letters[static_cast<std::size_t>(byte)], letter);
      bytes[letter] = static_cast<std::int16_t>(byte);
    }
  }
};

const ByteAlphabet& alphabet() {
  static const ByteAlphabet kAlphabet;
  return kAlphabet;
}

}  // namespace

void put_bytes(std::string_view word, std::size_t base, Rewriter& after) {
  const auto& letters = alphabet().letters;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t from = at;
    next_code_point(word, at);
    for (std::size_t i = from; i < at; ++i) after.bytes() += letters[static_cast<unsigned char>(word[i])];
    after.place(base + from);
  }
}

std::string_view letter_of_byte(unsigned char byte) { return alphabet().letters[byte]; }

int byte_of_letter(char32_t c) { return c < alphabet().bytes.size() ? alphabet().bytes[c] : -1; }

Result<Regex> read_pattern(const Section& section) {
  MEKIK_TRY(pattern, section.need_section("pattern"));
  if (pattern.has("String")) {
    MEKIK_TRY(text, pattern.need_text("String"));
    if (text.empty()) return Regex::compile("", pattern.name());
    return Regex::literal(text);
  }
  if (!pattern.has("Regex")) return pattern.wrong("Regex", "a string, as \"Regex\" or \"String\"");
  MEKIK_TRY(text, pattern.need_text("Regex"));
  return Regex::compile(text, pattern.path("Regex"));
}

void replace_all(Text& text, const Regex& pattern, std::string_view content, MatchScratch& scratch) {
  std::size_t done = 0;
  bool changed = false;
  Rewriter after{text};
  pattern.each(text.bytes, scratch, [&](std::size_t begin, std::size_t end) {
    changed = true;
    after.keep(done, begin);
    after.put(content, end == 0 ? 0 : end - 1);
    done = end;
  });
  if (!changed) return;
  after.keep(done, text.bytes.size());
  text = after.take();
}

}  // namespace mekik::text::hf
