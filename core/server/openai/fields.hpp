// The fields of request bodies: which there are, what becomes of each, and typed reading with errors that name the field.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api_error.hpp"

namespace mekik::server::openai {

enum Kind : unsigned { kChat = 1, kCompletion = 2, kTokenize = 4, kDetokenize = 8, kEmbeddings = 16, kRerank = 32 };

enum class Policy {
  honoured,  // read by the code of its route
  only,      // one of the values of `allowed` (JSON, separated by blanks); all others are refused
  logged,    // text for the server's log
  warned,    // has no effect here; the answer's `warnings` says so
  refused,
};

// One row per field that is no sampler's. docs/api.md has the same rows, which a test checks.
struct FieldRow {
  const char* name;
  unsigned kinds;
  Policy policy;
  const char* allowed;  // for Policy::only
  const char* why;      // for only, warned and refused: what the client is told
};
std::span<const FieldRow> field_rows();

// Reads the members of one object. null counts as absent. The first mistake is kept, and later reads are harmless.
class Fields {
 public:
  Fields(const json::object& body, std::string where = {}) : body_{body}, where_{std::move(where)} {}

  const json::value* get(std::string_view name);  // nullptr: absent or null; marks it as read
  bool boolean(std::string_view name, bool fallback);
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high);
  std::optional<std::string> text(std::string_view name);
  const json::array* array(std::string_view name);
  const json::object* object(std::string_view name);
  // Applies the rows of this kind that are not `honoured`: refuses, warns, and adds "name=text" to `logged`.
  void apply_policies(unsigned kind, std::vector<std::string>& warnings, std::string& logged);
  json::object rest() const;  // members that nobody read, nulls left out

  void fail(std::string_view name, std::string message);
  void adopt(ApiError error) {
    if (!error_) error_ = std::move(error);
  }
  const MaybeError& error() const { return error_; }

 private:
  std::string path(std::string_view name) const { return where_.empty() ? std::string{name} : where_ + "." + std::string{name}; }
  const json::object& body_;
  std::string where_;
  std::set<std::string, std::less<>> read_;
  MaybeError error_;
};

// "unknown field", with the nearest name that this kind of request knows.
ApiError unknown_field(std::string_view name, const std::vector<std::string>& known);
std::vector<std::string> known_fields(unsigned kind);
// Parses a body: UTF-8, JSON, an object.
std::optional<json::object> parse_body(std::string_view body, std::size_t max_bytes, MaybeError& error);

}  // namespace mekik::server::openai
