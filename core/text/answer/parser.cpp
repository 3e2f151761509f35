#include "text/answer/parser.hpp"

namespace mekik::text {

AnswerParser::AnswerParser(const AnswerFormat& format, const KnownTools& tools, const AnswerOptions& options)
    : format_{format}, tools_{tools}, options_{options} {
  lead_ = options.start.behind && options.reasoning;
  if (options.start.part < 0) return;
  const AnswerPart& part = format.parts[static_cast<std::size_t>(options.start.part)];
  if (!enabled(part)) return;
  part_ = &part;
  state_ = State::text;
  start_ = false;
  lead_ = part.kind == PartKind::reasoning;
}

void AnswerParser::push(std::string_view text, bool special, std::vector<AnswerPiece>& out) {
  out_ = &out;
  held_ += text;
  special_.append(text.size(), special ? '\1' : '\0');
  run(false);
}

void AnswerParser::finish(std::vector<AnswerPiece>& out) {
  out_ = &out;
  run(true);
  if (after_call_) drop_space();
  if (!space_.empty()) show_space(state_ == State::text && part_->kind == PartKind::reasoning ? PartKind::reasoning : PartKind::content);
}

void AnswerParser::run(bool final) {
  while (step(final)) {}
  if (!trying_) forget();
}

void AnswerParser::forget() {
  held_.erase(0, at_);
  special_.erase(0, at_);
  base_ += at_;
  plain_ -= std::min(plain_, at_);
  at_ = 0;
}

bool AnswerParser::step(bool final) {
  switch (state_) {
    case State::free:
      return step_free(final);
    case State::section:
      return step_section(final);
    case State::text:
      return step_text(final);
    case State::call:
      return step_call(final);
    case State::tail:
      return step_tail(final);
  }
  return false;
}

bool AnswerParser::enabled(const AnswerPart& part) const {
  if (part.kind == PartKind::call || part.kind == PartKind::section) return options_.calls;
  return options_.reasoning;
}

Match::State AnswerParser::turn_at(std::size_t& at, bool final) const {
  Match::State found = Match::no;
  if (!options_.reasoning) return found;
  for (const std::string& turn : format_.turns) {
    std::size_t end = at;
    const Match::State state = match_literal(turn, held_, end, final);
    if (state == Match::yes) {
      at = end;
      return state;
    }
    if (state == Match::maybe) found = state;
  }
  return found;
}

Match::State AnswerParser::part_at(const AnswerPart& part, std::size_t at, bool final, Match& head) const {
  head = match_pieces(part.pattern.head, held_, at, final);
  if (head.state != Match::yes) return head.state;
  if (part.kind == PartKind::content && !part.pattern.head.empty() && part.pattern.head.back().text.ends_with('\n')) {
    if (head.end == held_.size()) return final ? Match::no : Match::maybe;
    return held_[head.end++] == '\n' ? Match::yes : Match::no;
  }
  if (part.pattern.body != Slot::calls) return body_begins(part, held_, head.end, final);
  const std::size_t next = skip_space(held_, head.end);
  if (next == held_.size()) return final ? Match::no : Match::maybe;
  Match::State found = Match::no;
  for (const AnswerPart& call : format_.parts) {
    if (call.kind != PartKind::call) continue;
    Match inner;
    const Match::State state = part_at(call, next, final, inner);
    if (state != Match::no) found = std::max(found, state);
  }
  return found;
}

Match::State AnswerParser::enter_at(std::size_t at, bool start, bool final) {
  for (std::size_t i = 0; i < format_.parts.size(); ++i) {
    const AnswerPart& part = format_.parts[i];
    if (!enabled(part) || part.inside || (part.at_start && !start)) continue;
    Match head;
    Match::State state = part_at(part, at, final, head);
    if (state == Match::no && start && part.kind == PartKind::reasoning && !part.pattern.tail.empty()) {
      // The end of reasoning that never began: the answer has none.
      head = match_pieces(part.pattern.tail, held_, at, final);
      state = head.state;
      if (state == Match::yes) {
        drop_space();
        at_ = head.end;
        lead_ = true;
        start_ = false;
        return state;
      }
    }
    if (state == Match::yes) enter(part, at, std::move(head));
    if (state != Match::no) return state;
  }
  return Match::no;
}

void AnswerParser::enter(const AnswerPart& part, std::size_t at, Match head) {
  show(PartKind::content, at);
  part_ = &part;
  head_ = std::move(head);
  if (part.kind == PartKind::section || part.kind == PartKind::call) {
    try_from(at);
    at_ = part.pattern.body == Slot::calls ? head_.end : skip_space(held_, head_.end);
    if (part.kind == PartKind::section) {
      section_ = &part;
      section_calls_ = 0;
      state_ = State::section;
    } else {
      body_ = make_call_body(part, head_, tools_);
      state_ = State::call;
    }
    return;
  }
  at_ = head_.end;
  state_ = State::text;
  if (part.kind == PartKind::reasoning || !shown_) drop_space();
  lead_ = part.kind == PartKind::reasoning;
}

// From here on all is kept until something is told of it.
void AnswerParser::try_from(std::size_t at) {
  at_ = at;
  forget();
  head_.end -= at;
  trying_ = true;
}

bool AnswerParser::step_free(bool final) {
  bool start = start_;
  for (std::size_t at = at_; at < held_.size(); ++at) {
    if (at < plain_) {
      start = false;
      continue;
    }
    if (is_space(held_[at])) continue;
    std::size_t behind = at;
    const Match::State turn = turn_at(behind, final);
    if (turn == Match::yes) {
      show(PartKind::content, at);
      at_ = behind;
      start_ = true;
      return true;
    }
    const Match::State part = turn == Match::maybe ? turn : enter_at(at, start, final);
    if (part == Match::yes) return true;
    if (part == Match::maybe) {
      show(PartKind::content, at);
      return false;
    }
    if (special_[at] == 0 || options_.show_special) start = false;
  }
  show(PartKind::content, held_.size());
  return false;
}

bool AnswerParser::step_section(bool final) {
  std::size_t next = skip_space(held_, at_);
  if (section_calls_ > 0 && next < held_.size() && (held_[next] == ',' || held_[next] == ';')) next = skip_space(held_, next + 1);
  if (next == held_.size()) {
    if (!final) return false;
    if (trying_) give_up();
    section_ = nullptr;
    state_ = State::free;
    return true;
  }
  Match tail = section_->pattern.tail.empty() ? Match{} : match_pieces(section_->pattern.tail, held_, next, final);
  if (tail.state == Match::yes && section_calls_ > 0) {
    at_ = tail.end;
    section_ = nullptr;
    state_ = State::free;
    return true;
  }
  bool maybe = tail.state == Match::maybe;
  for (const AnswerPart& part : format_.parts) {
    if (part.kind != PartKind::call || maybe) continue;
    Match head;
    const Match::State state = part_at(part, next, final, head);
    if (state == Match::yes) {
      part_ = &part;
      head_ = std::move(head);
      if (!trying_) try_from(next);
      at_ = skip_space(held_, head_.end);
      body_ = make_call_body(part, head_, tools_);
      state_ = State::call;
      return true;
    }
    maybe = state == Match::maybe;
  }
  if (maybe) return false;
  if (trying_) give_up();
  section_ = nullptr;  // its end is missing
  state_ = State::free;
  return true;
}

bool AnswerParser::step_text(bool final) {
  const PartKind kind = part_->kind;
  for (std::size_t at = at_; at < held_.size(); ++at) {
    Match tail = part_->pattern.tail.empty() ? Match{} : match_pieces(part_->pattern.tail, held_, at, final);
    for (std::size_t i = 0; i < part_->ends.size() && tail.state == Match::no; ++i) {
      tail.end = at;
      tail.state = match_literal(part_->ends[i], held_, tail.end, final);
    }
    std::size_t turn = at;
    const Match::State turned = tail.state == Match::no ? turn_at(turn, final) : Match::no;
    if (tail.state == Match::no && turned == Match::no) continue;
    show(kind, at);
    if (tail.state == Match::maybe || turned == Match::maybe) return false;
    if (kind == PartKind::reasoning) drop_space();
    if (tail.state == Match::yes) at_ = tail.end;  // a turn is left to the free state
    state_ = State::free;
    lead_ = true;
    start_ = kind == PartKind::reasoning;
    return true;
  }
  show(kind, held_.size());
  return false;
}

bool AnswerParser::step_call(bool final) {
  std::size_t end = held_.size();
  bool over = final;
  // A special token that ends the call does so wherever it stands: it cannot be part of a text of JSON.
  if (!part_->pattern.tail.empty())
    for (std::size_t at = at_; at < held_.size(); ++at) {
      if (special_[at] == 0) continue;
      const Match tail = match_pieces(part_->pattern.tail, held_, at, final);
      if (tail.state == Match::no) continue;
      end = at;
      over = over || tail.state == Match::yes;
      break;
    }
  std::size_t used = 0;
  const bool fields = part_->pattern.body == Slot::fields;  // looks for the tail itself
  const std::string_view text = std::string_view{held_}.substr(at_, fields ? std::string::npos : end - at_);
  const Progress progress = body_->feed(text, fields ? final : over, used, *this);
  at_ += used;
  if (progress == Progress::more) return false;
  if (progress == Progress::failed) {
    give_up();
    return true;
  }
  body_.reset();
  trying_ = false;  // also when nothing was called: [] between the marks
  state_ = State::tail;
  return true;
}

bool AnswerParser::step_tail(bool final) {
  if (!part_->pattern.tail.empty()) {
    const std::size_t next = skip_space(held_, at_);
    const Match tail = match_pieces(part_->pattern.tail, held_, next, final);
    if (tail.state == Match::maybe) return false;
    if (tail.state == Match::yes) at_ = tail.end;
  }
  ++section_calls_;
  after_call_ = true;
  state_ = section_ != nullptr ? State::section : State::free;
  lead_ = !shown_;
  start_ = false;
  return true;
}

void AnswerParser::give_up() {
  trying_ = false;
  at_ = 0;
  plain_ = 1;
  body_.reset();
  section_ = nullptr;
  state_ = State::free;
}

bool AnswerParser::begin_call(const std::string& name, const std::string& id) {
  if (part_->known && !tools_.has(name)) return false;
  trying_ = false;
  drop_space();
  out_->push_back({AnswerPiece::call, name, id, calls_, 0, 0});
  ++calls_;
  has_arguments_ = false;
  return true;
}

void AnswerParser::arguments(std::string_view json) {
  if (json.empty()) return;
  has_arguments_ = true;
  if (!out_->empty() && out_->back().kind == AnswerPiece::arguments && out_->back().number == calls_ - 1) out_->back().text += json;
  else out_->push_back({AnswerPiece::arguments, std::string{json}, {}, calls_ - 1, 0, 0});
}

void AnswerParser::end_call() {
  if (!has_arguments_) arguments("{}");
}

void AnswerParser::show_space(PartKind kind) {
  for (AnswerPiece& piece : space_) {
    piece.kind = kind == PartKind::reasoning ? AnswerPiece::reasoning : AnswerPiece::content;
    out_->push_back(std::move(piece));
  }
  space_.clear();
}

// Runs of visible bytes, of white space and of special bytes that are not shown.
void AnswerParser::show(PartKind kind, std::size_t end) {
  const bool reasoning = kind == PartKind::reasoning;
  const bool holds = reasoning || options_.calls;  // white space, until it is known to be inside
  while (at_ < end) {
    const auto sort = [&](std::size_t at) { return special_[at] != 0 && !options_.show_special ? 2 : is_space(held_[at]) ? 1 : 0; };
    const int of = sort(at_);
    std::size_t run = at_ + 1;
    while (run < end && sort(run) == of) ++run;
    AnswerPiece piece{reasoning ? AnswerPiece::reasoning : AnswerPiece::content, {}, {}, 0, base_ + at_, base_ + run};
    if (of != 2) piece.text = held_.substr(at_, run - at_);
    at_ = run;
    if (of == 1 && lead_) continue;
    if (of == 0) {
      lead_ = start_ = after_call_ = false;
      shown_ = shown_ || !reasoning;
      show_space(kind);
    }
    if (of != 0 && (holds || !space_.empty())) space_.push_back(std::move(piece));
    else out_->push_back(std::move(piece));
  }
}

AnswerStart answer_start(const AnswerFormat& format, const std::vector<TextPart>& prompt) {
  std::string tail;
  for (auto part = prompt.rbegin(); part != prompt.rend() && part->trusted; ++part) tail.insert(0, part->text);
  AnswerStart out;
  std::size_t best = 0;
  for (std::size_t i = 0; i < format.parts.size(); ++i) {
    const AnswerPart& part = format.parts[i];
    if ((part.kind != PartKind::reasoning && part.kind != PartKind::content) || part.pattern.head.empty()) continue;
    std::size_t opened = 0;
    for (std::size_t at = 0; at < tail.size(); ++at) {
      if (const Match head = match_pieces(part.pattern.head, tail, at, true); head.state == Match::yes) opened = head.end;
      const Match end = part.pattern.tail.empty() ? Match{} : match_pieces(part.pattern.tail, tail, at, true);
      if (end.state != Match::yes) continue;
      opened = 0;
      out.behind = out.behind || (part.kind == PartKind::reasoning && skip_space(tail, end.end) == tail.size());
    }
    if (opened <= best) continue;
    best = opened;
    out.part = static_cast<int>(i);
  }
  return out;
}

}  // namespace mekik::text
