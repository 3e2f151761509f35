// The "decoder" of a tokenizer.json: tokens back to text.
#pragma once
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/hf/config.hpp"
#include "text/hf/regex.hpp"
#include "text/hf/text.hpp"

namespace mekik::text::hf {

// Immutable; any thread.
class Decoder {
 public:
  Decoder() = default;  // no decoder: tokens with spaces between them
  // A kind that is not known is an error that names it.
  static Result<Decoder> read(const Section& section);

  // The text of all tokens, as the library decodes them: what is no UTF-8 becomes U+FFFD. Throws TextRefused.
  std::string decode(std::vector<std::string> tokens) const;
  // What a token stands for in the middle of a text, as bytes: maybe a part of a character. Throws TextRefused. `bound`: of all tokens.
  std::string piece(std::string_view token, Bound& bound) const;
  bool drops_first_space() const;  // a text does not begin with the space of its first piece

 private:
  struct Bpe {
    std::string suffix;
  };
  struct ByteLevel {};
  struct WordPiece {
    std::string prefix;
    bool cleanup;
  };
  struct Metaspace {
    std::string sign;
    bool prepended;
  };
  struct Ctc {
    std::string pad, delimiter;
    bool cleanup;
  };
  struct Replace {
    Regex pattern;
    std::string content;
  };
  struct Fuse {};
  struct Strip {
    char32_t content;
    std::size_t start, stop;
  };
  struct ByteFallback {};
  using Kind = std::variant<Bpe, ByteLevel, WordPiece, Metaspace, Ctc, Replace, Fuse, Strip, ByteFallback>;
  struct Step {
    Kind kind;
    std::string where;  // "tokenizer.json.decoder.decoders[1]"
  };
  using Tokens = std::vector<std::string>;

  static Result<Kind> read_kind(const Section& section, const std::string& type);
  static void run(const Step& step, Tokens& tokens, Bound& bound);

  static void apply(const Bpe& step, Tokens& tokens);
  static void apply(const ByteLevel& step, Tokens& tokens);
  static void apply(const WordPiece& step, Tokens& tokens);
  static void apply(const Metaspace& step, Tokens& tokens);
  static void apply(const Ctc& step, Tokens& tokens);
  static void apply(const Replace& step, Tokens& tokens, Bound& bound);
  static void apply(const Fuse& step, Tokens& tokens);
  static void apply(const Strip& step, Tokens& tokens);
  static void apply(const ByteFallback& step, Tokens& tokens);

  std::vector<Step> steps_;
  bool present_ = false;
};

}  // namespace mekik::text::hf
