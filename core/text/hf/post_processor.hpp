// The "post_processor" of a tokenizer.json: special tokens around one text or two, and the type ids.
#pragma once
#include <cstdint>
#include <variant>
#include <vector>

#include "text/hf/config.hpp"
#include "text/tokenizer.hpp"

namespace mekik::text::hf {

// Immutable; any thread.
class PostProcessor {
 public:
  PostProcessor() = default;  // adds nothing; the second text has type 1
  // A kind that is not known, and ids from `limit` on, are errors.
  static Result<PostProcessor> read(const Section& section, std::int32_t limit);

  // `texts`: the ids of one text or of two.
  TypedTokens process(std::vector<std::vector<std::int32_t>> texts, bool add_special) const;
  // The ids that come first and last around one text.
  std::vector<std::int32_t> around() const;

 private:
  struct Piece {
    int text = -1;  // 0, 1, or -1: the ids
    std::vector<std::int32_t> ids;
    std::int32_t type = 0;
  };
  struct Template {
    std::vector<Piece> single, pair;
  };
  struct Bert {
    std::int32_t first, separator;
    bool roberta;
  };
  struct MovesOffsets {};  // "ByteLevel"
  using Step = std::variant<MovesOffsets, Template, Bert>;

  static Result<Step> read_step(const Section& section, const std::string& type, std::int32_t limit);
  static Result<std::vector<Piece>> read_template(const Section& section, std::string_view key, std::int32_t limit);
  static void apply(const MovesOffsets&, std::vector<TypedTokens>&, bool) {}
  static void apply(const Template& step, std::vector<TypedTokens>& parts, bool add_special);
  static void apply(const Bert& step, std::vector<TypedTokens>& parts, bool add_special);

  std::vector<Step> steps_;
};

}  // namespace mekik::text::hf
