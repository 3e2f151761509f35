#include "app/numbers.hpp"

#include <charconv>

namespace mekik::app {

void append_json(std::span<const float> row, std::string& out) {
  char number[32];
  out += '[';
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0) out += ',';
    if (row[i] - row[i] == 0) out.append(number, std::to_chars(number, number + sizeof number, row[i]).ptr);
    else out += "null";
  }
  out += ']';
}

}  // namespace mekik::app
