// Lists of numbers as JSON text, written as they come.
#pragma once
#include <span>
#include <string>

namespace mekik::app {

// "[1,2.5,null]": the shortest text that is read back as the same float; JSON has no infinity and no NaN.
void append_json(std::span<const float> row, std::string& out);

}  // namespace mekik::app
