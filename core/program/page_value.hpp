// What every part of a page's TOML is read with: checks of keys and kinds.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "program/page_spec.hpp"

namespace mekik::program {

class ValueReader {
 protected:
  using Kind = config::Kind;
  using Value = config::Value;
  explicit ValueReader(config::Diagnostics& diagnostics) : diagnostics_{diagnostics} {}

  // Runs one row's reading; a mistake in it leaves the others alone.
  template <class Read>
  void guard(Read&& read) {
    try {
      read();
    } catch (const Mistake& mistake) {
      diagnostics_.error(mistake.at, mistake.message, mistake.hint);
    }
  }
  [[noreturn]] static void wrong(const config::Origin& at, std::string message, std::string hint = {}) {
    throw Mistake{at, std::move(message), std::move(hint)};
  }
  static void need(const Value& value, Kind kind, std::string_view what) {
    if (value.kind != kind) {
      std::string message{what};
      message += std::string{" must be "} + config::kind_name(kind) + ", not " + config::kind_name(value.kind);
      wrong(value.origin, message);
    }
  }
  // Errors for every key of `table` that is not among `known`.
  void known_keys(const Value& table, std::string_view what, std::initializer_list<const char*> known) {
    for (const auto& [key, value] : table.table) {
      if (std::any_of(known.begin(), known.end(), [&, k = std::string_view{key}](const char* name) { return k == name; })) continue;
      const auto near = closest(key, std::vector<std::string>(known.begin(), known.end()));
      diagnostics_.error(
          value.key_origin, "unknown key " + mekik::quoted(key) + " in " + std::string{what},
          near ? "did you mean \"" + *near + "\"?" : "it takes " + join(std::vector<std::string>(known.begin(), known.end()), ", "));
    }
  }
  static NameText name(const Value& value) {
    need(value, Kind::text, "a name");
    return {value.text, value.origin, value.plain_text};
  }
  static std::vector<NameText> name_list(const Value& value) {
    std::vector<NameText> out;
    if (value.kind == Kind::list)
      for (const Value& item : value.list) out.push_back(name(item));
    else out.push_back(name(value));
    return out;
  }
  static std::vector<std::string> text_list(const Value& value, std::string_view what) {
    std::vector<std::string> out;
    if (value.kind == Kind::text) return {value.text};
    need(value, Kind::list, what);
    for (const Value& item : value.list) {
      need(item, Kind::text, what);
      out.push_back(item.text);
    }
    return out;
  }
  static Datum literal(const Value& value, std::string_view otherwise) {
    if (value.kind == Kind::text) return Datum::of(value.text);
    if (value.kind == Kind::integer) return Datum::of(value.integer);
    if (value.kind == Kind::real) return Datum::of(value.real);
    if (value.kind == Kind::boolean) return Datum::of(value.boolean);
    wrong(value.origin, std::string{otherwise});
  }
  static bool flag(const Value& value, std::string_view what) {
    need(value, Kind::boolean, what);
    return value.boolean;
  }

  config::Diagnostics& diagnostics_;
};

}  // namespace mekik::program
