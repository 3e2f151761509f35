// Unigram of a tokenizer.json: the path of the largest sum of scores.
#include <atomic>
#include <limits>

#include "base/log.hpp"
#include "base/text.hpp"
#include "text/hf/models.hpp"

namespace mekik::text::hf {

namespace {

class Unigram final : public Model {
 public:
  Unigram(TokenTable tokens, std::vector<double> scores, PrefixTrie trie, double unknown_score, std::int32_t unknown, bool bytes)
      : Model(std::move(tokens)),
        scores_(std::move(scores)),
        lattice_(std::move(trie), unknown_score, unknown),
        unknown_(unknown),
        bytes_(bytes),
        of_byte_(this->tokens().byte_ids()) {}

  std::string kind() const override { return bytes_ ? "unigram with bytes" : "unigram"; }
  std::int32_t unknown() const override { return unknown_; }

  void encode(std::string_view word, std::vector<std::int32_t>& ids, ModelScratch& scratch) const override {
    scratch.merge.words.encode(word, ids, [&] { encode_new(word, ids, scratch); });
  }

 private:
  void encode_new(std::string_view word, std::vector<std::int32_t>& ids, ModelScratch& scratch) const {
    lattice_.encode(
        word, [this](std::int32_t id, std::size_t) { return scores_[static_cast<std::size_t>(id)]; }, scratch.lattice);
    for (const UnigramPiece& piece : scratch.lattice.pieces) {
      if (!piece.unknown) {
        ids.push_back(piece.id);
        continue;
      }
      // Unknown neighbours together may spell a token after all.
      const std::string_view text = word.substr(piece.begin, piece.end - piece.begin);
      if (const std::int32_t id = tokens().find(text); id >= 0) ids.push_back(id);
      else if (!(bytes_ && spell_bytes(text, ids))) {
        if (unknown_ >= 0) ids.push_back(unknown_);
        else warn_of_loss(text);
      }
    }
  }

  bool spell_bytes(std::string_view text, std::vector<std::int32_t>& ids) const {
    for (const char c : text)
      if (of_byte_[static_cast<unsigned char>(c)] < 0) return false;
    for (const char c : text) ids.push_back(of_byte_[static_cast<unsigned char>(c)]);
    return true;
  }

  void warn_of_loss(std::string_view text) const {
    if (warned_.test_and_set()) return;
    log::warning("tokenizer",
                 "the vocabulary has neither a token for " + quoted(text) + " nor one for unknown characters; texts lose what it lacks");
  }

  std::vector<double> scores_;
  UnigramLattice<double> lattice_;
  std::int32_t unknown_;
  bool bytes_;
  std::array<std::int32_t, 256> of_byte_;
  mutable std::atomic_flag warned_{};
};

}  // namespace

Result<std::unique_ptr<Model>> read_unigram(const Section& section) {
  constexpr double kUnknownPenalty = 10;
  MEKIK_TRY(list, section.need_array("vocab"));
  std::vector<std::pair<std::string_view, std::int64_t>> entries;
  std::vector<PrefixTrie::Entry> pieces;
  std::vector<double> scores;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < list->size(); ++i) {
    const json::array* entry = (*list)[i].if_array();
    if (entry == nullptr || entry->size() != 2 || !(*entry)[0].is_string() || !(*entry)[1].is_number())
      return invalid(section.path("vocab") + "[" + std::to_string(i) + "] is not a token and its score");
    const json::string& text = (*entry)[0].get_string();
    entries.emplace_back(std::string_view{text.data(), text.size()}, static_cast<std::int64_t>(i));
    pieces.emplace_back(entries.back().first, static_cast<std::int32_t>(i));
    scores.push_back((*entry)[1].to_number<double>());
    least = std::min(least, scores.back());
  }
  MEKIK_TRY(tokens, TokenTable::build(entries, section.path("vocab")));
  MEKIK_TRY(unknown, section.integer("unk_id", -1));
  MEKIK_TRY(bytes, section.flag("byte_fallback", false));
  if (section.has("unk_id") && (unknown < 0 || unknown >= static_cast<std::int64_t>(list->size())))
    return invalid(section.path("unk_id") + " is " + std::to_string(unknown) + ", but the vocabulary has the ids 0 to " +
                   std::to_string(list->size() - 1));
  return std::unique_ptr<Model>{std::make_unique<Unigram>(std::move(tokens), std::move(scores), PrefixTrie{std::move(pieces)},
                                                          least - kUnknownPenalty, static_cast<std::int32_t>(unknown), bytes)};
}

}  // namespace mekik::text::hf
