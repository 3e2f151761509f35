#include "text/hf/pre_tokenizers.hpp"

#include <array>

#include "text/hf/normalizers.hpp"
#include "text/hf/split.hpp"
#include "text/hf/unicode.hpp"

namespace mekik::text::hf {

namespace {

bool is_punctuation(char32_t c) { return contains(UnicodeSet::punctuation, c); }

// Writes every word anew: write(word, base, rewriter) puts its text; spans follow.
template <class Write>
void rewrite_words(Spans& spans, const Write& write) {
  Rewriter after{spans.text};
  for (Span& span : spans.spans) {
    const std::uint32_t begin = static_cast<std::uint32_t>(after.size());
    if (span.token < 0) write(std::string_view{spans.text.bytes}.substr(span.begin, span.end - span.begin), span.begin, after);
    else after.keep(span.begin, span.end);
    span.begin = begin;
    span.end = static_cast<std::uint32_t>(after.size());
  }
  spans.text = after.take();
}

class Split final : public PreTokenizer {
 public:
  Split(Regex pattern, Delimiters how, bool invert) : pattern_(std::move(pattern)), how_(how), invert_(invert) {}
  void apply(Spans& spans, MatchScratch& scratch) const override {
    std::vector<Part> parts;
    cut_words(spans, [&](std::string_view word, std::uint32_t base, std::vector<Span>& out) {
      parts.clear();
      std::uint32_t done = 0;
      pattern_.each(word, scratch, [&](std::size_t begin, std::size_t end) {
        if (begin > done) parts.push_back({done, static_cast<std::uint32_t>(begin), invert_});
        parts.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end), !invert_});
        done = static_cast<std::uint32_t>(end);
      });
      if (done < word.size()) parts.push_back({done, static_cast<std::uint32_t>(word.size()), invert_});
      arrange(parts, how_, base, out);
    });
  }
  bool keeps_text() const override { return how_ != Delimiters::removed; }

 private:
  Regex pattern_;
  Delimiters how_;
  bool invert_;
};

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool prefix, std::unique_ptr<PreTokenizer> cut) : prefix_(prefix), cut_(std::move(cut)) {}
  void apply(Spans& spans, MatchScratch& scratch) const override {
    if (prefix_)
      rewrite_words(spans, [](std::string_view word, std::uint32_t base, Rewriter& after) {
        if (!word.starts_with(' ')) after.put(" ", base);
        after.keep(base, base + word.size());
      });
    if (cut_ != nullptr) cut_->apply(spans, scratch);
    rewrite_words(spans, [](std::string_view word, std::uint32_t base, Rewriter& after) { put_bytes(word, base, after); });
  }
  bool keeps_text() const override { return true; }
  bool spells_bytes() const override { return true; }

 private:
  bool prefix_;
  std::unique_ptr<PreTokenizer> cut_;  // null: without a pattern
};

class Metaspace final : public PreTokenizer {
 public:
  enum class Prepend : std::uint8_t { first, never, always };
  Metaspace(char32_t replacement, Prepend prepend, bool split) : prepend_(prepend), split_(split) { append_utf8(sign_, replacement); }
  bool needs_places() const override { return prepend_ == Prepend::first; }
  bool keeps_text() const override { return true; }
  void apply(Spans& spans, MatchScratch&) const override {
    Rewriter after{spans.text};
    std::vector<Span> out;
    for (const Span& span : spans.spans) {
      const std::uint32_t begin = static_cast<std::uint32_t>(after.size());
      if (span.token >= 0) {
        after.keep(span.begin, span.end);
        out.push_back({begin, static_cast<std::uint32_t>(after.size()), span.token});
        continue;
      }
      write(spans.text, span, after);
      cut(std::string_view{after.bytes()}.substr(begin), begin, out);
    }
    spans.text = after.take();
    spans.spans = std::move(out);
  }

 private:
  void write(const Text& text, const Span& span, Rewriter& after) const {
    const std::string_view word = std::string_view{text.bytes}.substr(span.begin, span.end - span.begin);
    const bool wanted = prepend_ == Prepend::always || (prepend_ == Prepend::first && text.starts[span.begin] == 0);
    if (wanted && !word.starts_with(' ') && !word.starts_with(sign_)) after.put(sign_, span.begin);
    std::size_t at = 0;
    for (std::size_t space; (space = word.find(' ', at)) != std::string_view::npos; at = space + 1) {
      after.keep(span.begin + at, span.begin + space);
      after.put(sign_, span.begin + space);
    }
    after.keep(span.begin + at, span.end);
  }

  // Every sign begins a word.
  void cut(std::string_view word, std::uint32_t base, std::vector<Span>& out) const {
    std::size_t begin = 0;
    for (std::size_t next; split_ && (next = word.find(sign_, begin + 1)) != std::string_view::npos; begin = next)
      out.push_back({base + static_cast<std::uint32_t>(begin), base + static_cast<std::uint32_t>(next), -1});
    if (begin < word.size()) out.push_back({base + static_cast<std::uint32_t>(begin), base + static_cast<std::uint32_t>(word.size()), -1});
  }

  std::string sign_;
  Prepend prepend_;
  bool split_;
};

// Words are runs of \w and runs of what is neither \w nor space.
class Whitespace final : public PreTokenizer {
 public:
  void apply(Spans& spans, MatchScratch&) const override {
    cut_words(spans, [](std::string_view word, std::uint32_t base, std::vector<Span>& out) {
      int last = 0;
      for (std::size_t at = 0; at < word.size();) {
        const std::uint32_t from = base + static_cast<std::uint32_t>(at);
        const char32_t c = next_code_point(word, at);
        const int kind = contains(UnicodeSet::word, c) ? 1 : is_space(c) ? 0 : 2;
        const std::uint32_t end = base + static_cast<std::uint32_t>(at);
        if (kind != 0 && kind == last) out.back().end = end;
        else if (kind != 0) out.push_back({from, end, -1});
        last = kind;
      }
    });
  }
};

class WhitespaceSplit final : public PreTokenizer {
 public:
  void apply(Spans& spans, MatchScratch&) const override { cut_at(spans, Delimiters::removed, is_space); }
};

class Bert final : public PreTokenizer {
 public:
  void apply(Spans& spans, MatchScratch&) const override {
    cut_at(spans, Delimiters::removed, is_space);
    cut_at(spans, Delimiters::isolated, is_punctuation);
  }
};

class Punctuation final : public PreTokenizer {
 public:
  explicit Punctuation(Delimiters how) : how_(how) {}
  void apply(Spans& spans, MatchScratch&) const override { cut_at(spans, how_, is_punctuation); }
  bool keeps_text() const override { return how_ != Delimiters::removed; }

 private:
  Delimiters how_;
};

class Digits final : public PreTokenizer {
 public:
  explicit Digits(bool each) : how_(each ? Delimiters::isolated : Delimiters::contiguous) {}
  void apply(Spans& spans, MatchScratch&) const override {
    cut_at(spans, how_, [](char32_t c) { return contains(UnicodeSet::numeric, c); });
  }
  bool keeps_text() const override { return true; }

 private:
  Delimiters how_;
};

class CharDelimiterSplit final : public PreTokenizer {
 public:
  explicit CharDelimiterSplit(char32_t delimiter) : delimiter_(delimiter) {}
  void apply(Spans& spans, MatchScratch&) const override {
    cut_at(spans, Delimiters::removed, [this](char32_t c) { return c == delimiter_; });
  }

 private:
  char32_t delimiter_;
};

class UnicodeScripts final : public PreTokenizer {
 public:
  // A word begins where the script changes. Spaces belong to any script; in front of everything else they are lost.
  void apply(Spans& spans, MatchScratch&) const override {
    cut_words(spans, [](std::string_view word, std::uint32_t base, std::vector<Span>& out) {
      const std::size_t first = out.size();
      int last = 0;
      for (std::size_t at = 0; at < word.size();) {
        const std::uint32_t from = base + static_cast<std::uint32_t>(at);
        const int script = script_of(next_code_point(word, at));
        if (script == 0) continue;
        if (script != last) {
          if (out.size() > first) out.back().end = from;
          out.push_back({from, from, -1});
        }
        last = script;
      }
      if (out.size() > first) out.back().end = base + static_cast<std::uint32_t>(word.size());
    });
  }
};

class FixedLength final : public PreTokenizer {
 public:
  explicit FixedLength(std::size_t length) : length_(length) {}
  void apply(Spans& spans, MatchScratch&) const override {
    cut_words(spans, [this](std::string_view word, std::uint32_t base, std::vector<Span>& out) {
      for (std::size_t at = 0; at < word.size();) {
        const std::size_t from = at;
        for (std::size_t n = 0; n < length_ && at < word.size(); ++n) next_code_point(word, at);
        out.push_back({base + static_cast<std::uint32_t>(from), base + static_cast<std::uint32_t>(at), -1});
      }
    });
  }

 private:
  std::size_t length_;
};

using Made = std::unique_ptr<PreTokenizer>;

Result<Made> read_split(const Section& section) {
  MEKIK_TRY(pattern, read_pattern(section));
  MEKIK_TRY(how, read_delimiters(section, "behavior", Delimiters::isolated));
  MEKIK_TRY(invert, section.flag("invert", false));
  return Made{std::make_unique<Split>(std::move(pattern), how, invert)};
}

Result<Made> read_byte_level(const Section& section) {
  MEKIK_TRY(prefix, section.flag("add_prefix_space", true));
  MEKIK_TRY(use_regex, section.flag("use_regex", true));
  Made cut;
  if (use_regex) {
    constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    MEKIK_TRY(pattern, Regex::compile(kGpt2, section.name()));
    cut = std::make_unique<Split>(std::move(pattern), Delimiters::isolated, false);
  }
  return Made{std::make_unique<ByteLevel>(prefix, std::move(cut))};
}

Result<Made> read_metaspace(const Section& section) {
  MEKIK_TRY(replacement, section.need_character("replacement"));
  MEKIK_TRY(scheme, section.text("prepend_scheme", "always"));
  MEKIK_TRY(prefix, section.flag("add_prefix_space", true));
  MEKIK_TRY(split, section.flag("split", true));
  if (!prefix && section.has("prepend_scheme") && scheme != "never")
    return invalid(section.name() + ": add_prefix_space = false contradicts prepend_scheme = " + quoted(scheme));
  using Prepend = Metaspace::Prepend;
  if (!prefix || scheme == "never") return Made{std::make_unique<Metaspace>(replacement, Prepend::never, split)};
  if (scheme == "first") return Made{std::make_unique<Metaspace>(replacement, Prepend::first, split)};
  if (scheme == "always") return Made{std::make_unique<Metaspace>(replacement, Prepend::always, split)};
  return section.wrong("prepend_scheme", "first, never or always");
}

Result<Made> read_step(const Section& section, const std::string& type) {
  if (type == "Split") return read_split(section);
  if (type == "ByteLevel") return read_byte_level(section);
  if (type == "Metaspace") return read_metaspace(section);
  if (type == "Whitespace") return Made{std::make_unique<Whitespace>()};
  if (type == "WhitespaceSplit") return Made{std::make_unique<WhitespaceSplit>()};
  if (type == "BertPreTokenizer") return Made{std::make_unique<Bert>()};
  if (type == "UnicodeScripts") return Made{std::make_unique<UnicodeScripts>()};
  if (type == "Punctuation") {
    MEKIK_TRY(how, read_delimiters(section, "behavior", Delimiters::isolated));
    return Made{std::make_unique<Punctuation>(how)};
  }
  if (type == "Digits") {
    MEKIK_TRY(each, section.flag("individual_digits", false));
    return Made{std::make_unique<Digits>(each)};
  }
  if (type == "CharDelimiterSplit" || type == "Delimiter") {
    MEKIK_TRY(delimiter, section.need_character("delimiter"));
    return Made{std::make_unique<CharDelimiterSplit>(delimiter)};
  }
  if (type == "FixedLength") {
    MEKIK_TRY(length, section.integer("length", 5));
    if (length < 1) return section.wrong("length", "at least 1");
    return Made{std::make_unique<FixedLength>(static_cast<std::size_t>(length))};
  }
  return unsupported(section.name() + ": the kind " + quoted(type) + " of pre-tokenizer is not known");
}

}  // namespace

Status read_pre_tokenizer(const Section& section, PreTokenizers& steps) {
  return read_sequence(section, "pretokenizers", steps, read_step);
}

}  // namespace mekik::text::hf
