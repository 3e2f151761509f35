// Greedy pair merging, the heart of both kinds of BPE: again and again the best pair of neighbours becomes one symbol.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "text/tokenizer_cache.hpp"

namespace mekik::text {

struct Symbol {
  std::uint32_t begin = 0, length = 0;  // bytes of the text
  std::int32_t id = -1;                 // -1: not in the vocabulary
};

// What a rule says about two neighbours. Lower priorities merge first; among equal ones the leftmost.
struct Merge {
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  std::uint32_t priority = kNone;
  std::int32_t id = -1;
};

// Working memory of one encode call, reused from word to word.
struct MergeScratch {
  struct Link {
    std::int32_t previous, next;
  };
  struct Entry {
    std::uint64_t key;  // priority, then position
    std::uint32_t right, length;
    std::int32_t id;
    bool operator<(const Entry& other) const { return key > other.key; }  // std heaps have the largest on top
  };
  std::vector<Symbol> symbols;
  std::vector<Merge> pairs;
  std::vector<Link> links;
  std::vector<Entry> heap;
  WordCache words;
};

// Short texts, which are nearly all: a scan for the minimum beats any queue.
template <class Rule>
void merge_by_scan(std::vector<Symbol>& symbols, const Rule& rule, std::vector<Merge>& pairs) {
  pairs.clear();
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) pairs.push_back(rule(symbols[i], symbols[i + 1]));
  while (!pairs.empty()) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < pairs.size(); ++i)
      if (pairs[i].priority < pairs[best].priority) best = i;
    if (pairs[best].priority == Merge::kNone) return;
    symbols[best].length += symbols[best + 1].length;
    symbols[best].id = pairs[best].id;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(best));
    if (best > 0) pairs[best - 1] = rule(symbols[best - 1], symbols[best]);
    if (best < pairs.size()) pairs[best] = rule(symbols[best], symbols[best + 1]);
  }
}

// Long texts: a heap of candidates over a linked list, O(n log n). A candidate is stale once either side has changed.
template <class Rule>
void merge_by_heap(MergeScratch& scratch, const Rule& rule) {
  std::vector<Symbol>& symbols = scratch.symbols;
  auto& links = scratch.links;
  auto& heap = scratch.heap;
  const auto propose = [&](std::int32_t left, std::int32_t right) {
    if (left < 0 || right < 0) return;
    const Symbol &l = symbols[static_cast<std::size_t>(left)], &r = symbols[static_cast<std::size_t>(right)];
    const Merge merge = rule(l, r);
    if (merge.priority == Merge::kNone) return;
    heap.push_back({(std::uint64_t{merge.priority} << 32) | static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right),
                    l.length + r.length, merge.id});
    std::push_heap(heap.begin(), heap.end());
  };
  const std::int32_t n = static_cast<std::int32_t>(symbols.size());
  links.resize(symbols.size());
  heap.clear();
  for (std::int32_t i = 0; i < n; ++i) links[static_cast<std::size_t>(i)] = {i - 1, i + 1 < n ? i + 1 : -1};
  for (std::int32_t i = 1; i < n; ++i) propose(i - 1, i);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const auto entry = heap.back();
    heap.pop_back();
    const std::uint32_t left = static_cast<std::uint32_t>(entry.key);
    Symbol &l = symbols[left], &r = symbols[entry.right];
    if (l.length == 0 || r.length == 0 || l.length + r.length != entry.length) continue;
    l.length = entry.length;
    l.id = entry.id;
    r.length = 0;
    links[left].next = links[entry.right].next;
    if (links[left].next >= 0) links[static_cast<std::size_t>(links[left].next)].previous = static_cast<std::int32_t>(left);
    propose(links[left].previous, static_cast<std::int32_t>(left));
    propose(static_cast<std::int32_t>(left), links[left].next);
  }
  std::erase_if(symbols, [](const Symbol& s) { return s.length == 0; });
}

// Merges scratch.symbols (fewer than 2^31, each at least one byte) in place.
template <class Rule>
void merge_symbols(MergeScratch& scratch, const Rule& rule) {
  constexpr std::size_t kScanLimit = 40;
  if (scratch.symbols.size() <= kScanLimit) merge_by_scan(scratch.symbols, rule, scratch.pairs);
  else merge_by_heap(scratch, rule);
}

}  // namespace mekik::text
