#include "text/tokenizer_normalise.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/text.hpp"

namespace mekik::text {

namespace {

struct Mark {
  utf8proc_int32_t code_point;
  int combining_class;
};

// Canonical order (Unicode 3.11, D109). Our own, because utf8proc_decompose sorts runs of marks in quadratic time.
void order_marks(std::vector<utf8proc_int32_t>& text) {
  std::vector<Mark> marks;
  const auto class_of = [](utf8proc_int32_t c) { return c < 0x300 ? 0 : int{utf8proc_get_property(c)->combining_class}; };
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    marks.clear();
    for (int of = 0; end < text.size() && (of = class_of(text[end])) != 0; ++end) marks.push_back({text[end], of});
    if (marks.size() > 1) {
      std::stable_sort(marks.begin(), marks.end(), [](Mark a, Mark b) { return a.combining_class < b.combining_class; });
      for (std::size_t i = 0; i < marks.size(); ++i) text[begin + i] = marks[i].code_point;
    }
    begin = end + 1;
  }
}

}  // namespace

bool to_nfc(std::string_view text, std::string& out) {
  // 0xCC is the first byte of U+0300; everything below composes with nothing before it.
  if (std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0xCC; })) return false;
  constexpr int kLongest = 32;  // a canonical decomposition has at most 4 code points
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto c = static_cast<utf8proc_int32_t>(next_code_point(text, at));
    utf8proc_int32_t buffer[kLongest];
    int boundary = 0;
    const utf8proc_ssize_t n =
        c < 0xC0
            ? 0
            : utf8proc_decompose_char(c, buffer, kLongest, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE), &boundary);
    if (n <= 0 || n > kLongest) points.push_back(c);
    else points.insert(points.end(), buffer, buffer + n);
  }
  order_marks(points);
  const utf8proc_ssize_t n = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                                                      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  out.clear();
  for (utf8proc_ssize_t i = 0; i < n; ++i) append_utf8(out, static_cast<char32_t>(points[static_cast<std::size_t>(i)]));
  return true;
}

}  // namespace mekik::text
