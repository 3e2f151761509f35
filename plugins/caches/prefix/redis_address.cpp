#include <stdexcept>

#include "redis.hpp"

namespace mekik::prefix_cache {

namespace {

int number(const std::string& text, int most, const char* what) {
  if (text.empty() || text.size() > 5 || text.find_first_not_of("0123456789") != std::string::npos || std::stoi(text) > most)
    throw std::invalid_argument{std::string{"its "} + what + " is no number from 0 to " + std::to_string(most)};
  return std::stoi(text);
}

}  // namespace

std::string RedisOptions::shown() const {
  return socket.empty() ? "redis://" + host + ":" + std::to_string(port) + "/" + std::to_string(db)
                        : "unix:" + socket + "?db=" + std::to_string(db);
}

RedisOptions parse_redis(const std::string& address) {
  constexpr const char* kShape = "it is written redis://[user@]host[:port][/db] or unix:path[?db=n]";
  RedisOptions out;
  if (address.starts_with("unix:")) {
    out.socket = address.substr(5);
    if (const auto at = out.socket.find("?db="); at != std::string::npos) {
      out.db = number(out.socket.substr(at + 4), 99999, "database");
      out.socket.resize(at);
    }
    if (out.socket.empty()) throw std::invalid_argument{kShape};
    return out;
  }
  if (address.starts_with("rediss://")) throw std::invalid_argument{"connections with TLS are not supported; use a tunnel, or a socket"};
  if (!address.starts_with("redis://")) throw std::invalid_argument{kShape};
  std::string rest = address.substr(8);
  if (const auto at = rest.rfind('@'); at != std::string::npos) {
    out.user = rest.substr(0, at);
    if (out.user.find(':') != std::string::npos)
      throw std::invalid_argument{"a password does not belong into a pipeline; write it into a file and name that as redis_password_file"};
    rest.erase(0, at + 1);
  }
  if (const auto at = rest.find('/'); at != std::string::npos) {
    if (at + 1 < rest.size()) out.db = number(rest.substr(at + 1), 99999, "database");
    rest.resize(at);
  }
  const auto end = rest.starts_with('[') ? rest.find(']') : 0;
  if (end == std::string::npos) throw std::invalid_argument{kShape};
  if (const auto at = rest.find(':', end); at != std::string::npos) {
    out.port = number(rest.substr(at + 1), 65535, "port");
    rest.resize(at);
  }
  out.host = end > 0 ? rest.substr(1, end - 1) : rest;
  if (out.host.empty()) throw std::invalid_argument{kShape};
  return out;
}

}  // namespace mekik::prefix_cache
