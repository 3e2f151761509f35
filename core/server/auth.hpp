// The API keys.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/api_error.hpp"
#include "server/http.hpp"

namespace mekik::server {

// Keeps only digests of the keys, and compares digests in constant time, so that neither timing nor a core dump gives one away.
class KeyCheck {
 public:
  explicit KeyCheck(const std::vector<std::string>& keys);  // none: nobody is asked
  // Nothing when the request may pass; then `tenant` is a number of its key, the same at every start, or 0 where nobody is asked. Only
  // "Authorization: Bearer KEY" counts.
  MaybeError check(const Head& head, std::uint64_t& tenant) const;

 private:
  std::vector<std::string> digests_;  // SHA-256, hex
};

}  // namespace mekik::server
