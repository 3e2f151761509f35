// Tokenizers: text to token ids and back, from the metadata that a loader gives: the keys of a GGUF file, or the files of a Hugging
// Face folder.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/status.hpp"

namespace mekik::text {

// A piece of a prompt. Special tokens are recognised only inside trusted parts (a template's own text), never in what users wrote;
// apart from that the parts are tokenized as one text.
struct TextPart {
  std::string text;
  bool trusted = false;
};

// Thrown by encode and decode, and by nothing else of a tokenizer: this text is over, since a step that the model's files describe makes
// too much of it, or cannot be finished. No tokenizer that was trained comes near.
class TextRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Token ids with the segment each of them belongs to: 0, or 1 for the second of two texts where the model tells them apart.
struct TypedTokens {
  std::vector<std::int32_t> ids, types;
};

enum TokenFlag : std::uint32_t { kTokenSpecial = 1, kTokenEnd = 2, kTokenUnused = 4 };  // as mekik_token_flag

// Immutable; any thread.
class Tokenizer {
 public:
  // `metadata`: the loader's meta("tokenizer"). Unknown kinds and pre-tokenizers are errors that name the value.
  static Result<std::unique_ptr<Tokenizer>> create(const json::value& metadata);
  virtual ~Tokenizer() = default;

  // `add_special`: BOS/EOS as the model's metadata asks for. Text is UTF-8; bytes that are not become byte tokens where the
  // vocabulary has them. Time is O(n log n).
  virtual std::vector<std::int32_t> encode(std::span<const TextPart> parts, bool add_special) const = 0;
  std::vector<std::int32_t> encode(std::string_view text, bool add_special, bool parse_special) const;

  // The same for one text, with type ids (encoders). Special tokens inside the text are not recognised.
  virtual TypedTokens encode_typed(std::string_view text, bool add_special) const;
  // Two texts as the model's own template for pairs joins them (rerankers), special tokens included; texts are not trusted. A
  // model without such a template: one after the other.
  virtual TypedTokens encode_pair(std::string_view first, std::string_view second) const;

  virtual std::uint32_t size() const = 0;                     // ids are 0 .. size-1
  virtual std::string_view piece(std::int32_t id) const = 0;  // raw bytes that the token stands for, maybe a part of a character
  virtual std::string_view token(std::int32_t id) const = 0;  // as the vocabulary spells it
  virtual std::uint32_t flags(std::int32_t id) const = 0;
  virtual std::int32_t bos() const = 0;  // -1: none
  virtual std::int32_t eos() const = 0;
  virtual const std::vector<std::int32_t>& ends() const = 0;  // every token that ends generation
  // All bytes of the ids; special tokens are left out unless `special`. A SentencePiece model's one leading space is dropped.
  virtual std::string decode(std::span<const std::int32_t> ids, bool special) const = 0;
  // At least so many tokens has this text: found by counting bytes, so that a text that is far too long need not be tokenized to be
  // refused. 0 where nothing is known: a step of the tokenizer may leave any part of a text out, or one token stand for it.
  virtual std::size_t fewest_tokens(std::string_view) const { return 0; }
  virtual std::string kind() const = 0;  // "bpe, pre smollm" for `mekik model`
  // Whether encode puts a space before the first text, so that decode drops one there (Llama 2).
  virtual bool adds_space_prefix() const { return false; }
};

// Streams text out of tokens without ever cutting a UTF-8 sequence. One per answer; not thread-safe.
class Detokenizer {
 public:
  // `special`: show special tokens. `at_start`: a SentencePiece model's first space is dropped.
  Detokenizer(const Tokenizer& tokenizer, bool special, bool at_start = false);
  std::string push(std::int32_t id);  // the text that is complete now; invalid bytes become U+FFFD once they cannot be completed
  std::string finish();               // what is left, incomplete sequences as U+FFFD

 private:
  const Tokenizer* tokenizer_;
  bool special_, at_start_;
  std::string pending_;
};

}  // namespace mekik::text
