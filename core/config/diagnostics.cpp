#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>

#include "base/text.hpp"
#include "config/value.hpp"

namespace mekik::config {

namespace {

constexpr std::size_t kShownBytes = 150;  // of a long line, around the column

std::string_view line_of(const Origin& at) {
  std::string_view rest = at.source->text;
  for (std::uint32_t line = 1; line < at.line && !rest.empty(); ++line) rest.remove_prefix(std::min(rest.size() - 1, rest.find('\n')) + 1);
  rest = rest.substr(0, rest.find('\n'));
  if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
  return rest;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' || c == '+';
}

// One past the last byte of the key or value at `begin`: a string with its quotes, else a word, at least one byte.
std::size_t token_end(std::string_view line, std::size_t begin) {
  if (begin >= line.size()) return begin + 1;
  std::size_t end = begin;
  if (line[begin] == '"' || line[begin] == '\'') {
    for (++end; end < line.size() && line[end] != line[begin]; ++end)
      if (line[begin] == '"' && line[end] == '\\') ++end;
    return std::min(end + 1, line.size());
  }
  while (end < line.size() && is_word(line[end])) ++end;
  return std::max(end, begin + 1);
}

void mask(std::string& line, std::size_t begin) {
  // What may go on in the next line, or hold quotes of its own, is masked to the end.
  if (begin >= line.size()) return;
  std::size_t end = token_end(line, begin);
  if (line.compare(begin, 3, "\"\"\"") == 0 || line.compare(begin, 3, "'''") == 0 || line[begin] == '[' || line[begin] == '{')
    end = line.size();
  std::fill(line.begin() + static_cast<std::ptrdiff_t>(std::min(begin, line.size())),
            line.begin() + static_cast<std::ptrdiff_t>(std::min(end, line.size())), '*');
}

// Also where the file could not be parsed, and nobody knows yet which keys are secret.
void mask_named_like_secrets(std::string& line) {
  static constexpr std::array<std::string_view, 4> kNames{"key", "token", "secret", "password"};
  static constexpr std::array<std::string_view, 6> kHolders{"api_token",    "auth_token",   "access_token",
                                                            "bearer_token", "secret_token", "session_token"};
  for (std::size_t equals = line.find('='); equals != std::string::npos; equals = line.find('=', equals + 1)) {
    std::size_t end = line.find_last_not_of(" \t\"'", equals == 0 ? 0 : equals - 1);
    if (end == std::string::npos || end >= equals) continue;
    ++end;
    const std::string_view before = std::string_view{line}.substr(0, end);
    const std::size_t value = line.find_first_not_of(" \t", equals + 1);
    // A number of tokens is told from a token by what is counted.
    const bool count = before.ends_with("_token") && value != std::string::npos &&
                       std::isdigit(static_cast<unsigned char>(line[value])) != 0 &&
                       !std::any_of(kHolders.begin(), kHolders.end(), [&](std::string_view holder) { return before.ends_with(holder); });
    const bool secret = !count && std::any_of(kNames.begin(), kNames.end(), [&](std::string_view name) { return before.ends_with(name); });
    if (secret && value != std::string::npos) std::fill(line.begin() + static_cast<std::ptrdiff_t>(value), line.end(), '*');
  }
}

// Part of a long line: where it starts and how much of it is shown, not inside a character.
std::pair<std::size_t, std::size_t> window(std::string_view line, std::size_t column) {
  if (line.size() <= kShownBytes) return {0, line.size()};
  std::size_t begin = column > kShownBytes / 2 ? column - kShownBytes / 2 : 0;
  const auto continues = [&](std::size_t i) { return i < line.size() && (static_cast<unsigned char>(line[i]) & 0xC0) == 0x80; };
  while (continues(begin)) ++begin;
  std::size_t end = std::min(line.size(), begin + kShownBytes);
  while (continues(end)) ++end;
  return {begin, end - begin};
}

std::string printable(std::string_view text) {
  std::string out = utf8_replace_invalid(text);
  for (char& c : out)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F) c = '?';
  return out;
}

void excerpt(std::string& out, const Diagnostic& diagnostic, const std::vector<Origin>& hidden) {
  const Origin& at = diagnostic.at;
  std::string line{line_of(at)};
  const std::size_t column = std::min<std::size_t>(at.column == 0 ? 0 : at.column - 1, line.size());
  const std::size_t end = std::min(token_end(line, column), std::max(line.size(), column + 1));
  for (const Origin& secret : hidden)
    if (secret.source == at.source && secret.line == at.line && secret.column > 0) mask(line, secret.column - 1);
  mask_named_like_secrets(line);
  const auto [begin, shown] = window(line, column);
  const std::string number = std::to_string(at.line);
  const std::string margin(std::max<std::size_t>(5, number.size()), ' ');
  out += margin.substr(number.size()) + number + " | " + printable(std::string_view{line}.substr(begin, shown)) + "\n" + margin + " | ";
  for (const char c : line.substr(begin, column - begin)) {
    if (c == '\t') out += '\t';
    else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) out += ' ';
  }
  const std::string_view token = std::string_view{line}.substr(std::min(column, line.size()), end - column);
  const std::size_t length = is_utf8(token) ? std::max<std::size_t>(1, utf8_length(token)) : 1;
  out += '^' + std::string(std::min<std::size_t>(length, 60) - 1, '~');
  if (!diagnostic.hint.empty()) out += " " + diagnostic.hint;
  out += '\n';
}

}  // namespace

std::string place(const Origin& origin) {
  if (!origin.source) return {};
  if (origin.line == 0) return origin.source->name;
  return origin.source->name + ":" + std::to_string(origin.line) + ":" + std::to_string(origin.column);
}

void Diagnostics::error(const Origin& at, std::string message, std::string hint) {
  all_.push_back({at, std::move(message), std::move(hint), false});
  ++errors_;
}

void Diagnostics::warning(const Origin& at, std::string message, std::string hint) {
  all_.push_back({at, std::move(message), std::move(hint), true});
}

std::string Diagnostics::render() const {
  std::vector<const Diagnostic*> sorted;
  for (const Diagnostic& diagnostic : all_) sorted.push_back(&diagnostic);
  const auto key = [](const Diagnostic* d) {
    return std::tuple{d->at.source ? std::string_view{d->at.source->name} : std::string_view{}, d->at.line, d->at.column};
  };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Diagnostic* a, const Diagnostic* b) { return key(a) < key(b); });
  std::string out;
  for (const Diagnostic* diagnostic : sorted) {
    const std::string where = place(diagnostic->at);
    out += where + (where.empty() ? "" : ": ") + (diagnostic->warning ? "warning: " : "error: ") + diagnostic->message;
    if (diagnostic->at.source && diagnostic->at.line > 0) {
      out += '\n';
      excerpt(out, *diagnostic, hidden_);
    } else {
      out += (diagnostic->hint.empty() ? "" : " (" + diagnostic->hint + ")") + "\n";
    }
  }
  return out;
}

Status Diagnostics::status() const { return ok() ? Status{} : invalid(render()); }

}  // namespace mekik::config
