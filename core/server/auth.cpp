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

KeyCheck::KeyCheck(std::string_view key) : digest_{key.empty() ? std::string{} : sha256_hex(key)} {}

MaybeError KeyCheck::check(const Head& head) const {
  if (digest_.empty()) return std::nullopt;
  const std::string* field = head.header("Authorization");
  if (field == nullptr) return refused("an API key is needed: send \"Authorization: Bearer KEY\"");
  const std::size_t space = field->find(' ');
  if (space == std::string::npos || !equals_ignoring_case(std::string_view{*field}.substr(0, space), "bearer"))
    return refused("the Authorization header must be \"Bearer KEY\"");
  std::string_view key = std::string_view{*field}.substr(space);
  while (!key.empty() && key.front() == ' ') key.remove_prefix(1);
  if (key.empty() || !same(sha256_hex(key), digest_)) return refused("the API key is not right");
  return std::nullopt;
}

}  // namespace mekik::server
