// Pre-tokenization: cuts text into the pieces inside which a byte-level BPE merges. The patterns are data (tokenizer_patterns.cpp).
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace mekik::text {

// Steps that are no patterns: a pattern would look through the rest of a number at each of its digits.
// Runs of \\d in groups of three counted from the right; those only whose last digit ends a word.
inline constexpr std::string_view kDigitThrees = "(threes)", kEndingDigitThrees = "(ending threes)";

// One name of `tokenizer.ggml.pre`, from the tokenizer.json of the models that carry it.
struct PreTokenizer {
  std::string_view name;
  // Applied one after the other, each to the pieces of the step before: matches, and what lies between them, become pieces.
  // In Perl's syntax with Unicode properties; \s and \S are Unicode's White_Space.
  std::span<const std::string_view> steps;
  bool ignore_merges = false;  // a piece that is a token is emitted whole, without merging
  bool nfc = false;            // text is brought to NFC first
  bool add_bos = false;        // where the file does not say add_bos_token
  bool add_sep = false;        // the same for add_sep_token
};

std::span<const PreTokenizer> pre_tokenizers();

// Compiled steps. Immutable; any thread.
class Splitter {
 public:
  static Result<Splitter> compile(std::span<const std::string_view> steps);
  Splitter(Splitter&&) noexcept;
  Splitter& operator=(Splitter&&) noexcept;
  ~Splitter();

  // Working memory of one caller, reused from run to run.
  class Scratch;
  struct ScratchDelete {
    void operator()(Scratch* scratch) const;
  };
  using ScratchPointer = std::unique_ptr<Scratch, ScratchDelete>;
  ScratchPointer scratch() const;

  // Replaces `pieces` by those of `text`, in order and without gaps. `text` is valid UTF-8. Linear for the patterns of the table.
  void split(std::string_view text, Scratch& scratch, std::vector<std::string_view>& pieces) const;

 private:
  static void split_threes(std::string_view piece, bool ending, std::vector<std::string_view>& out);

  struct Impl;
  explicit Splitter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace mekik::text
