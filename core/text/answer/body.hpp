// The bodies of calls: each reads one notation and tells of the calls in it, as JSON, while it comes.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "text/answer/format.hpp"
#include "text/answer/known_tools.hpp"

namespace mekik::text {

// Where a body tells what it found.
class CallSink {
 public:
  virtual ~CallSink() = default;
  virtual bool begin_call(const std::string& name, const std::string& id) = 0;  // false: this is no call
  virtual void arguments(std::string_view json) = 0;                            // goes on with the text of the arguments
  virtual void end_call() = 0;                                                  // it was whole
};

enum class Progress { more, done, failed };

class CallBody {
 public:
  virtual ~CallBody() = default;
  // `text`: what is there and was not used yet. Adds to `used` what needs not be shown again. `final`: there is no more of it.
  // done: what is behind `used` belongs to somebody else. failed: nothing was told, and this is no call.
  virtual Progress feed(std::string_view text, bool final, std::size_t& used, CallSink& sink) = 0;
};

// `head`: what the head of the part matched. The part and the tools must outlive the body.
std::unique_ptr<CallBody> make_call_body(const AnswerPart& part, const Match& head, const KnownTools& tools);
std::unique_ptr<CallBody> make_call_objects(const AnswerPart& part);
std::unique_ptr<CallBody> make_fields(const AnswerPart& part, const Match& head, const KnownTools& tools);
std::unique_ptr<CallBody> make_python_calls(const AnswerPart& part, const KnownTools& tools);
std::unique_ptr<CallBody> make_dict(const AnswerPart& part, const Match& head);

// Whether a body of this kind can begin so. `fields`: looks at the field pattern and the part's tail.
Match::State body_begins(const AnswerPart& part, std::string_view text, std::size_t at, bool final);

// One value of JSON, byte by byte, by its brackets and quotes alone: what is inside need not be right, but it ends where it must.
class JsonScan {
 public:
  enum State { inside, last, behind };  // last: this byte is its last one; behind: this byte is no part of it any more
  State take(char c);
  bool begun() const { return begun_; }
  void reset() { *this = {}; }

 private:
  bool begun_ = false, text_ = false, escaped_ = false;
  int depth_ = 0;
};

std::string json_text(std::string_view text);  // quoted and escaped
// The inside of a JSON text only.
std::string json_escaped(std::string_view text);
// A value of Python's notation as JSON; what is none becomes a text.
std::string json_of_python(std::string_view value);
// A value without a type: by the schema, or what it looks like.
std::string json_of_value(std::string_view value, const std::optional<ParameterType>& type);

}  // namespace mekik::text
