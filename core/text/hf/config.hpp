// Reading the JSON of Hugging Face's files: every error names the key and what was expected there.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// Reads a step, or all steps of a "Sequence" (the list under `list_key`), however deep, to the end of `steps`. `read_step` (section, type)
// makes one of any other type.
template <class Step, class ReadStep>
Status read_sequence(const Section& section, std::string_view list_key, std::vector<Step>& steps, const ReadStep& read_step) {
  constexpr std::size_t kMost = 1000;
  MEKIK_TRY(type, section.need_text("type"));
  if (type != "Sequence") {
    MEKIK_TRY(step, read_step(section, type));
    if (steps.size() == kMost) return invalid(section.name() + ": more than 1000 steps");
    if constexpr (requires { step->where; }) step->where = section.name();
    steps.push_back(std::move(step));
    return {};
  }
  MEKIK_TRY(list, section.need_array(list_key));
  for (std::size_t i = 0; i < list->size(); ++i) {
    MEKIK_TRY(element, section.element(*list, list_key, i));
    MEKIK_CHECK_OK(read_sequence(element, list_key, steps, read_step));
  }
  return {};
}

}  // namespace mekik::text::hf
