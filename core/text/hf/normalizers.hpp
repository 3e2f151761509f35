// The "normalizer" of a tokenizer.json: what is done to text before it is cut.
#pragma once
#include <memory>
#include <vector>

#include "text/hf/config.hpp"
#include "text/hf/regex.hpp"
#include "text/hf/text.hpp"

namespace mekik::text::hf {

// One step. Immutable; any thread. The text is never empty.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(Text& text, MatchScratch& scratch) const = 0;
  // How many bytes of a text become one at most; 0: any number.
  virtual std::size_t shrinks() const { return 0; }
  std::string where;  // "tokenizer.json.normalizer.normalizers[1]"
};

using Normalizers = std::vector<std::unique_ptr<Normalizer>>;

// The steps that `section` describes, sequences flattened. A kind that is not known is an error that names it.
Status read_normalizer(const Section& section, Normalizers& steps);

// Throws TextRefused.
void normalize(const Normalizers& steps, Text& text, MatchScratch& scratch);

// Puts a word that begins at `base` as its bytes in GPT-2's alphabet; shared with the pre-tokenizer of the same name.
void put_bytes(std::string_view word, std::size_t base, Rewriter& after);
std::string_view letter_of_byte(unsigned char byte);
// The byte that a character of that alphabet stands for, or -1.
int byte_of_letter(char32_t c);
// {"String": ".."} or {"Regex": ".."} under "pattern".
Result<Regex> read_pattern(const Section& section);
// Replaces every match by `content`. Shared with Metaspace and the decoders.
void replace_all(Text& text, const Regex& pattern, std::string_view content, MatchScratch& scratch);

}  // namespace mekik::text::hf
