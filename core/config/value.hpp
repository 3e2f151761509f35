// TOML as a tree of values that remember where they were written. The rest of the core sees this, never toml++.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.hpp"

namespace mekik::config {

// A text that diagnostics point into: a file, or the command line (`--set`). Relative paths in it start at the folder of `name`.
struct Source {
  std::string name;  // the path as given, or "--set"
  std::string text;
};

// Line and column count from 1, columns in bytes; line 0: the source as a whole.
struct Origin {
  std::shared_ptr<const Source> source;  // shared: each value of a merged tree may come from another file
  std::uint32_t line = 0, column = 0;
};

enum class Kind { boolean, integer, real, text, list, table, date };
const char* kind_name(Kind kind);  // "a boolean", "an integer", ... for messages

struct Value {
  // Defined in value.cpp: clang 14 wants std::pair<.., Value> complete where it makes them here.
  Value();
  ~Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;

  Kind kind = Kind::table;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;                                  // Kind::text, and Kind::date as written
  bool plain_text = true;                            // a basic one-line string without escapes: columns inside it are exact
  std::vector<Value> list;                           // Kind::list
  std::vector<std::pair<std::string, Value>> table;  // Kind::table, in the order of the file
  Origin origin;                                     // of the value
  Origin key_origin;                                 // of its key, where it has one

  const Value* find(std::string_view key) const;  // in a table; nullptr when absent
  Value* find(std::string_view key);
};

// One complaint: where, what, and the way out.
struct Diagnostic {
  Origin at;
  std::string message;
  std::string hint;  // "did you mean ...?", may be empty
  bool warning = false;
};

// "file:line:column", "file" where the line is 0, "" without a source.
std::string place(const Origin& origin);

// Collects all complaints of a run. Not thread-safe.
class Diagnostics {
 public:
  void error(const Origin& at, std::string message, std::string hint = {});
  void warning(const Origin& at, std::string message, std::string hint = {});
  bool ok() const { return errors_ == 0; }
  const std::vector<Diagnostic>& all() const { return all_; }
  // The value at `at` is a secret: render() prints asterisks where it shows that line. So it does for every key that is called like
  // one (key, token, secret, password).
  void hide(const Origin& at) { hidden_.push_back(at); }
  // "file:line:column: error: message", the line itself and a caret with the hint, for each; sorted by place.
  std::string render() const;
  Status status() const;  // ok, or Code::invalid with render()

 private:
  std::vector<Diagnostic> all_;
  std::vector<Origin> hidden_;
  std::size_t errors_ = 0;
};

// Parses TOML 1.0 (a BOM and CRLF are fine). False: `diagnostics` says why.
bool parse_toml(std::string_view text, std::string name, Value& out, Diagnostics& diagnostics);
bool parse_toml_file(const std::string& path, Value& out, Diagnostics& diagnostics, std::size_t limit = 1u << 20);

}  // namespace mekik::config
