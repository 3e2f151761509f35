#include "text/pair.hpp"

#include <algorithm>

namespace mekik::text {

namespace {

constexpr std::string_view kQuery = "{query}", kDocument = "{document}";

std::vector<TextPart> fill(std::string_view form, std::string_view query, std::string_view document) {
  std::vector<TextPart> parts;
  while (!form.empty()) {
    const std::size_t q = form.find(kQuery), d = form.find(kDocument), at = std::min(q, d);
    if (const std::string_view own = form.substr(0, at); !own.empty()) parts.push_back({std::string{own}, true});
    if (at == std::string_view::npos) break;
    parts.push_back({std::string{q < d ? query : document}, false});
    form.remove_prefix(at + (q < d ? kQuery : kDocument).size());
  }
  return parts;
}

}  // namespace

Status check_pair_template(std::string_view pair_template) {
  for (const std::string_view word : {kQuery, kDocument})
    if (pair_template.find(word) == std::string_view::npos) return invalid("the text of a pair lacks " + std::string{word});
  return {};
}

TypedTokens encode_pair(const Tokenizer& tokenizer, std::string_view pair_template, std::string_view query, std::string_view document) {
  if (pair_template.empty()) return tokenizer.encode_pair(query, document);
  return {tokenizer.encode(fill(pair_template, query, document), false), {}};
}

}  // namespace mekik::text
