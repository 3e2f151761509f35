// Values as text: str(), repr() and json.dumps() of Python.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/text.hpp"
#include "text/jinja/value.hpp"

namespace mekik::text::jinja {

namespace {

std::string text_repr(std::string_view text) {
  const bool double_quotes = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = double_quotes ? '"' : '\'';
  std::string out(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    char buffer[16];
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD) {
      std::snprintf(buffer, sizeof buffer, "\\x%02x", static_cast<unsigned>(c));
      out += buffer;
    } else if (c == 0x2028 || c == 0x2029 || c == 0xFEFF || (c >= 0x2000 && c <= 0x200F) || (c >= 0xD800 && c < 0xE000)) {
      std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(c));
      out += buffer;
    } else {
      out += text.substr(begin, at - begin);
    }
  }
  return out + quote;
}

std::string json_text(std::string_view text, bool ascii) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    char buffer[16];
    const auto unit = [&](char32_t u) {
      std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(u));
      out += buffer;
    };
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (c < 0x20 || (ascii && c >= 0x7F && c < 0x10000)) {
          unit(c);
        } else if (ascii && c >= 0x10000) {
          unit(0xD800 + ((c - 0x10000) >> 10));
          unit(0xDC00 + ((c - 0x10000) & 0x3FF));
        } else {
          out += text.substr(begin, at - begin);
        }
    }
  }
  return out + "\"";
}

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Budget& budget) : style_{style}, budget_{budget} {}

  void write(const Value& value) {
    budget_.spend(1);
    switch (value.type()) {
      case Type::none:
        out_ += "null";
        break;
      case Type::boolean:
        out_ += value.truthy() ? "true" : "false";
        break;
      case Type::integer:
        out_ += std::to_string(value.as_integer());
        break;
      case Type::big_integer:
        out_ += value.hint();
        break;
      case Type::real:
        out_ += number(value.as_real());
        break;
      case Type::text:
        out_ += json_text(value.as_text().bytes, style_.ascii);
        break;
      case Type::list:
      case Type::tuple:
        write_list(value.as_list());
        break;
      case Type::dict:
        write_dict(value.as_dict());
        break;
      case Type::undefined:
        throw TemplateError{value.hint() + " is undefined and has no JSON form"};
      default:
        throw TemplateError{std::string{"a "} + type_name(value) + " has no JSON form"};
    }
    if (out_.size() > budget_.max_output_bytes) budget_.spend_bytes(out_.size());
  }
  std::string take() {
    budget_.spend_bytes(out_.size());
    return std::move(out_);
  }

 private:
  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return real_text(value);
  }
  void newline() {
    if (style_.indent < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(style_.indent) * level_, ' ');
  }
  void open(char bracket) {
    budget_.enter();
    out_ += bracket;
    ++level_;
    newline();
  }
  void close(char bracket) {
    --level_;
    newline();
    out_ += bracket;
    budget_.leave();
  }
  void separate() {
    // With an indent, Python drops the space after the comma of the default separator.
    out_ += style_.indent >= 0 && style_.item_separator == ", " ? "," : style_.item_separator;
    newline();
  }
  void write_list(const List& items) {
    if (items.empty()) {
      out_ += "[]";
      return;
    }
    open('[');
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) separate();
      write(items[i]);
    }
    close(']');
  }
  void write_dict(const Dict& dict) {
    if (dict.items.empty()) {
      out_ += "{}";
      return;
    }
    std::vector<const std::pair<Value, Value>*> items;
    for (const auto& item : dict.items) items.push_back(&item);
    if (style_.sort_keys)
      std::stable_sort(items.begin(), items.end(), [&](const auto* a, const auto* b) { return compare(a->first, b->first, budget_) < 0; });
    open('{');
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) separate();
      out_ += key(items[i]->first) + style_.key_separator;
      write(items[i]->second);
    }
    close('}');
  }
  std::string key(const Value& value) {
    switch (value.type()) {
      case Type::text:
        return json_text(value.as_text().bytes, style_.ascii);
      case Type::none:
        return "\"null\"";
      case Type::boolean:
        return value.truthy() ? "\"true\"" : "\"false\"";
      case Type::integer:
        return "\"" + std::to_string(value.as_integer()) + "\"";
      case Type::real:
        return "\"" + number(value.as_real()) + "\"";
      default:
        throw TemplateError{std::string{"a "} + type_name(value) + " cannot be a key in JSON"};
    }
  }

  const JsonStyle& style_;
  Budget& budget_;
  std::string out_;
  std::size_t level_ = 0;
};

void append_repr(std::string& out, const Value& value, Budget& budget) {
  budget.spend(1);
  const auto items = [&](const List& list) {
    budget.enter();
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out += ", ";
      append_repr(out, list[i], budget);
    }
    budget.leave();
  };
  switch (value.type()) {
    case Type::text:
      out += text_repr(value.as_text().bytes);
      break;
    case Type::list:
      out += '[';
      items(value.as_list());
      out += ']';
      break;
    case Type::tuple:
      out += '(';
      items(value.as_list());
      out += value.as_list().size() == 1 ? ",)" : ")";
      break;
    case Type::dict:
      out += '{';
      budget.enter();
      for (const auto& item : value.as_dict().items) {
        if (out.back() != '{') out += ", ";
        append_repr(out, item.first, budget);
        out += ": ";
        append_repr(out, item.second, budget);
      }
      budget.leave();
      out += '}';
      break;
    case Type::undefined:
      out += "Undefined";
      break;
    default:
      out += to_text(value, budget).bytes;
  }
  budget.spend_bytes(out.size() > budget.max_output_bytes ? out.size() : 0);
}

}  // namespace

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
  std::string_view shown{buffer.data(), static_cast<std::size_t>(end - buffer.data())};
  std::string sign;
  if (shown.front() == '-') {
    sign = "-";
    shown.remove_prefix(1);
  }
  const std::size_t e = shown.find('e');
  std::string digits{shown.substr(0, 1)};
  if (e > 1) digits += shown.substr(2, e - 2);
  int exponent = 0;
  const std::size_t number_at = shown[e + 1] == '+' ? e + 2 : e + 1;
  std::from_chars(shown.data() + number_at, shown.data() + shown.size(), exponent);
  if (exponent < -4 || exponent >= 16) {
    std::string out = sign + digits.substr(0, 1);
    if (digits.size() > 1) out += "." + digits.substr(1);
    const int magnitude = std::abs(exponent);
    return out + (exponent < 0 ? "e-" : "e+") + (magnitude < 10 ? "0" : "") + std::to_string(magnitude);
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

Text to_text(const Value& value, Budget& budget) {
  switch (value.type()) {
    case Type::undefined:
      return {};
    case Type::none:
      return {"None", {}, true};
    case Type::boolean:
      return {value.truthy() ? "True" : "False", {}, true};
    case Type::integer:
      return {std::to_string(value.as_integer()), {}, true};
    case Type::big_integer:
      return {value.hint(), {}, true};
    case Type::real:
      return {real_text(value.as_real()), {}, true};
    case Type::text:
      return value.as_text();
    case Type::list:
    case Type::tuple:
    case Type::dict:
      return {repr(value, budget), {}, false};
    case Type::generator:
      return {"<generator object>", {}, true};
    case Type::function:
      return {"<function " + value.as_function().name + ">", {}, true};
    case Type::space:
      return {"<Namespace>", {}, true};
    case Type::opaque:
      return {"<" + value.hint() + ">", {}, true};
  }
  return {};
}

std::string repr(const Value& value, Budget& budget) {
  std::string out;
  append_repr(out, value, budget);
  budget.spend_bytes(out.size());
  return out;
}

std::string to_json(const Value& value, const JsonStyle& style, Budget& budget) {
  JsonWriter writer{style, budget};
  writer.write(value);
  return writer.take();
}

}  // namespace mekik::text::jinja
