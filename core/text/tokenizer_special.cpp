#include "text/tokenizer_special.hpp"

namespace mekik::text {

SpecialMatcher::SpecialMatcher(std::size_t bytes) { children_.reserve(bytes); }

void SpecialMatcher::add(std::string_view text, std::int32_t id, bool anywhere) {
  if (text.empty()) return;
  const auto new_node = [&] {
    nodes_.push_back({});
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  };
  std::uint32_t& root = roots_[static_cast<unsigned char>(text[0])];
  if (root == 0) root = new_node();
  std::uint32_t node = root;
  for (const char c : text.substr(1)) {
    const std::uint32_t byte = static_cast<unsigned char>(c);
    if (const std::uint32_t* child = children_.find(node, byte); child != nullptr) {
      node = *child;
      continue;
    }
    const std::uint32_t child = new_node();
    children_.add(node, byte, child);
    node = child;
  }
  nodes_[node] = {id, anywhere};
}

SpecialMatcher::Match SpecialMatcher::longest(std::string_view text, std::size_t trusted) const {
  Match best;
  if (text.empty()) return best;
  std::uint32_t node = roots_[static_cast<unsigned char>(text[0])];
  for (std::size_t length = 1; node != 0; ++length) {
    if (nodes_[node].id >= 0 && (nodes_[node].anywhere || length <= trusted)) best = {nodes_[node].id, length};
    if (length == text.size()) break;
    const std::uint32_t* child = children_.find(node, static_cast<unsigned char>(text[length]));
    node = child == nullptr ? 0 : *child;
  }
  return best;
}

}  // namespace mekik::text
