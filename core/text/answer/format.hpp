// How a model writes its answers: where reasoning, content and calls of functions stand. Data: configs/formats/*.toml, or found out
// from the chat template.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "config/value.hpp"
#include "text/answer/pattern.hpp"

namespace mekik::text {

enum class PartKind { reasoning, content, section, call };

// Arguments one by one: "<parameter={key}>{value}</parameter>".
struct FieldFormat {
  Pattern pattern;
  // A line break that belongs to the format, not to the value.
  bool newline_before = false, newline_after = false;
  bool cdata = false;  // <![CDATA[..]]> around a value means nothing
  std::string nested;  // what stands before the tags of an object or array inside a value; empty: there are none
};

// The members of a call that is a JSON object.
struct CallKeys {
  std::vector<std::string> name{"name", "tool_name", "function_name"};
  std::vector<std::string> arguments{"arguments", "parameters", "args"};
  std::vector<std::string> id{"id", "tool_call_id"};
  bool name_is_key = false;  // {"get_weather": {..}}
};

struct AnswerPart {
  PartKind kind = PartKind::content;
  Pattern pattern;
  std::vector<std::string> ends;  // of {text}, besides the pattern's tail
  bool at_start = false;          // only where an answer, or a turn inside of it, begins
  bool known = false;             // only with the name of one of the request's functions
  bool inside = false;            // only in a section
  FieldFormat field;              // of {fields}
  CallKeys keys;                  // of {call}
  std::string quote;              // of texts in {dict}
};

// How the calls of an earlier answer are written where the template does not. Slots of a call: {name}, {id}, {arguments} as JSON, {json}
// with both, {python} as f(a=1).
struct CallHistory {
  std::string calls;  // around all of them: "<|tool_call_start|>[{calls}]<|tool_call_end|>"; empty: it is not known
  std::string call, between;
};
inline constexpr std::string_view kHistorySlots[] = {"{calls}", "{name}", "{id}", "{arguments}", "{json}", "{python}"};

struct AnswerFormat {
  std::string name;                // for people: where it comes from
  std::vector<AnswerPart> parts;   // the first one that fits at a place is taken
  std::vector<std::string> turns;  // texts between two parts of one answer; they are dropped
  std::vector<std::string> marks;  // a template has this format when all of these are in its text
  CallHistory history;
  bool short_ids = false;  // ids of calls must be 9 letters and digits, or the template refuses them

  bool has(PartKind kind) const;
  bool calls() const { return has(PartKind::call); }
};

// The formats of a folder. Mistakes go to `diagnostics`.
class AnswerFormats {
 public:
  static AnswerFormats load(const std::filesystem::path& directory, config::Diagnostics& diagnostics);
  // From one TOML text, for tests.
  static AnswerFormats read(std::string_view toml, config::Diagnostics& diagnostics);
  const std::vector<AnswerFormat>& all() const { return formats_; }

 private:
  std::vector<AnswerFormat> formats_;
};

class ChatTemplate;
// The format of a template: calls as a declared format says that reads back what the template writes, or else as the template itself
// shows them, or else as a declared one whose marks it has; reasoning likewise. A format without calls: `calls()` is false.
AnswerFormat format_of(const ChatTemplate& chat_template, const AnswerFormats& formats);

}  // namespace mekik::text
