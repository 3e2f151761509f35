// Is a text one JSON value? Enough to tell what a plugin hands out as JSON.
#pragma once
#include <cctype>
#include <cstring>
#include <string_view>

namespace mekik::validate {

class JsonCheck {
 public:
  explicit JsonCheck(std::string_view text) : text_{text} {}
  bool whole() {
    const bool ok = value(0);
    space();
    return ok && at_ == text_.size();
  }

 private:
  void space() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) != nullptr) ++at_;
  }
  bool take(char c) {
    space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view w) {
    if (text_.substr(at_, w.size()) != w) return false;
    at_ += w.size();
    return true;
  }
  bool string() {
    if (!take('"')) return false;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) return false;
      if (text_[at_] == '\\') ++at_;
    }
    return take('"');
  }
  bool number() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 || std::strchr("+-.eE", text_[at_]) != nullptr))
      ++at_;
    return at_ > begin && std::isdigit(static_cast<unsigned char>(text_[at_ - 1])) != 0;
  }
  bool list(char close, bool named, int depth) {
    ++at_;
    if (take(close)) return true;
    do {
      if (named && !(string() && take(':'))) return false;
      if (!value(depth + 1)) return false;
    } while (take(','));
    return take(close);
  }
  bool value(int depth) {
    space();
    if (depth > 64 || at_ >= text_.size()) return false;
    switch (text_[at_]) {
      case '{':
        return list('}', true, depth);
      case '[':
        return list(']', false, depth);
      case '"':
        return string();
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        return number();
    }
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace mekik::validate
