#include "base/terminal.hpp"

namespace mekik {

std::string without_controls(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F) out.append("\\x").append({kHex[byte >> 4], kHex[byte & 15]});
    else out += c;
  }
  return out;
}

}  // namespace mekik
