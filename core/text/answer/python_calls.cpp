// {python}: [get_weather(city='Paris', days=3), get_time()]
#include "text/answer/body.hpp"

namespace mekik::text {

namespace {

class PythonCalls final : public CallBody {
 public:
  explicit PythonCalls(const KnownTools& tools) : tools_{tools} {}

  Progress feed(std::string_view text, bool final, std::size_t& used, CallSink& sink) override {
    std::size_t at = 0;
    Progress progress = Progress::more;
    while (progress == Progress::more && step(text, final, at, progress, sink)) {}
    used += at;
    if (progress != Progress::more || !final) return progress;
    if (at_ == At::argument && told_) {  // cut in the middle of a value
      sink.arguments(text.substr(at));
      used += text.size() - at;
    }
    return told_ ? Progress::done : Progress::failed;
  }

 private:
  enum class At { begin, call, argument, behind };

  // False: more text decides.
  bool step(std::string_view text, bool final, std::size_t& at, Progress& progress, CallSink& sink) {
    const std::size_t next = skip_space(text, at);
    if (next == text.size()) return false;
    switch (at_) {
      case At::begin:
        at = next;
        list_ = text[at] == '[';
        if (list_) ++at;
        at_ = At::call;
        return true;
      case At::call:
        at = next;
        return call(text, final, at, progress, sink);
      case At::argument:
        at = next;
        return argument(text, at, sink);
      case At::behind:
        return behind(text, next, at, progress);
    }
    return false;
  }

  bool call(std::string_view text, bool final, std::size_t& at, Progress& progress, CallSink& sink) {
    const std::size_t open = text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-", at);
    if (open == std::string_view::npos && !final) return false;
    if (open == at && told_ && list_ && text[open] == ']') {  // a comma behind the last one
      at_ = At::behind;
      return true;
    }
    if (open == std::string_view::npos || open == at || text[open] != '(') {
      progress = told_ ? Progress::done : Progress::failed;
      return true;
    }
    name_ = text.substr(at, open - at);
    if (name_.ends_with(".call") && !tools_.has(name_)) name_.resize(name_.size() - 5);
    if (!sink.begin_call(name_, {})) {
      progress = told_ ? Progress::done : Progress::failed;
      return true;
    }
    told_ = true;
    position_ = 0;
    at = open + 1;
    at_ = At::argument;
    return true;
  }

  // One argument with the comma or bracket behind it.
  bool argument(std::string_view text, std::size_t& at, CallSink& sink) {
    if (text[at] == ')' || text[at] == ',') {
      const bool closes = text[at] == ')';
      ++at;
      if (!closes) return true;
      sink.arguments(position_ == 0 ? "{}" : "}");
      sink.end_call();
      at_ = At::behind;
      return true;
    }
    const std::size_t end = end_of_argument(text, at);
    if (end == std::string_view::npos) return false;
    std::string_view value = text.substr(at, end - at);
    std::string key{tools_.parameter_at(name_, position_)};
    const std::size_t name_end = value.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    const std::size_t equals = name_end == std::string_view::npos ? name_end : skip_space(value, name_end);
    if (name_end > 0 && equals < value.size() && value[equals] == '=' && value.substr(equals, 2) != "==") {
      key = value.substr(0, name_end);
      value.remove_prefix(skip_space(value, equals + 1));
    } else if (key.empty()) {
      key = "arg" + std::to_string(position_);
    }
    while (!value.empty() && is_space(value.back())) value.remove_suffix(1);
    sink.arguments((position_ == 0 ? "{" : ", ") + json_text(key) + ": " + json_of_python(value));
    ++position_;
    at = end;
    return true;
  }

  // By brackets and quotes. npos: not there yet.
  static std::size_t end_of_argument(std::string_view text, std::size_t at) {
    int depth = 0;
    for (char quote = 0; at < text.size(); ++at) {
      const char c = text[at];
      if (quote != 0) {
        if (c == '\\') ++at;
        else if (c == quote) quote = 0;
        continue;
      }
      if (c == '"' || c == '\'') quote = c;
      else if (c == '(' || c == '[' || c == '{') ++depth;
      else if ((c == ',' || c == ')') && depth == 0) return at;
      else if (c == ')' || c == ']' || c == '}') --depth;
    }
    return std::string_view::npos;
  }

  bool behind(std::string_view text, std::size_t next, std::size_t& at, Progress& progress) {
    const char c = text[next];
    if (list_ && c == ']') {
      at = next + 1;
      progress = Progress::done;
    } else if (list_ && c == ',') {
      at = next + 1;
      at_ = At::call;
    } else {
      progress = Progress::done;
    }
    return true;
  }

  const KnownTools& tools_;
  At at_ = At::begin;
  bool list_ = false, told_ = false;
  std::string name_;
  std::size_t position_ = 0;
};

}  // namespace

std::unique_ptr<CallBody> make_python_calls(const AnswerPart&, const KnownTools& tools) { return std::make_unique<PythonCalls>(tools); }

}  // namespace mekik::text
