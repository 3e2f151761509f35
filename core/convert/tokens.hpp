// What the halves of tokenizer_to_gguf share.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "convert/gguf_writer.hpp"

namespace mekik::convert {

enum TokenType : std::int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

// Thrown inside these files only: what GGUF has no words for.
struct Unsaid {
  std::string what;
};

inline std::string text_of(const json::value* value) {
  return value != nullptr && value->is_string() ? std::string{std::string_view{value->get_string()}} : std::string{};
}
inline bool flag_of(const json::value& of, std::string_view key, bool otherwise) {
  const json::value* found = json::find(of, key);
  return found != nullptr && found->is_bool() ? found->get_bool() : otherwise;
}
inline std::string type_of(const json::value& of) { return text_of(json::find(of, "type")); }

struct Tokens {
  std::vector<std::string> texts;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
  std::unordered_map<std::string, std::int32_t> ids;

  void set(std::size_t id, std::string text, std::int32_t type, float score = 0) {
    if (id >= 1u << 24) throw Unsaid{"token id " + std::to_string(id)};
    if (id >= texts.size()) {
      texts.resize(id + 1);
      types.resize(id + 1, kUnused);
      scores.resize(id + 1, -10000.0f);
    }
    ids[text] = static_cast<std::int32_t>(id);
    texts[id] = std::move(text);
    types[id] = type;
    scores[id] = score;
  }
};

// The part of a tokenizer that is not its tokens.
struct Kind {
  std::string name, pre;  // tokenizer.ggml.model and .pre
  std::vector<std::string> merges;
  std::optional<bool> add_space, remove_extra_spaces, lowercase, strip_accents;
  std::string charsmap;
  bool scored() const { return name == "llama" || name == "t5"; }
};

// `file`: tokenizer.json with a model of the type Unigram or WordPiece. Tokens come without those that are added.
Kind unigram_kind(const json::value& file, Tokens& tokens);
Kind wordpiece_kind(const json::value& file, Tokens& tokens);
// Spells them as GGUF does: U+2581 before what begins a word, nothing before what goes on.
void spell_wordpieces(Tokens& tokens);

// Keys as they go into the file, and as our own reader takes them.
class TokenizerKeys {
 public:
  void put(std::string_view key, json::value value) { values_["tokenizer.ggml." + std::string{key}] = std::move(value); }
  Status write(GgufKeys& out) const;
  const json::object& values() const { return values_; }

 private:
  json::object values_;
};

// What the file's tokenizer makes of some texts otherwise than the folder's: an Unsaid for plain words, a note for spaces.
void compare_tokenizers(const json::value& folder, const TokenizerKeys& keys, std::vector<std::string>& notes);

}  // namespace mekik::convert
