// {fields} and {dict}: arguments one by one, in a notation of the format's own, made JSON as they come.
#include "text/answer/body.hpp"

namespace mekik::text {

namespace {

bool is_true(std::string_view type) { return type == "true" || type == "string" || type == "str"; }

// Tags inside a value, one for each member of an object or an array: <a>1</a><b><item>2</item></b>.
class Nested {
 public:
  Nested(std::string_view prefix, std::string_view text) : prefix_{prefix}, text_{text} {}
  // Nothing: it is plain text.
  std::optional<std::string> json(int depth = 0) {
    if (depth > 32) return std::nullopt;
    const std::string open = std::string{prefix_} + "<";
    if (!text_.substr(skip_space(text_, 0)).starts_with(open)) return std::nullopt;
    std::string out;
    bool list = true;
    std::size_t at = skip_space(text_, 0);
    for (bool first = true; at < text_.size(); first = false, at = skip_space(text_, at)) {
      const std::size_t name_end = text_.find('>', at + open.size());
      if (text_.substr(at, open.size()) != open || name_end == std::string_view::npos) return std::nullopt;
      const std::string name{text_.substr(at + open.size(), name_end - at - open.size())};
      const std::string again = open + name + ">", close = std::string{prefix_} + "</" + name + ">";
      const std::size_t end = matching(name_end + 1, again, close);
      if (end == std::string_view::npos) return std::nullopt;
      if (first) list = name == "item";
      const std::string_view inside = text_.substr(name_end + 1, end - name_end - 1);
      const auto deeper = Nested{prefix_, inside}.json(depth + 1);
      if (!first) out += ", ";
      if (!list) out += json_text(name) + ": ";
      out += deeper ? *deeper : json_of_value(inside, std::nullopt);
      at = end + close.size();
    }
    return list ? "[" + out + "]" : "{" + out + "}";
  }

 private:
  std::size_t matching(std::size_t at, const std::string& open, const std::string& close) const {
    for (int depth = 1;;) {
      const std::size_t end = text_.find(close, at), more = text_.find(open, at);
      if (end == std::string_view::npos) return end;
      depth += more < end ? 1 : -1;
      if (depth == 0) return end;
      at = more < end ? more + open.size() : end + close.size();
    }
  }
  std::string_view prefix_, text_;
};

class Fields final : public CallBody {
 public:
  Fields(const AnswerPart& part, const Match& head, const KnownTools& tools) : part_{part}, name_{head.name}, id_{head.id}, tools_{tools} {}

  Progress feed(std::string_view text, bool final, std::size_t& used, CallSink& sink) override {
    if (!begun_ && !sink.begin_call(name_, id_)) return Progress::failed;
    begun_ = true;
    std::size_t at = 0;
    const Progress progress = run(text, final, at, sink);
    used += at;
    return progress;
  }

 private:
  Progress run(std::string_view text, bool final, std::size_t& at, CallSink& sink) {
    for (;;) {
      if (inside_) {
        if (!value(text, final, at, sink)) return final ? Progress::done : Progress::more;
        continue;
      }
      const std::size_t next = skip_space(text, at);
      const Match head = match_pieces(part_.field.pattern.head, text, next, final);
      if (head.state == Match::maybe) return Progress::more;
      if (head.state == Match::no) {
        if (final && next == text.size()) return Progress::done;  // cut: the object stays open
        sink.arguments(any_ ? "}" : "{}");
        sink.end_call();
        return Progress::done;
      }
      begin_value(head, sink);
      at = head.end;
    }
  }

  void begin_value(const Match& head, CallSink& sink) {
    sink.arguments((any_ ? ", " : "{") + json_text(head.key) + ": ");
    any_ = inside_ = true;
    searched_ = 0;
    key_ = head.key;
    begun_value_ = false;
    type_ = tools_.parameter(name_, key_);
    // A type in the answer itself is surer than the schema.
    if (!head.type.empty()) type_ = ParameterType{is_true(head.type), !is_true(head.type), false};
    streams_ = type_ && type_->text && !type_->other && !type_->nothing;
    if (streams_) sink.arguments("\"");
  }

  // The value up to its end; false: more text decides.
  bool value(std::string_view text, bool final, std::size_t& at, CallSink& sink) {
    if (!begun_value_) {
      if (at == text.size() && !final) return false;
      std::size_t inside = at;
      const Match::State cdata = part_.field.cdata ? match_literal("<![CDATA[", text, inside, final) : Match::no;
      if (cdata == Match::maybe) return false;
      in_cdata_ = cdata == Match::yes;
      at = in_cdata_ ? inside : at;
      if (part_.field.newline_before && at < text.size() && text[at] == '\n') ++at;
      begun_value_ = true;
    }
    std::size_t end = at + searched_;
    Match tail;
    for (; end < text.size(); ++end) {
      tail = ends_at(text, end, final);
      if (tail.state != Match::no) break;
    }
    if (tail.state == Match::yes || final) {
      std::string_view found = text.substr(at, end - at);
      if (tail.state == Match::yes && part_.field.newline_after && found.ends_with('\n')) found.remove_suffix(1);
      if (streams_) sink.arguments(json_escaped(found) + (tail.state == Match::yes ? "\"" : ""));
      else if (tail.state == Match::yes) sink.arguments(spelled(found));
      else sink.arguments(found);  // cut: as much as there is
      at = tail.state == Match::yes ? tail.end : text.size();
      inside_ = false;
      return tail.state == Match::yes;
    }
    searched_ = end - at;
    if (!streams_) return false;
    // A line break at the end may be the format's.
    if (part_.field.newline_after && end > at && text[end - 1] == '\n') --end;
    if (end > at) sink.arguments(json_escaped(text.substr(at, end - at)));
    at = end;
    searched_ = 0;
    return false;
  }

  // Whether the value ends here: behind its tail must stand the next field, or the end of the call. So tags in a text are no end.
  Match ends_at(std::string_view text, std::size_t at, bool final) const {
    Match tail;
    if (in_cdata_ && (tail.state = match_literal("]]>", text, at, final)) != Match::yes) return tail;
    tail = match_pieces(part_.field.pattern.tail, text, at, final, key_);
    if (tail.state != Match::yes) return tail;
    const std::size_t next = skip_space(text, tail.end);
    if (final && next == text.size()) return tail;
    const Match field = match_pieces(part_.field.pattern.head, text, next, final);
    if (field.state == Match::yes) return tail;
    const Match end = match_pieces(part_.pattern.tail, text, next, final);
    if (end.state == Match::yes) return tail;
    tail.state = field.state == Match::maybe || end.state == Match::maybe ? Match::maybe : Match::no;
    return tail;
  }

  std::string spelled(std::string_view value) const {
    if (!part_.field.nested.empty())
      if (auto json = Nested{part_.field.nested, value}.json()) return *json;
    return json_of_value(value, type_);
  }

  const AnswerPart& part_;
  const std::string name_, id_;
  const KnownTools& tools_;
  bool begun_ = false, any_ = false, inside_ = false, begun_value_ = false, streams_ = false, in_cdata_ = false;
  std::string key_;
  std::optional<ParameterType> type_;
  std::size_t searched_ = 0;  // bytes of the value where it does not end
};

// {city:<|"|>Paris<|"|>,days:[1,2]}
class BareDict final : public CallBody {
 public:
  BareDict(const AnswerPart& part, const Match& head) : quote_{part.quote}, name_{head.name}, id_{head.id} {}

  Progress feed(std::string_view text, bool final, std::size_t& used, CallSink& sink) override {
    if (!begun_ && !sink.begin_call(name_, id_)) return Progress::failed;
    begun_ = true;
    std::string out;
    std::size_t at = 0;
    Progress progress = Progress::more;
    while (at < text.size() && progress == Progress::more && step(text, final, at, out, progress)) {}
    used += at;
    if (!out.empty()) sink.arguments(out);
    if (progress == Progress::done) sink.end_call();
    return progress == Progress::more && final ? Progress::done : progress;
  }

 private:
  // False: more text decides.
  bool step(std::string_view text, bool final, std::size_t& at, std::string& out, Progress& progress) {
    std::size_t end = at;
    const Match::State quote = match_literal(quote_, text, end, final);
    if (quote == Match::maybe) return false;
    if (quote == Match::yes) {
      out += '"';
      text_ = !text_;
      at = end;
      return true;
    }
    if (text_) {
      out += json_escaped(text.substr(at, 1));
      ++at;
      return true;
    }
    const char c = text[at];
    if (c == '{' || c == '[') {
      open_ += c;
    } else if (c == '}' || c == ']') {
      if (!open_.empty()) open_.pop_back();
      if (open_.empty()) progress = Progress::done;
    } else if (!is_space(c) && c != ',' && c != ':' && !open_.empty() && open_.back() == '{' && key_next_) {
      return key(text, final, at, out);
    }
    if (c == '{' || c == ',') key_next_ = true;
    if (c == ':') key_next_ = false;
    out += c;
    ++at;
    return true;
  }

  bool key(std::string_view text, bool final, std::size_t& at, std::string& out) {
    const std::size_t colon = text.find(':', at);
    if (colon == std::string_view::npos && !final) return false;
    std::string_view name = text.substr(at, colon == std::string_view::npos ? std::string_view::npos : colon - at);
    at += name.size();
    if (name.size() >= 2 && name.front() == '"' && name.back() == '"') name = name.substr(1, name.size() - 2);
    out += json_text(name);
    key_next_ = false;
    return true;
  }

  const std::string quote_, name_, id_;
  std::string open_;
  bool begun_ = false, text_ = false, key_next_ = false;
};

}  // namespace

std::unique_ptr<CallBody> make_fields(const AnswerPart& part, const Match& head, const KnownTools& tools) {
  return std::make_unique<Fields>(part, head, tools);
}

std::unique_ptr<CallBody> make_dict(const AnswerPart& part, const Match& head) { return std::make_unique<BareDict>(part, head); }

Match::State body_begins(const AnswerPart& part, std::string_view text, std::size_t at, bool final) {
  const std::size_t next = skip_space(text, at);
  if (part.pattern.body == Slot::text) return Match::yes;
  if (part.pattern.body == Slot::fields) {
    if (part.pattern.tail.empty() && final && next == text.size()) return Match::yes;
    const Match field = match_pieces(part.field.pattern.head, text, next, final);
    const Match tail = part.pattern.tail.empty() ? Match{} : match_pieces(part.pattern.tail, text, next, final);
    if (field.state == Match::yes || tail.state == Match::yes) return Match::yes;
    return field.state == Match::maybe || tail.state == Match::maybe ? Match::maybe : Match::no;
  }
  if (next == text.size()) return final ? Match::no : Match::maybe;
  const char c = text[next];
  if (part.pattern.body == Slot::json || part.pattern.body == Slot::dict) return c == '{' ? Match::yes : Match::no;
  const auto letter = [](char l) { return (l >= 'a' && l <= 'z') || (l >= 'A' && l <= 'Z') || l == '_'; };
  const bool python = part.pattern.body == Slot::python;
  if (c != '[') return (python ? letter(c) : c == '{') ? Match::yes : Match::no;
  const std::size_t inner = skip_space(text, next + 1);
  if (inner == text.size()) return final ? Match::no : Match::maybe;
  if (python) return letter(text[inner]) ? Match::yes : Match::no;
  return text[inner] == '{' || (text[inner] == ']' && !part.at_start) ? Match::yes : Match::no;
}

}  // namespace mekik::text
