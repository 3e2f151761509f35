#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/tokenizer_split.hpp"

#include <pcre2.h>
#include <utf8proc.h>

#include "base/text.hpp"
#include "text/hf/unicode.hpp"

namespace mekik::text {

namespace {

struct CodeDelete {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct MatchDataDelete {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
bool is_decimal_digit(char32_t c) {
  return c < 0x80 ? c >= '0' && c <= '9' : utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_ND;
}

using CodePointer = std::unique_ptr<pcre2_code, CodeDelete>;

// PCRE2's \s has U+180E, which is no White_Space since Unicode 6.3, so the class is spelled out.
std::string with_unicode_spaces(std::string_view pattern) {
  constexpr std::string_view kSpaces = "\\t-\\r\\x{85}\\p{Z}";
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (next != 's' && next != 'S') out += {c, next};
      else if (in_class) out += kSpaces;  // no pattern of the table has \S inside a class
      else out += (next == 's' ? "[" : "[^") + std::string{kSpaces} + "]";
      continue;
    }
    in_class = c == '[' || (in_class && c != ']');
    out += c;
  }
  return out;
}

}  // namespace

struct Splitter::Impl {
  struct Step {
    CodePointer code;  // null: groups of three digits
    bool jit;
    bool ending = false;
  };
  std::vector<Step> steps;
};

class Splitter::Scratch {
 public:
  std::unique_ptr<pcre2_match_data, MatchDataDelete> match{pcre2_match_data_create(1, nullptr)};
  std::vector<std::string_view> next;
};

Splitter::Splitter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Splitter::Splitter(Splitter&&) noexcept = default;
Splitter& Splitter::operator=(Splitter&&) noexcept = default;
Splitter::~Splitter() = default;

void Splitter::ScratchDelete::operator()(Scratch* scratch) const { delete scratch; }
Splitter::ScratchPointer Splitter::scratch() const { return ScratchPointer{std::make_unique<Scratch>().release()}; }

Result<Splitter> Splitter::compile(std::span<const std::string_view> steps) {
  auto impl = std::make_unique<Impl>();
  for (const std::string_view step : steps) {
    if (step == kDigitThrees || step == kEndingDigitThrees) {
      impl->steps.push_back({nullptr, false, step == kEndingDigitThrees});
      continue;
    }
    const std::string pattern = with_unicode_spaces(step);
    int error = 0;
    PCRE2_SIZE offset = 0;
    CodePointer code{pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NO_UTF_CHECK, &error, &offset, nullptr)};
    if (code == nullptr) {
      PCRE2_UCHAR message[200];
      pcre2_get_error_message(error, message, sizeof message);
      return internal_error("pre-tokenizer pattern " + pattern + ", offset " + std::to_string(offset) + ": " +
                            reinterpret_cast<const char*>(message));
    }
    const bool jit = pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE) == 0;  // not on every CPU, and then slower
    impl->steps.push_back({std::move(code), jit});
  }
  return Splitter{std::move(impl)};
}

void Splitter::split_threes(std::string_view piece, bool ending, std::vector<std::string_view>& out) {
  std::size_t done = 0;
  const auto cut = [&](std::size_t end) {
    if (end > done) out.push_back(piece.substr(done, end - done));
    done = end;
  };
  std::vector<std::size_t> digits;  // where the digits of a run begin, and its end
  for (std::size_t at = 0; at < piece.size();) {
    digits.clear();
    std::size_t next = at;
    char32_t c = 0;
    while (at < piece.size() && is_decimal_digit(c = next_code_point(piece, next))) {
      digits.push_back(at);
      at = next;
    }
    if (digits.empty()) {
      at = next;
      continue;
    }
    if (ending && at < piece.size() && hf::contains(hf::UnicodeSet::word, c)) continue;
    for (std::size_t i = 0; i < digits.size(); ++i)
      if (i == 0 || (digits.size() - i) % 3 == 0) cut(digits[i]);
    cut(at);
  }
  cut(piece.size());
}

void Splitter::split(std::string_view text, Scratch& scratch, std::vector<std::string_view>& pieces) const {
  pieces.assign(1, text);
  for (const Impl::Step& step : impl_->steps) {
    scratch.next.clear();
    for (const std::string_view piece : pieces) {
      if (step.code == nullptr) {
        split_threes(piece, step.ending, scratch.next);
        continue;
      }
      const auto* subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
      PCRE2_SIZE done = 0;
      while (done < piece.size()) {
        int found = PCRE2_ERROR_JIT_STACKLIMIT;  // of repeated groups over long runs: the slower way has no such limit
        if (step.jit) found = pcre2_jit_match(step.code.get(), subject, piece.size(), done, 0, scratch.match.get(), nullptr);
        if (found == PCRE2_ERROR_JIT_STACKLIMIT)
          found =
              pcre2_match(step.code.get(), subject, piece.size(), done, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, scratch.match.get(), nullptr);
        // Either no match, or PCRE2's own limit, which no pattern of the table reaches (a test runs all over long texts).
        if (found < 0) break;
        const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(scratch.match.get());
        if (ends[1] <= ends[0]) break;
        if (ends[0] > done) scratch.next.push_back(piece.substr(done, ends[0] - done));
        scratch.next.push_back(piece.substr(ends[0], ends[1] - ends[0]));
        done = ends[1];
      }
      if (done < piece.size()) scratch.next.push_back(piece.substr(done));
    }
    std::swap(pieces, scratch.next);
  }
}

}  // namespace mekik::text
