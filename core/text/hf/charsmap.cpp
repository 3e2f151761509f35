#include "text/hf/charsmap.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mekik::text::hf {

namespace {

// Units of a double array as darts-clone lays them out.
bool has_leaf(std::uint32_t unit) { return ((unit >> 8) & 1) != 0; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7FFFFFFFu; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FFu; }
std::uint32_t offset_of(std::uint32_t unit) { return (unit >> 10) << ((unit & 0x200u) >> 6); }

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

Result<Charsmap> Charsmap::read(std::string_view blob) {
  const auto wrong = [](const std::string& what) { return invalid("the precompiled normalisation table " + what); };
  if (blob.size() < 4) return wrong("is too short");
  const std::size_t size = little_endian(blob);
  if (size % 4 != 0 || size == 0 || size > blob.size() - 4)
    return wrong("says that its array has " + std::to_string(size) + " bytes, of " + std::to_string(blob.size()) + " in all");
  Charsmap map;
  map.units_.reserve(size / 4);
  for (std::size_t at = 4; at < 4 + size; at += 4) map.units_.push_back(little_endian(blob.substr(at)));
  map.replacements_ = blob.substr(4 + size);
  // What takes the place of a character or two; else a short text could become one without end.
  constexpr std::size_t kLongest = 256;
  for (std::size_t at = 0; at < map.replacements_.size();) {
    const std::size_t end = std::min(map.replacements_.find('\0', at), map.replacements_.size());
    if (end - at > kLongest) return wrong("has a replacement of more than 256 bytes");
    at = end + 1;
  }
  return map;
}

template <class Found>
void Charsmap::prefixes(std::string_view text, const Found& found) const {
  std::size_t node = offset_of(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned char byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) return;
    node ^= byte;
    if (node >= units_.size() || label_of(units_[node]) != byte) return;
    const std::uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if (has_leaf(unit) && (node >= units_.size() || !found(i + 1, value_of(units_[node])))) return;
  }
}

std::string_view Charsmap::replacement(std::uint32_t value) const {
  if (value >= replacements_.size()) return {};
  const std::string_view rest = std::string_view{replacements_}.substr(value);
  return rest.substr(0, rest.find('\0'));
}

std::optional<Charsmap::Match> Charsmap::longest(std::string_view text) const {
  std::optional<Match> best;
  prefixes(text, [&](std::size_t length, std::uint32_t value) {
    if (const std::string_view with = replacement(value); is_utf8(with)) best = Match{length, with};
    return true;
  });
  return best;
}

std::optional<Charsmap::Match> Charsmap::shortest(std::string_view text) const {
  std::optional<Match> first;
  prefixes(text, [&](std::size_t length, std::uint32_t value) {
    if (const std::string_view with = replacement(value); is_utf8(with)) first = Match{length, with};
    return false;
  });
  return first;
}

Result<std::string> decode_base64(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  int count = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+' || c == '-' ? 62
                      : c == '/' || c == '_' ? 63
                                             : -1;
    if (digit < 0) return invalid("byte " + std::to_string(i) + " is not base64");
    bits = (bits << 6) | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count >= 8) out += static_cast<char>((bits >> (count -= 8)) & 0xFF);
  }
  return out;
}

}  // namespace mekik::text::hf
