// Oniguruma's syntax in PCRE2's. What differs in the patterns of real models: ^ and $ always mean lines, (?m) is what others call
// (?s), \h is a hexadecimal digit, classes nest and intersect (&&), \w and \s follow Unicode's definitions, {,n} counts from 0;
// properties know a later version of Unicode.
#include <vector>

#include "base/text.hpp"
#include "text/hf/regex.hpp"
#include "text/hf/regex_classes.hpp"

namespace mekik::text::hf {

namespace {

// One class: what may stand between brackets, and what can only be an alternative to them.
struct ClassParts {
  std::string items;
  std::vector<std::string> others;

  std::string text() const {
    if (others.empty()) return items.empty() ? "(?!)" : "[" + items + "]";
    std::string out = "(?:" + (items.empty() ? std::string{} : "[" + items + "]");
    for (const std::string& other : others) out += (out.size() > 3 ? "|" : "") + other;
    return out + ")";
  }
};

class Translator {
 public:
  explicit Translator(std::string_view in) : in_(in) {}

  Result<std::string> run() {
    while (at_ < in_.size()) MEKIK_CHECK_OK(element());
    end_alternative();
    return std::move(out_);
  }

 private:
  Status wrong(const std::string& what) const { return unsupported("at byte " + std::to_string(at_) + ": " + what); }
  bool ahead(std::string_view text) const { return in_.substr(at_).starts_with(text); }

  // Remembers the shape of an alternative outside of all groups: [atom, "+", end].
  void emit(const std::string& text) {
    if (depth_ == 0) tokens_.push_back(text);
    out_ += text;
  }

  // X+$ where X is one character fails at every place inside a long run of X, each time looking through all that is left of it.
  // A run is tried at its first place only: where that fails, the others fail, too.
  void end_alternative() {
    if (tokens_.size() == 3 && tokens_[1] == "+" && (tokens_[2] == "$" || tokens_[2] == "\\z" || tokens_[2] == "\\Z"))
      out_.insert(alternative_, "(?:\\G|(?<!" + tokens_[0] + "))");
    tokens_.clear();
  }

  Status element() {
    const char c = in_[at_];
    if (c == '\\') return escape();
    if (c == '[') {
      MEKIK_TRY(text, char_class());
      emit(text);
      return {};
    }
    if (c == '(') return group();
    if (c == '{') return count();
    if (c == ')') --depth_;
    ++at_;
    if (c == '|' && depth_ == 0) {
      end_alternative();
      out_ += '|';
      alternative_ = out_.size();
      return {};
    }
    // A character of several bytes stays together.
    std::string text{c};
    while (at_ < in_.size() && (static_cast<unsigned char>(in_[at_]) & 0xC0) == 0x80) text += in_[at_++];
    emit(text);
    return {};
  }

  Status count() {
    if (ahead("{,")) {
      emit("{0");
      ++at_;
      return {};
    }
    emit("{");
    ++at_;
    return {};
  }

  // Options are spelled otherwise: Oniguruma's m lets the dot match newlines.
  Status group() {
    if (ahead("(?~")) return wrong("absence operators are not supported");
    std::string text = "(";
    ++at_;
    if (ahead("?#")) {
      const std::size_t end = in_.find(')', at_);
      if (end == std::string_view::npos) return wrong("a comment without end");
      at_ = end + 1;
      return {};
    }
    std::size_t letters = at_;
    if (ahead("?"))
      for (++letters; letters < in_.size() && std::string_view{"imx-"}.find(in_[letters]) != std::string_view::npos;) ++letters;
    const bool options = letters > at_ + 1 && letters < in_.size() && (in_[letters] == ':' || in_[letters] == ')');
    if (options) {
      for (; at_ < letters; ++at_) text += in_[at_] == 'm' ? 's' : in_[at_];
      text += in_[at_++];
      if (text.back() == ')') {
        emit(text);
        return {};
      }
    }
    ++depth_;
    tokens_.emplace_back("(");
    out_ += text;
    return {};
  }

  Status escape() {
    const std::size_t begin = at_;
    if (at_ + 1 >= in_.size()) return wrong("a backslash at the end");
    const char c = in_[at_ + 1];
    const auto simple = [&](std::string text) {
      at_ += 2;
      emit(std::move(text));
      return Status{};
    };
    if (c == 'b' || c == 'B') {
      const std::string w = "[" + word() + "]";
      const std::string yes = "(?:(?<=" + w + ")(?!" + w + ")|(?<!" + w + ")(?=" + w + "))";
      const std::string no = "(?:(?<=" + w + ")(?=" + w + ")|(?<!" + w + ")(?!" + w + "))";
      return simple(c == 'b' ? yes : no);
    }
    if (c == 'w' || c == 'W') return simple((c == 'w' ? "[" : "[^") + word() + "]");
    if (c == 'O' || c == 'N') return simple(c == 'O' ? "(?s:.)" : ".");
    if (std::string_view{"AZzGRXK"}.find(c) != std::string_view::npos) return simple({'\\', c});
    if ((c >= '1' && c <= '9') || c == 'k' || c == 'g') return simple({'\\', c});
    ClassParts parts;
    MEKIK_CHECK_OK(class_escape(parts));
    // A single character needs no brackets, and \p{L} none either unless something was added to it.
    const bool plain = parts.others.empty() && at_ == begin + 2 && parts.items.size() <= 2;
    emit(plain ? parts.items : parts.text());
    return {};
  }

  static void add(ClassParts& parts, const std::string& items, bool negated) {
    if (negated) parts.others.push_back("[^" + items + "]");
    else parts.items += items;
  }

  Status property(ClassParts& parts, bool negated) {
    const std::size_t open = at_, end = in_.find('}', at_);
    if (!ahead("{") || end == std::string_view::npos) return wrong("\\p without {name}");
    std::string_view raw = in_.substr(open + 1, end - open - 1);
    if (raw.starts_with('^')) {
      raw.remove_prefix(1);
      negated = !negated;
    }
    std::string name;
    for (const char c : raw)
      if (c != ' ' && c != '-' && c != '_') name += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") != std::string::npos)
      return wrong("the property " + quoted(raw) + " is not known");
    // As properties, punct is P and word is \w; the brackets of these names differ.
    const std::string items = name == "word" ? word() : name == "punct" ? "" : posix_class(name);
    std::string category{short_category(name)};
    if (items.empty() && category.empty() && name.size() <= 2) {
      category = name;
      category[0] = static_cast<char>(category[0] - 32);
    }
    add(parts, !items.empty() ? items : category.empty() ? named_property(raw, name) : "\\p{" + category + "}" + later(category), negated);
    at_ = end + 1;
    return {};
  }

  // An escape that stands for characters, inside or outside of brackets.
  Status class_escape(ClassParts& parts) {
    if (at_ + 1 >= in_.size()) return wrong("a backslash at the end");
    const char c = in_[at_ + 1];
    at_ += 2;
    switch (c) {
      case 's':
      case 'S':
        add(parts, std::string{kSpaces}, c == 'S');
        return {};
      case 'd':
      case 'D':
        add(parts, posix_class("digit"), c == 'D');
        return {};
      case 'w':
      case 'W':
        add(parts, posix_class("word"), c == 'W');  // between brackets it is less than outside of them
        return {};
      case 'h':
      case 'H':
        add(parts, posix_class("xdigit"), c == 'H');
        return {};
      case 'p':
      case 'P':
        return property(parts, c == 'P');
      case 'v':
        parts.items += "\\x0B";
        return {};
      case 'b':
        parts.items += "\\x08";
        return {};
      case 'u': {
        if (at_ + 4 > in_.size()) return wrong("\\u needs four digits");
        parts.items += "\\x{" + std::string{in_.substr(at_, 4)} + "}";
        at_ += 4;
        return {};
      }
      case 't':
      case 'n':
      case 'r':
      case 'f':
      case 'a':
      case 'e':
      case '0':
      case 'x':
        parts.items += {'\\', c};
        return {};
      default:
        break;
    }
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    const bool ascii = static_cast<unsigned char>(c) < 0x80;
    if (letter || !ascii) parts.items += c;  // an escape without meaning
    else parts.items += {'\\', c};
    return {};
  }

  Status bracket_name(ClassParts& parts) {
    const std::size_t end = in_.find(":]", at_ + 2);
    if (end == std::string_view::npos) return wrong("[: without :]");
    std::string_view name = in_.substr(at_ + 2, end - at_ - 2);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    if (name == "graph" || name == "print") {
      const std::string blanks = name == "graph" ? std::string{kSpaces} : "\\t-\\r\\x{85}\\x{2028}\\x{2029}";
      add(parts, blanks + "\\p{Cc}\\p{Cn}\\p{Cs}", !negated);
      for (const std::string_view group : {"L", "M", "N", "P", "S"})
        if (!negated) parts.items += later(group);
    } else {
      const std::string items = posix_class(name);
      if (items.empty()) return wrong("[:" + std::string{name} + ":] is not known");
      add(parts, items, negated);
    }
    at_ = end + 2;
    return {};
  }

  Result<std::string> char_class() {
    constexpr int kDeepest = 50;
    if (++nesting_ > kDeepest) return wrong("classes are nested too deeply");
    ++at_;
    const bool negated = ahead("^");
    if (negated) ++at_;
    std::vector<ClassParts> operands(1);
    for (bool first = true;; first = false) {
      if (at_ >= in_.size()) return wrong("a class without ]");
      ClassParts& parts = operands.back();
      const char c = in_[at_];
      if (c == ']' && !first) break;
      if (ahead("&&")) {
        operands.emplace_back();
        at_ += 2;
      } else if (ahead("[:") && in_.find(":]", at_) != std::string_view::npos) {
        MEKIK_CHECK_OK(bracket_name(parts));
      } else if (c == '[') {
        MEKIK_TRY(nested, char_class());
        parts.others.push_back(std::move(nested));
      } else if (c == '\\') {
        MEKIK_CHECK_OK(class_escape(parts));
      } else {
        if (c == ']' || c == '^') parts.items += '\\';
        parts.items += c;
        ++at_;
      }
    }
    ++at_;
    --nesting_;
    return together(operands, negated);
  }

  static std::string together(const std::vector<ClassParts>& operands, bool negated) {
    if (operands.size() == 1 && operands[0].others.empty() && !operands[0].items.empty())
      return (negated ? "[^" : "[") + operands[0].items + "]";
    std::string all;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const bool last = i + 1 == operands.size();
      all += last ? operands[i].text() : "(?=" + operands[i].text() + ")";
    }
    return negated ? "(?:(?!" + all + ")(?s:.))" : "(?:" + all + ")";
  }

  std::string_view in_;
  std::size_t at_ = 0, alternative_ = 0;
  int depth_ = 0, nesting_ = 0;
  std::vector<std::string> tokens_;
  std::string out_;
};

}  // namespace

Result<std::string> translate_pattern(std::string_view oniguruma) {
  if (!is_utf8(oniguruma)) return invalid("it is not UTF-8");
  return Translator{oniguruma}.run();
}

}  // namespace mekik::text::hf
