// Chooses the format of a template: declared ones are tried on what the template itself writes.
#include <algorithm>

#include "text/answer/derive.hpp"
#include "text/answer/parser.hpp"
#include "text/template_probe.hpp"

namespace mekik::text {

namespace {

using probe::Turn;

bool has_marks(const AnswerFormat& format, std::string_view source) {
  return std::all_of(format.marks.begin(), format.marks.end(),
                     [source](const std::string& mark) { return source.find(mark) != std::string_view::npos; });
}

struct Read {
  std::string content, reasoning;
  struct Call {
    std::string name, arguments;
  };
  std::vector<Call> calls;
};

Read read(const AnswerFormat& format, const Sample& sample) {
  const KnownTools tools{probe::tools()};
  AnswerOptions options;
  options.calls = true;
  options.start = answer_start(format, {{sample.head, true}});
  AnswerParser parser{format, tools, options};
  std::vector<AnswerPiece> pieces;
  parser.push(sample.turn, false, pieces);
  parser.finish(pieces);
  Read out;
  for (const AnswerPiece& piece : pieces) {
    if (piece.kind == AnswerPiece::content) out.content += piece.text;
    if (piece.kind == AnswerPiece::reasoning) out.reasoning += piece.text;
    if (piece.kind == AnswerPiece::call) out.calls.push_back({piece.text, {}});
    if (piece.kind == AnswerPiece::arguments) out.calls.back().arguments += piece.text;
  }
  return out;
}

bool same_arguments(const std::string& text, const json::object& wanted) {
  const auto parsed = json::parse(text);
  return parsed && *parsed == json::value(wanted);
}

// Whether the calls that the template writes are found again.
bool reads_calls(const AnswerFormat& format, const Samples& samples) {
  const json::object first = probe::first_arguments(), second = probe::second_arguments();
  const Read one = read(format, *samples.call);
  if (one.calls.size() != 1 || one.calls[0].name != probe::kFirst || !same_arguments(one.calls[0].arguments, first)) return false;
  if (samples.two_calls && samples.two_calls->turn.find(probe::kSecond) != std::string::npos) {
    const Read two = read(format, *samples.two_calls);
    if (two.calls.size() != 2 || two.calls[1].name != probe::kSecond || !same_arguments(two.calls[1].arguments, second)) return false;
  }
  return true;
}

bool reads_reasoning(const AnswerFormat& format, const Samples& samples) {
  if (!samples.reasoning) return true;
  if (samples.content) {
    const Read plain = read(format, *samples.content);
    if (!plain.reasoning.empty() || plain.content.find(probe::kAnswer) == std::string::npos) return false;
  }
  const Read got = read(format, *samples.reasoning);
  return got.reasoning == probe::kReasoning && got.content.starts_with(probe::kAnswer);
}

// A format of the parts of two: how texts are told apart, and how calls are.
AnswerFormat joined(const AnswerFormat& texts, const AnswerFormat* calls) {
  AnswerFormat out = texts;
  std::erase_if(out.parts, [](const AnswerPart& part) { return part.kind == PartKind::call || part.kind == PartKind::section; });
  if (calls == nullptr) return out;
  out.name = texts.name == calls->name ? texts.name : calls->name + ", " + texts.name;
  out.history = calls->history;
  for (const AnswerPart& part : calls->parts)
    if (part.kind == PartKind::call || part.kind == PartKind::section) out.parts.push_back(part);
  for (const std::string& turn : calls->turns)
    if (std::find(out.turns.begin(), out.turns.end(), turn) == out.turns.end()) out.turns.push_back(turn);
  return out;
}

// The first declared one, or what is derived, that passes.
template <class Passes>
std::optional<AnswerFormat> first_of(const std::vector<AnswerFormat>& declared, std::optional<AnswerFormat> derived, Passes&& passes) {
  for (const AnswerFormat& format : declared)
    if (passes(format)) return format;
  if (derived && passes(*derived)) return derived;
  return std::nullopt;
}

}  // namespace

AnswerFormat format_of(const ChatTemplate& chat_template, const AnswerFormats& formats) {
  const Samples samples = samples_of(chat_template);
  std::vector<AnswerFormat> declared;
  for (const AnswerFormat& format : formats.all())
    if (has_marks(format, chat_template.source())) declared.push_back(format);
  const auto thinks = [](const AnswerFormat& format) { return format.has(PartKind::reasoning); };
  auto texts = first_of(declared, derive_reasoning(samples),
                        [&](const AnswerFormat& format) { return thinks(format) && reads_reasoning(format, samples); });
  // Some templates write earlier answers otherwise than they let the model write: then the marks have to do.
  if (!texts) texts = first_of(declared, std::nullopt, thinks);
  const AnswerFormat plain = texts ? joined(*texts, nullptr) : AnswerFormat{};
  std::optional<AnswerFormat> calls;
  if (samples.call) {
    calls = first_of(declared, derive_calls(samples),
                     [&](const AnswerFormat& format) { return format.calls() && reads_calls(joined(plain, &format), samples); });
  } else if (takes_tools(chat_template)) {  // it does not show any: the marks have to do
    calls = first_of(declared, std::nullopt, [](const AnswerFormat& format) { return format.calls(); });
  }
  AnswerFormat out = joined(plain, calls ? &*calls : nullptr);
  out.short_ids = chat_template.needs().short_ids;
  return out;
}

}  // namespace mekik::text
