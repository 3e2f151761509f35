// What Python's str can do.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <unordered_set>

#include "base/text.hpp"
#include "text/jinja/builtins.hpp"
#include "text/jinja/characters.hpp"

namespace mekik::text::jinja {

namespace {

// Byte offsets of the code points, and the end.
std::vector<std::size_t> offsets(std::string_view text) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) out.push_back(i);
  out.push_back(text.size());
  return out;
}

}  // namespace

// std::string::find takes quadratic time where text and part are made for it; memmem never does.
std::size_t find_text(std::string_view text, std::string_view part, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  const void* at = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return at == nullptr ? std::string_view::npos : static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
}

std::size_t find_last_text(std::string_view text, std::string_view part) {
  const std::string mirrored{text.rbegin(), text.rend()}, mirrored_part{part.rbegin(), part.rend()};
  const std::size_t at = find_text(mirrored, mirrored_part);
  return at == std::string_view::npos ? at : text.size() - at - part.size();
}

Text pad(const Text& text, std::int64_t width, const Text& fill, int where, Budget& budget) {
  const auto have = static_cast<std::int64_t>(utf8_length(text.bytes));
  if (utf8_length(fill.bytes) != 1) throw TemplateError{"the fill character must be exactly one character"};
  if (width <= have) return text;
  budget.spend_bytes(static_cast<std::uint64_t>(width));
  const std::int64_t missing = width - have, left = where < 0 ? 0 : where > 0 ? missing : missing / 2;
  Text out;
  for (std::int64_t i = 0; i < left; ++i) out.append(fill);
  out.append(text);
  for (std::int64_t i = left; i < missing; ++i) out.append(fill);
  return out;
}

const Text& need_text(const Value& value, const char* what) {
  if (!value.is(Type::text))
    throw TemplateError{std::string{what} + " needs a str, not " +
                        (value.is(Type::undefined) ? value.hint() + ", which is undefined" : type_name(value))};
  return value.as_text();
}

std::int64_t need_integer(const Value& value, const char* what) {
  if (!value.is(Type::integer) && !value.is(Type::boolean))
    throw TemplateError{std::string{what} + " needs an int, not " + type_name(value)};
  return value.as_integer();
}

Text strip(const Text& text, const Value* characters, bool left, bool right, Budget& budget) {
  const bool given = characters != nullptr && !characters->is(Type::none);
  std::unordered_set<char32_t> set;
  if (given) {
    const std::string& listed = need_text(*characters, "strip").bytes;
    for (std::size_t at = 0; at < listed.size();) set.insert(next_code_point(listed, at));
  }
  const auto drops = [&](std::size_t begin, std::size_t) {
    std::size_t at = begin;
    const char32_t c = next_code_point(text.bytes, at);
    return given ? set.contains(c) : is_white(c);
  };
  std::size_t begin = 0, end = text.bytes.size();
  while (left && begin < end) {
    std::size_t after = begin;
    next_code_point(text.bytes, after);
    if (!drops(begin, after)) break;
    begin = after;
  }
  while (right && end > begin) {
    std::size_t before = end - 1;
    while (before > begin && (static_cast<unsigned char>(text.bytes[before]) & 0xC0) == 0x80) --before;
    if (!drops(before, end)) break;
    end = before;
  }
  budget.spend_characters(text.bytes.size() - (end - begin));
  return text.sub(begin, end - begin);
}

Text replace(const Text& text, const Text& from, const Text& to, std::int64_t limit, Budget& budget) {
  Text out;
  std::size_t at = 0;
  if (from.bytes.empty()) {  // before every character and at the end
    const auto cuts = offsets(text.bytes);
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      if (limit < 0 || static_cast<std::int64_t>(i) < limit) out.append(to);
      if (i + 1 < cuts.size()) out.append(text.sub(cuts[i], cuts[i + 1] - cuts[i]));
      budget.spend_bytes(out.bytes.size() > budget.max_output_bytes ? out.bytes.size() : 16);
    }
    return out;
  }
  for (; limit != 0; --limit) {
    const std::size_t found = find_text(text.bytes, from.bytes, at);
    if (found == std::string::npos) break;
    out.append(text.sub(at, found - at));
    out.append(to);
    at = found + from.bytes.size();
    budget.spend_bytes(out.bytes.size() > budget.max_output_bytes ? out.bytes.size() : 16);
  }
  out.append(text.sub(at));
  budget.spend_bytes(out.bytes.size());
  return out;
}

Text map_case(const Text& text, char kind, Budget& budget) {
  budget.spend_characters(text.bytes.size());
  std::string out;
  bool word_start = true;
  for (std::size_t at = 0; at < text.bytes.size();) {
    const bool first = at == 0;
    const char32_t c = next_code_point(text.bytes, at);
    const bool raise = kind == 'u' || (kind == 'c' && first) || (kind == 't' && word_start) || (kind == 's' && lower(c) == c);
    append_utf8(out, raise ? upper(c) : lower(c));
    word_start = !is_letter(c);
  }
  return text.with_bytes(std::move(out));
}

List split(const Text& text, const Value* separator, std::int64_t limit, bool from_right, Budget& budget) {
  List out;
  const bool by_white = separator == nullptr || separator->is(Type::none);
  const std::string by = by_white ? std::string{} : need_text(*separator, "split").bytes;
  if (!by_white && by.empty()) throw TemplateError{"split needs a separator that is not empty"};
  std::vector<std::pair<std::size_t, std::size_t>> cuts;  // begin and end of each piece
  if (by_white) {
    const Text& all = text;
    std::size_t begin = std::string::npos;
    for (std::size_t at = 0; at < all.bytes.size();) {
      const std::size_t here = at;
      const bool white = is_white(next_code_point(all.bytes, at));
      if (!white && begin == std::string::npos) begin = here;
      if (white && begin != std::string::npos) {
        cuts.emplace_back(begin, here);
        budget.spend(1);
        begin = std::string::npos;
      }
    }
    if (begin != std::string::npos) cuts.emplace_back(begin, all.bytes.size());
  } else {
    std::size_t at = 0;
    for (std::size_t found; (found = find_text(text.bytes, by, at)) != std::string::npos; at = found + by.size()) {
      cuts.emplace_back(at, found);
      budget.spend(1);
    }
    cuts.emplace_back(at, text.bytes.size());
  }
  const auto pieces = limit < 0 ? cuts.size() : std::min<std::size_t>(cuts.size(), static_cast<std::size_t>(limit) + 1);
  const std::size_t merged = cuts.size() - pieces;  // cuts beyond the limit join the last piece, or the first from the right
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::size_t first = from_right ? (i == 0 ? 0 : i + merged) : i;
    const std::size_t last = from_right ? i + merged : (i + 1 == pieces ? cuts.size() - 1 : i);
    const std::size_t end = by_white && !from_right && i + 1 == pieces && merged > 0 ? text.bytes.size() : cuts[last].second;
    const std::size_t begin = by_white && from_right && i == 0 && merged > 0 ? 0 : cuts[first].first;
    out.push_back(Value::text(text.sub(begin, end - begin)));
  }
  budget.spend(out.size() + text.bytes.size() / 16);
  return out;
}

Text join(const List& items, const Text& separator, Budget& budget) {
  Text out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(separator);
    out.append(to_text(items[i], budget));
    if (out.bytes.size() > budget.max_output_bytes) budget.spend_bytes(out.bytes.size());
  }
  budget.spend_bytes(out.bytes.size());
  return out;
}

namespace {

// Flags, a width and a precision, as far as printf takes them and its result stays small.
void check_number_format(const std::string& flags, char kind) {
  std::size_t at = std::min(flags.find_first_not_of("-+ #0"), flags.size());
  const auto number = [&] {
    int value = 0;
    for (; at < flags.size() && flags[at] >= '0' && flags[at] <= '9'; ++at) value = std::min(value * 10 + (flags[at] - '0'), 1000);
    return value;
  };
  bool good = number() <= 256;
  if (at < flags.size() && flags[at] == '.') good = ++at && number() <= 256 && good;
  if (at != flags.size() || !good)
    throw TemplateError{"the format %" + flags + kind + " is not supported: flags, a width and a precision of at most 256"};
}

}  // namespace

Text format_percent(const Text& format, const List& arguments, Budget& budget) {
  Text out;
  std::size_t used = 0;
  for (std::size_t at = 0; at < format.bytes.size();) {
    const std::size_t percent = std::min(format.bytes.find('%', at), format.bytes.size());
    out.append(format.sub(at, percent - at));
    at = percent;
    if (at == format.bytes.size()) break;
    const std::size_t kind_at = format.bytes.find_first_not_of("-+ #0123456789.", at + 1);
    if (kind_at == std::string::npos) throw TemplateError{"incomplete format"};
    const std::string flags = format.bytes.substr(at + 1, kind_at - at - 1);
    const char kind = format.bytes[kind_at];
    at = kind_at + 1;
    budget.spend(2);
    if (kind == '%') {
      out.append(Text{"%", {}, true});
      continue;
    }
    check_number_format(flags, kind);
    if (used == arguments.size()) throw TemplateError{"not enough arguments for the format"};
    const Value& value = arguments[used++];
    char buffer[1024];  // of the longest: 310 digits, a point and 256 more
    if (kind == 's' || kind == 'r') {
      const Text shown = kind == 's' ? to_text(value, budget) : Text{repr(value, budget), {}, false};
      const bool left = !flags.empty() && flags[0] == '-';
      const std::string width = left ? flags.substr(1) : flags;
      if (width.find_first_not_of("0123456789") != std::string::npos) throw TemplateError{"unsupported format %" + flags + kind};
      out.append(pad(shown, width.empty() ? 0 : std::stoll(width), Text{" ", {}, true}, left ? -1 : 1, budget));
    } else if ((kind == 'd' || kind == 'i' || kind == 'x' || kind == 'X' || kind == 'o') && value.is_number()) {
      if (!std::isfinite(value.as_real())) throw TemplateError{real_text(value.as_real()) + " is not a whole number"};
      const auto number = value.is(Type::real) ? static_cast<long long>(std::clamp(value.as_real(), -9e18, 9e18))
                                               : static_cast<long long>(value.as_integer());
      std::snprintf(buffer, sizeof buffer, ("%" + flags + "ll" + (kind == 'i' ? 'd' : kind)).c_str(), number);
      budget.spend(4 + std::strlen(buffer) / 4);
      out.append(Text{buffer, {}, true});
    } else if ((kind == 'f' || kind == 'e' || kind == 'g') && value.is_number()) {
      std::snprintf(buffer, sizeof buffer, ("%" + flags + kind).c_str(), value.as_real());
      budget.spend(4 + std::strlen(buffer) / 4);
      out.append(Text{buffer, {}, true});
    } else {
      throw TemplateError{std::string{"the format %"} + kind + " does not take a " + type_name(value)};
    }
    if (out.bytes.size() > budget.max_output_bytes) budget.spend_bytes(out.bytes.size());
  }
  if (used < arguments.size()) throw TemplateError{"not all arguments of the format are used"};
  budget.spend_bytes(out.bytes.size());
  return out;
}

}  // namespace mekik::text::jinja
