// The "model" of a tokenizer.json: words to ids.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "text/hf/config.hpp"
#include "text/hf/unigram.hpp"
#include "text/tokenizer_hash.hpp"
#include "text/tokenizer_merge.hpp"

namespace mekik::text::hf {

// Texts and ids of a vocabulary. Ids may have holes; a text has one id.
class TokenTable {
 public:
  // Entries in the order of the file; of equal texts, and of equal ids, the last counts. Errors name `where`.
  static Result<TokenTable> build(const std::vector<std::pair<std::string_view, std::int64_t>>& entries, std::string_view where);

  std::int32_t find(std::string_view text) const {
    const std::int32_t entry = index_.find(texts_, text);
    return entry < 0 ? -1 : ids_[static_cast<std::size_t>(entry)];
  }
  bool has(std::int32_t id) const {
    return id >= 0 && static_cast<std::size_t>(id) < entry_of_.size() && entry_of_[static_cast<std::size_t>(id)] >= 0;
  }
  std::string_view text(std::int32_t id) const {
    return has(id) ? texts_[static_cast<std::size_t>(entry_of_[static_cast<std::size_t>(id)])] : std::string_view{};
  }
  std::size_t count() const { return count_; }                                        // different texts
  std::int32_t limit() const { return static_cast<std::int32_t>(entry_of_.size()); }  // ids are below
  std::size_t longest() const { return longest_; }                                    // bytes
  // The ids of "<0x00>" to "<0xFF>", -1 where there is none.
  std::array<std::int32_t, 256> byte_ids() const;

 private:
  StringTable texts_;
  TextIndex index_;
  std::vector<std::int32_t> ids_, entry_of_;
  std::size_t count_ = 0, longest_ = 0;
};

// Working memory of one encode call.
struct ModelScratch {
  MergeScratch merge;
  UnigramLattice<double>::Scratch lattice;
  std::string text;
};

// Immutable; any thread.
class Model {
 public:
  explicit Model(TokenTable tokens) : tokens_(std::move(tokens)) {}
  virtual ~Model() = default;
  // Appends the ids of a word, which is valid UTF-8 and not empty.
  virtual void encode(std::string_view word, std::vector<std::int32_t>& ids, ModelScratch& scratch) const = 0;
  virtual std::string kind() const = 0;
  virtual std::int32_t unknown() const { return -1; }
  // Every character becomes a token, or a part of one whose text it is in.
  virtual bool reads_all() const { return false; }
  const TokenTable& tokens() const { return tokens_; }

 private:
  TokenTable tokens_;
};

// A kind that is not known is an error that names it.
Result<std::unique_ptr<Model>> read_model(const Section& section);
Result<std::unique_ptr<Model>> read_bpe(const Section& section);
Result<std::unique_ptr<Model>> read_unigram(const Section& section);
// {"token": id, ..} under "vocab".
Result<TokenTable> read_token_ids(const Section& section);

}  // namespace mekik::text::hf
