// Finds the literal texts around reasoning, names and arguments by comparing what the template writes for different answers.
#include "text/answer/derive.hpp"

#include <algorithm>
#include <cctype>

#include "text/answer/body.hpp"
#include "text/template_probe.hpp"

namespace mekik::text {

namespace {

struct Span {
  std::size_t begin = 0, end = 0;
};

std::string trimmed(std::string_view text) {
  const std::size_t begin = skip_space(text, 0);
  std::size_t end = text.size();
  while (end > begin && is_space(text[end - 1])) --end;
  return std::string{text.substr(begin, end - begin)};
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  std::size_t n = 0;
  while (n < std::min(a.size(), b.size()) && a[n] == b[n]) ++n;
  return n;
}

std::string common_suffix(std::string_view a, std::string_view b) {
  std::size_t n = 0;
  while (n < std::min(a.size(), b.size()) && a[a.size() - 1 - n] == b[b.size() - 1 - n]) ++n;
  return std::string{a.substr(a.size() - n)};
}

// Without the beginning of a tag at the end.
std::string_view whole_tags(std::string_view text) {
  const std::size_t open = text.find_last_of("<[");
  if (open == std::string_view::npos || text.find_first_of(">]", open) != std::string_view::npos) return text;
  return text.substr(0, open);
}

// The id of a call is none of a literal.
void add_literal(std::vector<Piece>& to, std::string_view text) {
  if (const std::size_t id = text.find(probe::kShortId); id != std::string_view::npos) {
    add_literal(to, text.substr(0, id));
    to.push_back({Slot::id, {}});
    return add_literal(to, text.substr(id + probe::kShortId.size()));
  }
  if (std::string literal = trimmed(text); !literal.empty()) to.push_back({Slot::literal, std::move(literal)});
}

std::optional<Span> json_at(std::string_view text, std::size_t at) {
  JsonScan scan;
  for (std::size_t end = at; end < text.size(); ++end) {
    const JsonScan::State state = scan.take(text[end]);
    if (state == JsonScan::behind) return std::nullopt;
    if (state == JsonScan::last) {
      if (!json::parse(text.substr(at, end + 1 - at))) return std::nullopt;
      return Span{at, end + 1};
    }
  }
  return std::nullopt;
}

std::optional<Span> find_object(std::string_view text, const json::object& wanted) {
  for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    const auto span = json_at(text, at);
    if (span && *json::parse(text.substr(span->begin, span->end - span->begin)) == json::value(wanted)) return span;
  }
  return std::nullopt;
}

// The outermost JSON around `inner` that has the name in it, arrays included when `arrays`.
std::optional<Span> around(std::string_view text, const Span& inner, std::string_view name, bool arrays) {
  std::optional<Span> found;
  for (std::size_t at = inner.begin; at-- > 0;) {
    if (text[at] != '{' && !(arrays && text[at] == '[')) continue;
    const auto span = json_at(text, at);
    if (span && span->end > inner.end && text.substr(at, span->end - at).find(name) != std::string_view::npos) found = span;
  }
  return found;
}

// One call in a turn: its core (JSON, or from the name to the end of the arguments), the rest of the turn around it.
struct Core {
  Span span;
  Pattern pattern;  // of the core alone
  AnswerPart part;  // keys and field
};

void read_keys(const json::value& value, CallKeys& keys, std::string_view name, const json::object& wanted) {
  const json::value* call = value.is_array() && !value.get_array().empty() ? &value.get_array().front() : &value;
  if (!call->is_object()) return;
  for (const auto& member : call->get_object()) {
    if (member.key() == "function" && member.value().is_object()) return read_keys(member.value(), keys, name, wanted);
    if (member.value() == json::value(name)) keys.name = {std::string{member.key()}};
    if (member.value() == json::value(wanted)) {
      keys.arguments = {std::string{member.key()}};
      keys.name_is_key = member.key() == name;
    }
  }
}

// {"name": .., "arguments": {..}}, maybe in an array; or the name before the arguments alone.
std::optional<Core> json_core(std::string_view turn, std::string_view name, const json::object& wanted, bool arrays) {
  const auto arguments = find_object(turn, wanted);
  if (!arguments) return std::nullopt;
  Core out;
  if (const auto outer = around(turn, *arguments, name, arrays)) {
    out.span = *outer;
    out.pattern.body = Slot::call;
    read_keys(*json::parse(turn.substr(outer->begin, outer->end - outer->begin)), out.part.keys, name, wanted);
    return out;
  }
  const std::size_t at = turn.rfind(name, arguments->begin);
  if (at == std::string_view::npos || arguments->begin - at > 120) return std::nullopt;
  std::string_view between = turn.substr(at + name.size(), arguments->begin - at - name.size());
  out.span = {at, arguments->end};
  out.pattern.body = Slot::json;
  out.pattern.head.push_back({Slot::name, {}});
  // A number that counts the calls is no literal.
  const std::size_t digit =
      between.find(probe::kShortId) != std::string_view::npos ? std::string_view::npos : between.find_first_of("0123456789");
  if (digit != std::string_view::npos) {
    add_literal(out.pattern.head, between.substr(0, digit));
    out.pattern.head.push_back({Slot::skip, {}});
    between.remove_prefix(std::min(between.find_first_not_of("0123456789", digit), between.size()));
  }
  add_literal(out.pattern.head, between);
  return out;
}

// name .. key .. value .. key .. value
std::optional<Core> field_core(std::string_view turn) {
  const std::size_t key = turn.find(probe::kTextKey), value = turn.find(probe::kText);
  const std::size_t name = turn.substr(0, key).rfind(probe::kFirst);
  const std::size_t key2 = turn.find(probe::kNumberKey, value), value2 = turn.find(probe::kNumber, key2);
  if (value2 == std::string_view::npos || name == std::string_view::npos || key > value || key2 == std::string_view::npos)
    return std::nullopt;
  const auto gap = [&](std::size_t from, std::string_view word, std::size_t to) {
    return turn.substr(from + word.size(), to - from - word.size());
  };
  const std::string_view a = gap(name, probe::kFirst, key), b = gap(key, probe::kTextKey, value), c = gap(value, probe::kText, key2),
                         b2 = gap(key2, probe::kNumberKey, value2), rest = turn.substr(value2 + probe::kNumber.size());
  const std::string shared = common_suffix(a, c);
  const std::size_t tag = shared.find_last_of("<[");
  if (tag == std::string::npos || c.find(probe::kTextKey) != std::string_view::npos) return std::nullopt;
  const std::size_t width = shared.size() - tag;
  const std::string_view tail = c.substr(0, c.size() - width);
  if (trimmed(tail).empty() || !trimmed(rest).starts_with(trimmed(tail))) return std::nullopt;
  Core out;
  out.pattern.body = Slot::fields;
  out.pattern.head.push_back({Slot::name, {}});
  add_literal(out.pattern.head, a.substr(0, a.size() - width));
  FieldFormat& field = out.part.field;
  field.pattern.body = Slot::value;
  add_literal(field.pattern.head, a.substr(a.size() - width));
  field.pattern.head.push_back({Slot::key, {}});
  if (b == b2) {
    add_literal(field.pattern.head, b);
  } else {  // says of which type the value is
    const auto letter = [](char l) { return std::isalnum(static_cast<unsigned char>(l)) != 0; };
    std::size_t same = common_prefix(b, b2);
    while (same > 0 && letter(b[same - 1])) --same;  // types may begin and end alike
    std::string behind = common_suffix(b.substr(same), b2.substr(same));
    behind.erase(0, static_cast<std::size_t>(std::find_if_not(behind.begin(), behind.end(), letter) - behind.begin()));
    add_literal(field.pattern.head, b.substr(0, same));
    field.pattern.head.push_back({Slot::type, {}});
    add_literal(field.pattern.head, behind);
  }
  add_literal(field.pattern.tail, tail);
  field.newline_before = b.ends_with('\n');
  field.newline_after = tail.starts_with('\n');
  out.span = {name,
              value2 + probe::kNumber.size() + turn.substr(value2 + probe::kNumber.size()).find(trimmed(tail)) + trimmed(tail).size()};
  return out;
}

// pick_zebra(colour='crimson', count=4207), maybe in brackets
std::optional<Core> python_core(std::string_view turn) {
  const std::size_t name = turn.find(std::string{probe::kFirst} + "("), close = turn.find(')', name);
  if (name == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
  Core out;
  out.pattern.body = Slot::python;
  out.span = {name, close + 1};
  if (name > 0 && turn[name - 1] == '[' && close + 1 < turn.size() && turn[close + 1] == ']') out.span = {name - 1, close + 2};
  return out;
}

std::optional<Core> core_of(std::string_view turn) {
  if (auto core = json_core(turn, probe::kFirst, probe::first_arguments(), true)) return core;
  if (auto core = python_core(turn)) return core;
  return field_core(turn);
}

// What stands before the core and belongs to it: what it has in common with a call behind an answer; or all but what an answer has.
std::string opening(const Samples& samples, const Core& core) {
  const std::string_view turn = samples.call->turn, before = turn.substr(0, core.span.begin);
  if (samples.content_call) {
    const std::string_view other = samples.content_call->turn;
    const std::size_t at = other.find(turn.substr(core.span.begin, core.span.end - core.span.begin)), answer = other.find(probe::kAnswer);
    if (at != std::string_view::npos && answer < at)
      return common_suffix(before, other.substr(answer + probe::kAnswer.size(), at - answer - probe::kAnswer.size()));
  }
  const std::string_view content = samples.content ? std::string_view{samples.content->turn} : std::string_view{};
  const std::string_view common = content.substr(0, content.find(probe::kAnswer));
  return std::string{before.starts_with(common) ? before.substr(common.size()) : before};
}

// Where the second call's core begins in a turn with two.
std::size_t second_core(std::string_view turn, const Core& core) {
  const std::size_t name = turn.rfind(probe::kSecond);
  if (name == std::string_view::npos || core.pattern.body != Slot::call) return name;
  const auto second = json_core(turn.substr(core.span.end), probe::kSecond, probe::second_arguments(), turn[core.span.begin] == '[');
  return second ? core.span.end + second->span.begin : std::string_view::npos;
}

AnswerPart call_part(const Core& core, std::string_view open, std::string_view close) {
  AnswerPart out = core.part;
  out.kind = PartKind::call;
  out.pattern = core.pattern;
  out.pattern.head.clear();
  add_literal(out.pattern.head, open);
  out.pattern.head.insert(out.pattern.head.end(), core.pattern.head.begin(), core.pattern.head.end());
  add_literal(out.pattern.tail, close);
  out.at_start = out.known = trimmed(open).empty();
  return out;
}

}  // namespace

std::optional<AnswerFormat> derive_reasoning(const Samples& samples) {
  if (!samples.reasoning) return std::nullopt;
  const std::string_view turn = samples.reasoning->turn;
  const std::size_t begin = turn.find(probe::kReasoning), end = begin + probe::kReasoning.size(), answer = turn.find(probe::kAnswer, end);
  if (begin == std::string_view::npos || answer == std::string_view::npos) return std::nullopt;
  std::string open = trimmed(turn.substr(0, begin));
  if (open.empty()) {  // the prompt has it, on its last line
    const std::string head = trimmed(samples.reasoning->head);
    const std::size_t line = head.find_last_of(">\n", head.empty() ? 0 : head.size() - 2);
    open = line == std::string::npos ? head : head.substr(line + 1);
  }
  AnswerPart part;
  part.kind = PartKind::reasoning;
  part.at_start = true;
  add_literal(part.pattern.head, open);
  add_literal(part.pattern.tail, turn.substr(end, answer - end));
  if (part.pattern.head.empty() || part.pattern.tail.empty()) return std::nullopt;
  AnswerFormat out;
  out.name = "the template";
  out.parts.push_back(std::move(part));
  return out;
}

std::optional<AnswerFormat> derive_calls(const Samples& samples) {
  if (!samples.call) return std::nullopt;
  const std::string_view turn = samples.call->turn;
  const auto core = core_of(turn);
  if (!core) return std::nullopt;
  AnswerFormat out;
  out.name = "the template";
  const std::string open = opening(samples, *core), rest = trimmed(turn.substr(core->span.end));
  const std::string_view two = samples.two_calls ? std::string_view{samples.two_calls->turn} : std::string_view{};
  const std::size_t second =
      two.substr(0, core->span.end) == turn.substr(0, core->span.end) ? second_core(two, *core) : std::string_view::npos;
  if (second == std::string_view::npos) {  // one call at most, or all of them in one core
    out.parts.push_back(call_part(*core, open, rest));
    return out;
  }
  const std::string between = trimmed(two.substr(core->span.end, second - core->span.end));
  const std::string_view close = whole_tags(std::string_view{rest}.substr(0, common_prefix(rest, between)));
  const std::string next = trimmed(std::string_view{between}.substr(close.size())), whole = trimmed(open);
  if (next.empty() || next == "," || next == ";" || !whole.ends_with(next)) {
    out.parts.push_back(call_part(*core, open, rest));
    return out;
  }
  const std::string begin = trimmed(std::string_view{whole}.substr(0, whole.size() - next.size()));
  if (!begin.empty()) {
    AnswerPart section;
    section.kind = PartKind::section;
    section.pattern.body = Slot::calls;
    add_literal(section.pattern.head, begin);
    add_literal(section.pattern.tail, std::string_view{rest}.substr(close.size()));
    out.parts.push_back(std::move(section));
  }
  out.parts.push_back(call_part(*core, next, close));
  return out;
}

}  // namespace mekik::text
