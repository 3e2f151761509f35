// Reading the JSON of Hugging Face's files: every error names the key and what was expected there.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/status.hpp"

namespace mekik::text::hf {

// An object of the files and its name for messages ("model", "normalizer.normalizers[1]").
class Section {
 public:
  Section(const json::object& object, std::string name) : object_(&object), name_(std::move(name)) {}
  // The value as an object, or an error.
  static Result<Section> of(const json::value& value, std::string name);

  const std::string& name() const { return name_; }
  std::string path(std::string_view key) const { return name_.empty() ? std::string{key} : name_ + "." + std::string{key}; }
  const json::value* find(std::string_view key) const;                          // nullptr also for null
  bool mentions(std::string_view key) const { return object_->contains(key); }  // maybe as null
  const json::object& object() const { return *object_; }
  bool has(std::string_view key) const { return find(key) != nullptr; }

  // Absent or null gives the fallback; another type is an error.
  Result<bool> flag(std::string_view key, bool fallback) const;
  Result<std::string> text(std::string_view key, std::string_view fallback) const;
  Result<std::int64_t> integer(std::string_view key, std::int64_t fallback) const;
  // Absent is an error as well.
  Result<std::string> need_text(std::string_view key) const;
  Result<char32_t> need_character(std::string_view key) const;
  Result<const json::array*> need_array(std::string_view key) const;
  Result<Section> need_section(std::string_view key) const;
  Result<Section> element(const json::array& array, std::string_view key, std::size_t i) const;

  Status wrong(std::string_view key, std::string_view expected) const;

 private:
  const json::object* object_;
  std::string name_;
};

}  // namespace mekik::text::hf
