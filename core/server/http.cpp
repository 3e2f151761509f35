#include "server/http.hpp"

#include <array>
#include <ctime>

#include "base/text.hpp"

namespace mekik::server {

namespace {

std::uint64_t or_default(std::uint64_t value, std::uint64_t fallback) { return value == 0 ? fallback : value; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 64> out{};
  // strftime would follow the locale; HTTP wants English.
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::snprintf(out.data(), out.size(), "%s, %02d %s %d %02d:%02d:%02d GMT", kDays[utc.tm_wday], utc.tm_mday, kMonths[utc.tm_mon],
                utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
  return out.data();
}

}  // namespace

Limits Limits::of(const config::ServerUse& use) {
  Limits limits;
  limits.body_bytes = or_default(use.max_body_bytes, limits.body_bytes);
  limits.header_bytes = or_default(use.max_header_bytes, limits.header_bytes);
  limits.header_timeout_ns = or_default(use.header_timeout_ns, limits.header_timeout_ns);
  limits.body_timeout_ns = or_default(use.body_timeout_ns, limits.body_timeout_ns);
  limits.idle_timeout_ns = or_default(use.idle_timeout_ns, limits.idle_timeout_ns);
  limits.stall_timeout_ns = or_default(use.stall_timeout_ns, limits.stall_timeout_ns);
  limits.drain_timeout_ns = or_default(use.drain_timeout_ns, limits.drain_timeout_ns);
  if (use.max_connections != 0) limits.connections = use.max_connections;
  return limits;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

std::size_t Head::count(std::string_view name) const {
  std::size_t found = 0;
  for (const Header& header : headers) found += equals_ignoring_case(header.first, name) ? 1 : 0;
  return found;
}

const std::string* Head::header(std::string_view name) const {
  for (const Header& header : headers)
    if (equals_ignoring_case(header.first, name)) return &header.second;
  return nullptr;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (out.find('\0') != std::string::npos || !is_utf8(out)) return std::nullopt;
  return out;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

std::string serialize_head(int status, bool http_1_1, const std::vector<Header>& headers, std::string_view framing, bool keep_alive) {
  std::string out = "HTTP/1.1 " + std::to_string(status) + ' ';
  out += reason_phrase(status);
  out += "\r\nDate: " + http_date() + "\r\nServer: mekik\r\n";
  for (const Header& header : headers) out += header.first + ": " + header.second + "\r\n";
  if (!framing.empty()) (out += framing) += "\r\n";
  if (!keep_alive) out += "Connection: close\r\n";
  else if (!http_1_1) out += "Connection: keep-alive\r\n";
  out += "\r\n";
  return out;
}

}  // namespace mekik::server
