#include "json.hpp"

#include <charconv>
#include <cmath>

namespace mekik_gguf {

namespace {

template <class T>
void append_chars(std::string& out, T value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

}  // namespace

void append_number(std::string& out, std::int64_t value) { append_chars(out, value); }
void append_number(std::string& out, std::uint64_t value) { append_chars(out, value); }

void append_number(std::string& out, double value) {
  if (std::isinf(value)) {
    out += value > 0 ? "1e999" : "-1e999";
    return;
  }
  const std::size_t begin = out.size();
  append_chars(out, value);
  // A real number stays one for whoever reads it: 10000 would read as an integer.
  if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
}

}  // namespace mekik_gguf
