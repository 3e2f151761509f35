// A read-only trie over bytes, for all vocabulary entries that begin a text.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace mekik::text::hf {

// Immutable after construction; any thread. Children of a node lie next to each other, sorted: about 10 bytes a node.
class PrefixTrie {
 public:
  using Entry = std::pair<std::string_view, std::int32_t>;
  PrefixTrie() = default;
  // Empty texts are left out; of equal texts the last counts. The texts need not outlive this.
  explicit PrefixTrie(std::vector<Entry> entries) {
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.first < b.first; });
    struct Range {
      std::size_t begin, end, depth;
    };
    std::vector<Range> ranges{{0, entries.size(), 0}};
    nodes_.push_back({});
    for (std::size_t node = 0; node < ranges.size(); ++node) {
      auto [begin, end, depth] = ranges[node];
      for (; begin < end && entries[begin].first.size() == depth; ++begin)
        if (depth > 0) nodes_[node].id = entries[begin].second;
      nodes_[node].first = static_cast<std::uint32_t>(nodes_.size());
      while (begin < end) {
        const char label = entries[begin].first[depth];
        std::size_t next = begin + 1;
        while (next < end && entries[next].first[depth] == label) ++next;
        nodes_.push_back({});
        labels_.resize(nodes_.size());
        labels_.back() = static_cast<unsigned char>(label);
        ranges.push_back({begin, next, depth + 1});
        begin = next;
      }
      nodes_[node].count = static_cast<std::uint16_t>(nodes_.size() - nodes_[node].first);
    }
  }

  // found(length, id) for every entry that begins the text, shorter ones first.
  template <class Found>
  void prefixes(std::string_view text, const Found& found) const {
    if (nodes_.empty()) return;
    std::size_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto first = labels_.begin() + static_cast<std::ptrdiff_t>(nodes_[node].first), last = first + nodes_[node].count;
      const unsigned char byte = static_cast<unsigned char>(text[i]);
      const auto child = std::lower_bound(first, last, byte);
      if (child == last || *child != byte) return;
      node = static_cast<std::size_t>(child - labels_.begin());
      if (nodes_[node].id >= 0) found(i + 1, nodes_[node].id);
    }
  }

 private:
  struct Node {
    std::uint32_t first = 0;
    std::int32_t id = -1;
    std::uint16_t count = 0;
  };
  std::vector<Node> nodes_;
  std::vector<unsigned char> labels_{0};
};

}  // namespace mekik::text::hf
