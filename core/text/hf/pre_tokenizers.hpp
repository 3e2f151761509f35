// The "pre_tokenizer" of a tokenizer.json: cuts normalised text into the words that the model sees one by one.
#pragma once
#include <memory>
#include <vector>

#include "text/hf/config.hpp"
#include "text/hf/regex.hpp"
#include "text/hf/text.hpp"

namespace mekik::text::hf {

// One step. Immutable; any thread.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Cuts, drops or rewrites the words (spans without a token); spans are never empty.
  virtual void apply(Spans& spans, MatchScratch& scratch) const = 0;
  virtual bool needs_places() const { return false; }  // reads Text::starts
  virtual bool keeps_text() const { return false; }    // no part of a text is dropped
  virtual bool spells_bytes() const { return false; }  // in GPT-2's alphabet
  std::string where;                                   // "tokenizer.json.pre_tokenizer"
};

using PreTokenizers = std::vector<std::unique_ptr<PreTokenizer>>;

// The steps that `section` describes, sequences flattened. A kind that is not known is an error that names it.
Status read_pre_tokenizer(const Section& section, PreTokenizers& steps);

}  // namespace mekik::text::hf
