// {call} and {json}: calls, or arguments, that are JSON already. They are passed on as they come, byte by byte.
#include <algorithm>

#include "text/answer/body.hpp"

namespace mekik::text {

namespace {

bool among(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Arguments on their way out. Some models put the object into a text once more: that one is taken out of it, once it is whole.
class Arguments {
 public:
  // False: `c` is behind the value.
  bool take(char c, CallSink* sink) {
    if (!scan_.begun() && is_space(c)) return true;
    const JsonScan::State state = scan_.take(c);
    if (state == JsonScan::behind) {
      over_ = true;
      return false;
    }
    held_ += c;
    over_ = state == JsonScan::last;
    if (held_.size() == 1 && passed_ == 0) text_ = c == '"';
    if (sink != nullptr) pass(*sink);
    return true;
  }
  // Passes on what is certain.
  void pass(CallSink& sink) {
    if (held_.empty() || (text_ && !over_)) return;
    if (text_)
      if (auto parsed = json::parse(held_); parsed && parsed->is_string()) held_ = std::string{parsed->get_string()};
    text_ = false;
    passed_ += held_.size();
    sink.arguments(held_);
    held_.clear();
  }
  bool over() const { return over_; }
  // No more comes: a text that is cut goes out as it is.
  void cut(CallSink& sink) {
    text_ = false;
    pass(sink);
  }

 private:
  JsonScan scan_;
  std::string held_;
  std::size_t passed_ = 0;
  bool text_ = false, over_ = false;
};

// Gathers what one feed gives into one piece.
struct Gather final : CallSink {
  bool begin_call(const std::string&, const std::string&) override { return true; }
  void arguments(std::string_view json) override { out += json; }
  void end_call() override {}
  void pass_on(CallSink& sink) {
    if (!out.empty()) sink.arguments(out);
    out.clear();
  }
  std::string out;
};

class ArgumentsBody final : public CallBody {
 public:
  ArgumentsBody(std::string name, std::string id) : name_{std::move(name)}, id_{std::move(id)} {}

  Progress feed(std::string_view text, bool final, std::size_t& used, CallSink& sink) override {
    if (!begun_ && !sink.begin_call(name_, id_)) return Progress::failed;
    begun_ = true;
    Gather gather;
    std::size_t at = 0;
    while (at < text.size() && !arguments_.over() && arguments_.take(text[at], &gather)) ++at;
    used += at;
    const bool over = arguments_.over();
    if (over) arguments_.pass(gather);
    else if (final) arguments_.cut(gather);
    gather.pass_on(sink);
    if (over) sink.end_call();
    return over || final ? Progress::done : Progress::more;
  }

 private:
  std::string name_, id_;
  Arguments arguments_;
  bool begun_ = false;
};

class CallObjects final : public CallBody {
 public:
  explicit CallObjects(const CallKeys& keys) : keys_{keys} {}

  Progress feed(std::string_view text, bool final, std::size_t& used, CallSink& sink) override {
    std::size_t at = 0;
    Progress progress = Progress::more;
    while (at < text.size() && progress == Progress::more) {
      std::size_t step = 1;
      progress = take(text, at, final, step, sink);
      if (step == 0 && progress == Progress::more) break;  // what decides is not there yet
      if (progress == Progress::more || step > 0) at += step;
    }
    used += at;
    flush(sink);
    if (progress == Progress::more && final) {
      if (begun_) arguments_.cut(sink);
      return told_ || (values_ > 0 && depth_ == 0) ? Progress::done : Progress::failed;
    }
    return progress;
  }

 private:
  enum class At { outside, key, colon, value, name, id, arguments, other };

  void flush(CallSink& sink) {
    if (begun_) arguments_.pass(gather_);
    gather_.pass_on(sink);
  }

  // One byte, or several. `step` 0: it belongs to somebody else, or waits.
  Progress take(std::string_view text, std::size_t at, bool final, std::size_t& step, CallSink& sink) {
    const char c = text[at];
    switch (at_) {
      case At::outside:
        return outside(text, at, final, step);
      case At::key:
        return key(c, step, sink);
      case At::colon:
        if (is_space(c)) return Progress::more;
        if (c != ':') return stray(step);
        at_ = At::value;
        return Progress::more;
      case At::value:
        return value(c, step, sink);
      case At::name:
      case At::id:
      case At::other:
        return member(c, step, sink);
      case At::arguments:
        if (!arguments_.take(c, begun_ ? &gather_ : nullptr)) return behind_arguments(c, step, sink);
        if (arguments_.over()) at_ = At::key;
        return Progress::more;
    }
    return Progress::failed;
  }

  Progress behind_arguments(char c, std::size_t& step, CallSink& sink) {
    at_ = At::key;
    return key(c, step, sink);
  }

  // Something is wrong with it. Nothing told yet: no call. Else the rest is not ours.
  Progress stray(std::size_t& step) {
    step = 0;
    return told_ ? Progress::done : Progress::failed;
  }

  Progress outside(std::string_view text, std::size_t at, bool final, std::size_t& step) {
    std::size_t next = skip_space(text, at);
    if (next < text.size() && values_ > 0 && (text[next] == ',' || text[next] == ';')) next = skip_space(text, next + 1);
    if (next == text.size()) {
      step = 0;
      if (!final) return Progress::more;
      return told_ || (values_ > 0 && depth_ == 0) ? Progress::done : Progress::failed;
    }
    const char c = text[next];
    if (c == ']' && depth_ > 0) {
      step = next + 1 - at;
      ++values_;
      --depth_;
      return Progress::more;
    }
    if (c != '{' && (c != '[' || depth_ > 0)) {
      if (depth_ == 0 && values_ > 0) {
        step = 0;
        return Progress::done;
      }
      return stray(step);
    }
    step = next + 1 - at;
    if (c == '[') ++depth_;
    else begin_object();
    return Progress::more;
  }

  void begin_object() {
    at_ = At::key;
    level_ = 1;
    name_.clear();
    id_.clear();
    token_.clear();
    arguments_ = {};
    begun_ = false;
    scan_.reset();
  }

  Progress key(char c, std::size_t& step, CallSink& sink) {
    if (token_.empty() && (is_space(c) || c == ',')) return Progress::more;
    if (token_.empty() && c == '}') {
      if (--level_ > 0) return Progress::more;
      return end_object(step, sink);
    }
    if (token_.empty() && c != '"') return stray(step);
    token_ += c;
    if (scan_.take(c) != JsonScan::last) return Progress::more;
    scan_.reset();
    const auto parsed = json::parse(token_);
    token_.clear();
    if (!parsed || !parsed->is_string()) return stray(step);
    key_ = std::string{parsed->get_string()};
    at_ = At::colon;
    return Progress::more;
  }

  Progress value(char c, std::size_t& step, CallSink& sink) {
    if (is_space(c)) return Progress::more;
    if (keys_.name_is_key && level_ == 1 && !begun_) {
      name_ = key_;
      return begin_arguments(c, step, sink);
    }
    if (key_ == "function" && c == '{' && level_ == 1) {  // OpenAI's own form, one level deeper
      ++level_;
      at_ = At::key;
      return Progress::more;
    }
    if (among(keys_.arguments, key_)) return begin_arguments(c, step, sink);
    at_ = c == '"' && (among(keys_.name, key_) || key_ == "function") ? At::name : c == '"' && among(keys_.id, key_) ? At::id : At::other;
    return member(c, step, sink);
  }

  Progress begin_arguments(char c, std::size_t& step, CallSink& sink) {
    at_ = At::arguments;
    has_arguments_ = true;
    if (!name_.empty() && !begin(sink)) return refuse(step);
    if (!arguments_.take(c, begun_ ? &gather_ : nullptr)) return stray(step);
    if (arguments_.over()) at_ = At::key;
    return Progress::more;
  }

  Progress member(char c, std::size_t& step, CallSink& sink) {
    const JsonScan::State state = scan_.take(c);
    if (state == JsonScan::behind) {
      scan_.reset();
      token_.clear();
      at_ = At::key;
      return key(c, step, sink);
    }
    if (at_ != At::other) token_ += c;
    if (state != JsonScan::last) return Progress::more;
    scan_.reset();
    const At what = at_;
    at_ = At::key;
    const auto parsed = json::parse(token_);
    token_.clear();
    if (what == At::other || !parsed || !parsed->is_string()) return Progress::more;
    std::string found{parsed->get_string()};
    if (what == At::id) {
      id_ = std::move(found);
      return Progress::more;
    }
    if (name_.empty()) name_ = std::move(found);
    // Only with its arguments is it a call: an object with a name alone may be anything.
    if (has_arguments_ && !begun_) {
      if (!begin(sink)) return refuse(step);
      arguments_.pass(gather_);
    }
    return Progress::more;
  }

  bool begin(CallSink& sink) {
    flush(sink);
    if (begun_) return true;
    if (!sink.begin_call(name_, id_)) return false;
    begun_ = told_ = true;
    return true;
  }

  // A name that is none, in a call that the request would have to know.
  Progress refuse(std::size_t& step) {
    if (!told_) return Progress::failed;
    step = 0;
    return Progress::done;
  }

  Progress end_object(std::size_t& step, CallSink& sink) {
    if (name_.empty()) return stray(step);
    if (!begun_ && !begin(sink)) return refuse(step);
    flush(sink);
    sink.end_call();
    has_arguments_ = false;
    ++values_;
    at_ = At::outside;
    return Progress::more;
  }

  const CallKeys& keys_;
  At at_ = At::outside;
  int depth_ = 0, level_ = 0;  // of arrays around, and of objects inside
  std::size_t values_ = 0;
  std::string key_, token_, name_, id_;
  JsonScan scan_;
  Arguments arguments_;
  Gather gather_;
  bool has_arguments_ = false, begun_ = false, told_ = false;
};

}  // namespace

std::unique_ptr<CallBody> make_call_objects(const AnswerPart& part) { return std::make_unique<CallObjects>(part.keys); }

std::unique_ptr<CallBody> make_call_body(const AnswerPart& part, const Match& head, const KnownTools& tools) {
  switch (part.pattern.body) {
    case Slot::json:
      return std::make_unique<ArgumentsBody>(head.name, head.id);
    case Slot::fields:
      return make_fields(part, head, tools);
    case Slot::python:
      return make_python_calls(part, tools);
    case Slot::dict:
      return make_dict(part, head);
    default:
      return make_call_objects(part);
  }
}

}  // namespace mekik::text
