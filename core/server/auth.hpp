// The API key.
#pragma once
#include <string>
#include <string_view>

#include "server/api_error.hpp"
#include "server/http.hpp"

namespace mekik::server {

// Keeps only a digest of the key, and compares digests in constant time, so that neither timing nor a core dump gives it away.
class KeyCheck {
 public:
  explicit KeyCheck(std::string_view key);  // empty: nobody is asked
  // Nothing when the request may pass. Only "Authorization: Bearer KEY" counts.
  MaybeError check(const Head& head) const;

 private:
  std::string digest_;  // SHA-256, hex
};

}  // namespace mekik::server
