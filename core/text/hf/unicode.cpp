#include "text/hf/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>

#include "base/text.hpp"

namespace mekik::text::hf {

namespace {

constexpr char32_t kFirstMark = 0x300;  // nothing below it has a combining class or is the second half of a composition

int class_of(char32_t c) {
  if (c < kFirstMark || contains(UnicodeSet::class_0, c)) return 0;
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
}

void decompose(std::string_view text, bool compatible, std::vector<PlacedPoint>& out) {
  constexpr int kLongest = 32;  // the longest compatibility decomposition has 18 code points
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t from = static_cast<std::uint32_t>(at);
    const char32_t c = next_code_point(text, at);
    utf8proc_int32_t buffer[kLongest];
    int boundary = 0;
    const bool plain = c < 0xA0 || contains(UnicodeSet::undecomposed, c);
    const utf8proc_ssize_t n = plain ? 0 : utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), buffer, kLongest, options, &boundary);
    if (n <= 0 || n > kLongest) out.push_back({c, from});
    else
      for (utf8proc_ssize_t i = 0; i < n; ++i) out.push_back({static_cast<char32_t>(buffer[i]), from});
  }
}

// Canonical order (Unicode 3.11, D109). Our own, because utf8proc_decompose sorts runs of marks in quadratic time. The places keep
// their order, as in the library: what comes first stands for what came first.
void order_marks(std::vector<PlacedPoint>& text) {
  struct Mark {
    char32_t point;
    int order;
  };
  std::vector<Mark> marks;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    marks.clear();
    for (int of = 0; end < text.size() && (of = class_of(text[end].point)) != 0; ++end) marks.push_back({text[end].point, of});
    if (marks.size() > 1) {
      std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) { return a.order < b.order; });
      for (std::size_t i = 0; i < marks.size(); ++i) text[begin + i].point = marks[i].point;
    }
    begin = end + 1;
  }
}

// The composition of two code points, or 0.
char32_t composed(char32_t first, char32_t second) {
  if (second < kFirstMark) return 0;
  utf8proc_int32_t pair[2] = {static_cast<utf8proc_int32_t>(first), static_cast<utf8proc_int32_t>(second)};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const bool one = utf8proc_normalize_utf32(pair, 2, options) == 1;
  const char32_t result = static_cast<char32_t>(pair[0]);
  return one && !contains(UnicodeSet::undecomposed, result) ? result : 0;
}

void compose(std::vector<PlacedPoint>& text) {
  std::size_t size = 0, starter = text.size();
  int last = 0;
  for (const PlacedPoint placed : text) {
    const int of = class_of(placed.point);
    const bool blocked = starter == text.size() || (size - 1 > starter && last >= of);
    if (!blocked)
      if (const char32_t whole = composed(text[starter].point, placed.point); whole != 0) {
        text[starter].point = whole;
        continue;
      }
    if (of == 0) starter = size;
    last = of;
    text[size++] = placed;
  }
  text.resize(size);
}

}  // namespace

bool contains(UnicodeSet set, char32_t c) {
  const std::span<const char32_t> edges = bounds(set);
  return (std::upper_bound(edges.begin(), edges.end(), c) - edges.begin()) % 2 == 1;
}

bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

void append_lower(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    return;
  }
  if (c == 0x130) {  // the only lower case of two code points
    out += "i\xCC\x87";
    return;
  }
  const std::span<const LowerPair> later = later_lower();
  const auto found = std::lower_bound(later.begin(), later.end(), c, [](const LowerPair& pair, char32_t of) { return pair.from < of; });
  append_utf8(out, found != later.end() && found->from == c ? found->to
                                                            : static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

std::uint8_t script_of(char32_t c) {
  if (c == ' ') return 0;
  const std::span<const ScriptRun> runs = script_runs();
  const auto after = std::upper_bound(runs.begin(), runs.end(), c, [](char32_t of, const ScriptRun& run) { return of < run.begin; });
  return std::prev(after)->script;
}

std::vector<PlacedPoint> normal_form(std::string_view text, NormalForm form) {
  std::vector<PlacedPoint> points;
  points.reserve(text.size());
  decompose(text, form.compatible, points);
  order_marks(points);
  if (form.composed) compose(points);
  return points;
}

std::size_t grapheme_length(std::string_view text, std::size_t at) {
  std::size_t end = at;
  utf8proc_int32_t state = 0;
  char32_t before = next_code_point(text, end);
  while (end < text.size()) {
    std::size_t next = end;
    const char32_t c = next_code_point(text, next);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before), static_cast<utf8proc_int32_t>(c), &state) != 0) break;
    before = c;
    end = next;
  }
  return end - at;
}

}  // namespace mekik::text::hf
