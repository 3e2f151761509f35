// A tokenizer of Hugging Face's kind, put together: added tokens, normalizer, pre-tokenizer, model, post-processor, decoder.
#pragma once
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "text/hf/added_tokens.hpp"
#include "text/hf/decoders.hpp"
#include "text/hf/models.hpp"
#include "text/hf/normalizers.hpp"
#include "text/hf/post_processor.hpp"
#include "text/hf/pre_tokenizers.hpp"
#include "text/tokenizer_base.hpp"

namespace mekik::text::hf {

struct Pipeline {
  Normalizers normalizers;
  PreTokenizers pre_tokenizers;
  std::unique_ptr<Model> model;
  PostProcessor post_processor;
  Decoder decoder;
  std::vector<AddedToken> added;  // distinct contents
  std::int32_t bos = -1, eos = -1;
  std::vector<std::int32_t> ends;  // ids of the vocabulary
  std::string kind;
};

// Computes what the Rust library `tokenizers` computes (tests/tokenizers/hf.cpp compares).
class PipelineTokenizer final : public Tokenizer {
 public:
  explicit PipelineTokenizer(Pipeline parts);
  using Tokenizer::encode;
  std::vector<std::int32_t> encode(std::span<const TextPart> parts, bool add_special) const override;
  TypedTokens encode_typed(std::string_view text, bool add_special) const override;
  TypedTokens encode_pair(std::string_view first, std::string_view second) const override;
  std::uint32_t size() const override { return static_cast<std::uint32_t>(flags_.size()); }
  std::string_view piece(std::int32_t id) const override { return known(id) ? pieces_[static_cast<std::size_t>(id)] : std::string_view{}; }
  std::string_view token(std::int32_t id) const override { return known(id) ? spelled_[static_cast<std::size_t>(id)] : std::string_view{}; }
  std::uint32_t flags(std::int32_t id) const override { return known(id) ? flags_[static_cast<std::size_t>(id)] : 0; }
  std::int32_t bos() const override { return parts_.bos; }
  std::int32_t eos() const override { return parts_.eos; }
  const std::vector<std::int32_t>& ends() const override { return parts_.ends; }
  std::string decode(std::span<const std::int32_t> ids, bool special) const override;
  std::string kind() const override { return parts_.kind; }
  bool adds_space_prefix() const override { return drops_first_space_; }
  std::size_t fewest_tokens(std::string_view text) const override { return longest_ == 0 ? 0 : fewest_tokens_of(text, kept_, longest_); }

 private:
  bool known(std::int32_t id) const { return id >= 0 && static_cast<std::size_t>(id) < flags_.size(); }
  // The ids of the text without what the post-processor adds.
  std::vector<std::int32_t> text_ids(std::span<const TextPart> parts) const;
  void find_bounds();
  Spans added_spans(const Text& text, std::span<const Stretch> stretches, MatchScratch& scratch) const;

  Pipeline parts_;
  AddedMatcher plain_, normalized_;
  StringTable spelled_, decoded_, pieces_;  // decoded_: as the decoder gets them
  std::vector<std::uint32_t> flags_;
  std::unordered_set<std::string_view> hidden_;  // the contents of special tokens, in parts_
  bool needs_places_ = false, drops_first_space_ = false;
  std::bitset<256> kept_;    // bytes of a text that no step leaves out
  std::size_t longest_ = 0;  // bytes of a text that are one token at most; 0: not known
};

}  // namespace mekik::text::hf
