// The one place that includes Boost.JSON. The rest of the core includes this file and says mekik::json.
#pragma once
#include <boost/json.hpp>
#include <string_view>

#include "base/status.hpp"

namespace mekik::json {

using boost::json::array;
using boost::json::object;
using boost::json::serialize;
using boost::json::string;
using boost::json::value;

struct ParseLimits {
  std::size_t depth = 64;         // nested arrays and objects
  std::size_t bytes = 64u << 20;  // of the whole text
  bool duplicate_keys = false;    // true: the last one wins; false: an error
  bool bare_infinity = false;     // Infinity, -Infinity and NaN as Python's json writes them
};

// Parses one JSON text (RFC 8259, UTF-8). Errors name the byte offset and what was wrong there.
Result<value> parse(std::string_view text, const ParseLimits& limits = {});

// The member, or nullptr when `of` is not an object or lacks it.
const value* find(const value& of, std::string_view key);

}  // namespace mekik::json
