// Takes an answer apart while it comes: reasoning, content, calls of functions.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/answer/body.hpp"
#include "text/answer/format.hpp"
#include "text/answer/known_tools.hpp"
#include "text/tokenizer.hpp"

namespace mekik::text {

struct AnswerPiece {
  enum Kind { content, reasoning, call, arguments };
  Kind kind = content;
  std::string text;        // call: the function's name
  std::string id;          // call: as the answer spelled it, may be empty
  std::size_t number = 0;  // call, arguments: of the call, from 0
  // content: where it stands in all that was pushed. Special tokens that are not shown are pieces without text.
  std::size_t begin = 0, end = 0;
};

// Where an answer begins: the prompt may have opened a part, or an empty one.
struct AnswerStart {
  int part = -1;        // index into the format's parts; -1: in none
  bool behind = false;  // reasoning that the prompt closed: white space before the answer is left out
};
// By what the template wrote at the end of the prompt; text of messages opens nothing.
AnswerStart answer_start(const AnswerFormat& format, const std::vector<TextPart>& prompt);

struct AnswerOptions {
  AnswerStart start;
  bool calls = false;         // whether calls are looked for; else their text is content
  bool reasoning = true;      // whether reasoning is told apart; else its text and its marks are content
  bool show_special = false;  // special tokens that mark nothing are shown
};

// What comes out, joined, does not depend on how the text was cut. Nothing gets lost: what turns out to be no call is content, and
// what is cut in the middle of a call stays as it is. White space around reasoning and calls is left out. Not thread-safe.
class AnswerParser final : private CallSink {
 public:
  // All must outlive the parser.
  AnswerParser(const AnswerFormat& format, const KnownTools& tools, const AnswerOptions& options);

  // `special`: the text is a special token's. Appends to `out`.
  void push(std::string_view text, bool special, std::vector<AnswerPiece>& out);
  void finish(std::vector<AnswerPiece>& out);

  bool reasoning() const { return state_ == State::text && part_->kind == PartKind::reasoning; }
  std::size_t calls() const { return calls_; }
  // Of the bytes pushed, how many are decided: what becomes of them is told.
  std::size_t decided() const {
    const std::size_t used = base_ + (trying_ ? 0 : at_);
    return space_.empty() ? used : std::min(used, space_.front().begin);
  }

 private:
  enum class State { free, section, text, call, tail };

  bool begin_call(const std::string& name, const std::string& id) override;
  void arguments(std::string_view json) override;
  void end_call() override;

  void run(bool final);
  bool step(bool final);  // false: more text decides
  bool step_free(bool final);
  bool step_section(bool final);
  bool step_text(bool final);
  bool step_call(bool final);
  bool step_tail(bool final);

  bool enabled(const AnswerPart& part) const;
  // Whether something of the format begins at `at`; yes: it was entered.
  Match::State enter_at(std::size_t at, bool start, bool final);
  Match::State turn_at(std::size_t& at, bool final) const;
  Match::State part_at(const AnswerPart& part, std::size_t at, bool final, Match& head) const;
  void enter(const AnswerPart& part, std::size_t at, Match head);
  void try_from(std::size_t at);
  void give_up();  // what was tried is content
  void forget();   // the bytes before at_

  void show(PartKind kind, std::size_t end);  // from at_ on
  void show_space(PartKind kind);             // what was held back of it
  void drop_space() { space_.clear(); }

  const AnswerFormat& format_;
  const KnownTools& tools_;
  const AnswerOptions options_;
  std::vector<AnswerPiece>* out_ = nullptr;

  std::string held_, special_;  // what is not forgotten, and a byte each that says whether it is special
  std::size_t at_ = 0;          // of held_, what is used
  std::size_t base_ = 0;        // bytes before held_
  std::size_t plain_ = 0;       // of held_ from at_ on, what begins nothing: it was tried

  State state_ = State::free;
  const AnswerPart* part_ = nullptr;     // of text, call and tail
  const AnswerPart* section_ = nullptr;  // around
  Match head_;
  std::unique_ptr<CallBody> body_;
  bool trying_ = false;         // since held_ began, nothing was told
  bool start_ = true;           // only white space since the answer, or a turn inside of it, began
  bool lead_ = false;           // white space that comes now is left out
  bool shown_ = false;          // there is content
  bool after_call_ = false;     // and none since the last call
  bool has_arguments_ = false;  // the last call
  std::size_t calls_ = 0, section_calls_ = 0;
  std::vector<AnswerPiece> space_;  // white space that may turn out to be between parts
};

}  // namespace mekik::text
