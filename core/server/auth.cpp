#include "server/auth.hpp"

#include "base/text.hpp"

namespace mekik::server {

namespace {

bool same(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return difference == 0;
}

ApiError refused(std::string message) { return {401, std::move(message), "", "invalid_api_key", {{"WWW-Authenticate", "Bearer"}}}; }

}  // namespace

KeyCheck::KeyCheck(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) digests_.push_back(sha256_hex(key));
}

MaybeError KeyCheck::check(const Head& head, std::uint64_t& tenant) const {
  tenant = 0;
  if (digests_.empty()) return std::nullopt;
  const std::string* field = head.header("Authorization");
  if (field == nullptr) return refused("an API key is needed: send \"Authorization: Bearer KEY\"");
  const std::size_t space = field->find(' ');
  if (space == std::string::npos || !equals_ignoring_case(std::string_view{*field}.substr(0, space), "bearer"))
    return refused("the Authorization header must be \"Bearer KEY\"");
  std::string_view key = std::string_view{*field}.substr(space);
  while (!key.empty() && key.front() == ' ') key.remove_prefix(1);
  if (key.empty()) return refused("the API key is not right");
  const std::string given = sha256_hex(key);
  for (const std::string& digest : digests_)  // all of them, however early one is right
    if (same(given, digest)) tenant = std::stoull(sha256_hex("tenant " + digest).substr(0, 16), nullptr, 16) | 1;
  if (tenant == 0) return refused("the API key is not right");
  return std::nullopt;
}

}  // namespace mekik::server
