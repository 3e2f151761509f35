// Server-sent events (HTML standard, 9.2): one line of JSON each.
#pragma once
#include <string>
#include <string_view>

#include "base/json.hpp"

namespace mekik::server {

inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
inline std::string sse_event(const json::object& data) { return "data: " + json::serialize(data) + "\n\n"; }

}  // namespace mekik::server
