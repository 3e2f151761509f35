// Arrivals that were recorded, or made by another program.
#include <algorithm>
#include <cmath>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "simulate/scenario.hpp"

namespace mekik::simulate {
namespace {

constexpr std::size_t kMostBytes = 1u << 30;
constexpr double kMostTokens = 1 << 24;

Result<double> number(const json::value& value, const std::string& key, double least, double most) {
  const bool fits = value.is_number() && value.to_number<double>() >= least && value.to_number<double>() <= most;
  if (!fits)
    return invalid("'" + key + "' must be a number from " + std::to_string(static_cast<long long>(least)) + " to " +
                   std::to_string(static_cast<long long>(most)));
  return value.to_number<double>();
}

Result<Arrival> arrival(std::string_view line) {
  MEKIK_TRY(row, json::parse(line));
  const json::object* object = row.if_object();
  if (object == nullptr) return invalid("it is no JSON object");
  Arrival out;
  bool at = false, prompt = false, answer = false;
  for (const auto& member : *object) {
    const std::string key{member.key().data(), member.key().size()};
    if (key == "at") {
      MEKIK_TRY(seconds, number(member.value(), key, 0, 31 * 86400));
      out.at_ns = static_cast<std::uint64_t>(std::llround(seconds * 1e9));
      at = true;
    } else if (key == "prompt" || key == "answer") {
      MEKIK_TRY(tokens, number(member.value(), key, 1, kMostTokens));
      (key == "prompt" ? out.prompt : out.answer) = static_cast<std::uint32_t>(tokens);
      (key == "prompt" ? prompt : answer) = true;
    } else if (key == "tenant" || key == "prefix") {
      MEKIK_TRY(which, number(member.value(), key, 0, 1e9));
      (key == "tenant" ? out.tenant : out.prefix) = static_cast<std::uint32_t>(which) + (key == "prefix" ? 1 : 0);
    } else if (key == "priority") {
      MEKIK_TRY(priority, number(member.value(), key, -1000, 1000));
      out.priority = static_cast<std::int32_t>(priority);
      out.has_priority = true;
    } else {
      return invalid("unknown key '" + key + "'; there are at, prompt, answer, tenant, priority, prefix");
    }
  }
  if (!at || !prompt || !answer) return invalid(std::string{"it lacks '"} + (!at ? "at" : !prompt ? "prompt" : "answer") + "'");
  return out;
}

}  // namespace

Result<std::vector<Arrival>> read_trace(const std::string& path) {
  MEKIK_TRY(text, read_file(path, kMostBytes));
  std::vector<Arrival> out;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view{text}.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto read = arrival(line);
    if (!read) return invalid(path + ":" + std::to_string(number) + ": " + read.status().text);
    out.push_back(*read);
  }
  if (out.empty()) return invalid(path + ": it has no arrivals");
  std::stable_sort(out.begin(), out.end(), [](const Arrival& a, const Arrival& b) { return a.at_ns < b.at_ns; });
  return out;
}

}  // namespace mekik::simulate
