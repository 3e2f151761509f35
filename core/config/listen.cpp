#include "config/listen.hpp"

#include <sys/un.h>

#include <charconv>
#include <filesystem>

#include "base/text.hpp"

namespace mekik::config {

namespace {

constexpr std::string_view kTcp = "tcp://", kUnix = "unix:";

bool all_of(std::string_view text, std::string_view allowed) { return text.find_first_not_of(allowed) == std::string_view::npos; }

bool is_host(std::string_view host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    return all_of(host.substr(1, host.size() - 2), "0123456789abcdefABCDEF:.%") && host.find(':') != std::string_view::npos;
  return !host.empty() && host.size() <= 253 && all_of(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._");
}

Status check_tcp(std::string_view rest, const std::string& address) {
  const std::size_t colon = rest.rfind(':');
  const bool inside = rest.find(']') != std::string_view::npos && colon != std::string_view::npos && rest.find(']') > colon;
  if (colon == std::string_view::npos || inside) return invalid(mekik::quoted(address) + " has no port: write tcp://HOST:PORT");
  if (!is_host(rest.substr(0, colon)))
    return invalid(mekik::quoted(address) + " has no valid host: write a name, an IPv4 address, or an IPv6 address in [ ]");
  const std::string_view digits = rest.substr(colon + 1);
  std::uint32_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc{} || end != digits.data() + digits.size() || port > 65535)
    return invalid(mekik::quoted(address) + ": " + mekik::quoted(digits) + " is not a port: write a number from 0 (any free one) to 65535");
  return {};
}

}  // namespace

Result<std::string> check_listen(const std::string& address, const Origin& named_in) {
  const std::string_view text = address;
  if (text.substr(0, kTcp.size()) == kTcp) {
    MEKIK_CHECK_OK(check_tcp(text.substr(kTcp.size()), address));
    return address;
  }
  if (text.substr(0, kUnix.size()) != kUnix)
    return invalid(mekik::quoted(address) + " is not an address: write tcp://HOST:PORT or unix:PATH");
  const std::string_view path = text.substr(kUnix.size());
  if (path.empty() || path.find('\0') != std::string_view::npos) return invalid(mekik::quoted(address) + " has no path: write unix:PATH");
  namespace fs = std::filesystem;
  const fs::path folder = named_in.source ? fs::path{named_in.source->name}.parent_path() : fs::path{};
  std::error_code error;
  const std::string whole = fs::absolute(folder / path, error).lexically_normal().string();
  if (error) return invalid(mekik::quoted(address) + ": " + error.message());
  if (whole.size() >= sizeof(sockaddr_un::sun_path))
    return invalid(mekik::quoted(whole) + " is too long for a socket: at most " + std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                   " bytes");
  return std::string{kUnix} + whole;
}

bool is_any_port(const std::string& checked) { return checked.size() > 2 && checked.substr(checked.size() - 2) == ":0"; }

}  // namespace mekik::config
