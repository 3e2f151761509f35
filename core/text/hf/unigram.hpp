// The best path through a text by the scores of its pieces (Viterbi): Unigram models of both families.
#pragma once
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "text/hf/trie.hpp"

namespace mekik::text::hf {

// A stretch of the text and its piece; `unknown`: characters that no piece covers, neighbours joined.
struct UnigramPiece {
  std::uint32_t begin, end;
  std::int32_t id;
  bool unknown;
};

// Score is the type that the family's own library keeps sums in: its rounding decides between paths. Immutable; any thread.
template <class Score>
class UnigramLattice {
 public:
  struct Best {
    Score score = 0;
    std::int32_t start = -1, id = -1;
  };
  struct Scratch {
    std::vector<Best> best;
    std::vector<UnigramPiece> pieces;
  };

  UnigramLattice(PrefixTrie trie, Score unknown_score, std::int32_t unknown)
      : trie_(std::move(trie)), unknown_score_(unknown_score), unknown_(unknown) {}

  // The pieces of valid UTF-8, in scratch.pieces; score_of(id, length in bytes) is a Score. O(bytes * longest piece).
  template <class ScoreOf>
  void encode(std::string_view text, const ScoreOf& score_of, Scratch& scratch) const {
    auto& best = scratch.best;
    best.assign(text.size() + 1, Best{});
    std::size_t at = 0, frontier = 0;
    while (at < text.size()) {
      if constexpr (std::is_same_v<Score, float>) reset(best, at, frontier);
      const Score here = best[at].score;
      const std::size_t length = character(text[at]);
      bool single = false;
      const auto offer = [&](std::size_t end, Score score, std::int32_t id) {
        frontier = std::max(frontier, end);
        if (best[end].start < 0 || score > best[end].score) best[end] = {score, static_cast<std::int32_t>(at), id};
      };
      trie_.prefixes(text.substr(at), [&](std::size_t n, std::int32_t id) {
        offer(at + n, score_of(id, n) + here, id);
        single = single || n == length;
      });
      if (!single) offer(std::min(at + length, text.size()), unknown_score_ + here, unknown_);
      at += length;
    }
    collect(text.size(), scratch);
  }

 private:
  // SentencePiece keeps its floats exact in long texts by counting from 0 again.
  static void reset(std::vector<Best>& best, std::size_t at, std::size_t frontier) {
    constexpr Score kLargest = 100000;
    const Score offset = best[at].score;
    if (offset >= -kLargest && offset <= kLargest) return;
    for (std::size_t i = at; i <= frontier; ++i)
      if (i == at || best[i].start >= 0) best[i].score -= offset;
  }

  static std::size_t character(char first) {
    const unsigned char byte = static_cast<unsigned char>(first);
    return byte < 0xC0 ? 1u : byte < 0xE0 ? 2u : byte < 0xF0 ? 3u : 4u;
  }

  void collect(std::size_t size, Scratch& scratch) const {
    scratch.pieces.clear();
    for (std::size_t end = size; end > 0;) {
      const Best& node = scratch.best[end];
      const std::uint32_t begin = static_cast<std::uint32_t>(node.start);
      const bool unknown = node.id == unknown_;
      if (unknown && !scratch.pieces.empty() && scratch.pieces.back().unknown) scratch.pieces.back().begin = begin;
      else scratch.pieces.push_back({begin, static_cast<std::uint32_t>(end), node.id, unknown});
      end = begin;
    }
    std::reverse(scratch.pieces.begin(), scratch.pieces.end());
  }

  PrefixTrie trie_;
  Score unknown_score_;
  std::int32_t unknown_;
};

}  // namespace mekik::text::hf
