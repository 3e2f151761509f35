#include "text/hf/config.hpp"

#include "base/text.hpp"

namespace mekik::text::hf {

Result<Section> Section::of(const json::value& value, std::string name) {
  const json::object* object = value.if_object();
  if (object == nullptr) return invalid(name + " is not an object");
  return Section{*object, std::move(name)};
}

const json::value* Section::find(std::string_view key) const {
  const json::value* value = object_->if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Status Section::wrong(std::string_view key, std::string_view expected) const {
  return invalid(path(key) + (has(key) ? " is not " : " is missing; expected ") + std::string{expected});
}

Result<bool> Section::flag(std::string_view key, bool fallback) const {
  const json::value* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_bool()) return wrong(key, "true or false");
  return value->get_bool();
}

Result<std::string> Section::text(std::string_view key, std::string_view fallback) const {
  const json::value* value = find(key);
  if (value == nullptr) return std::string{fallback};
  const json::string* text = value->if_string();
  if (text == nullptr) return wrong(key, "a string");
  return std::string{text->data(), text->size()};
}

Result<std::int64_t> Section::integer(std::string_view key, std::int64_t fallback) const {
  const json::value* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_int64()) return value->get_int64();
  if (value->is_uint64() && value->get_uint64() <= 0x7FFFFFFFFFFFFFFFu) return static_cast<std::int64_t>(value->get_uint64());
  return wrong(key, "an integer");
}

Result<std::string> Section::need_text(std::string_view key) const {
  if (!has(key)) return wrong(key, "a string");
  return text(key, "");
}

Result<char32_t> Section::need_character(std::string_view key) const {
  MEKIK_TRY(found, need_text(key));
  std::size_t at = 0;
  if (found.empty() || !is_utf8(found)) return wrong(key, "one character");
  const char32_t c = next_code_point(found, at);
  if (at != found.size()) return wrong(key, "one character");
  return c;
}

Result<const json::array*> Section::need_array(std::string_view key) const {
  const json::value* value = find(key);
  const json::array* array = value == nullptr ? nullptr : value->if_array();
  if (array == nullptr) return wrong(key, "an array");
  return array;
}

Result<Section> Section::need_section(std::string_view key) const {
  const json::value* value = find(key);
  const json::object* object = value == nullptr ? nullptr : value->if_object();
  if (object == nullptr) return wrong(key, "an object");
  return Section{*object, path(key)};
}

Result<Section> Section::element(const json::array& array, std::string_view key, std::size_t i) const {
  return of(array[i], path(key) + "[" + std::to_string(i) + "]");
}

}  // namespace mekik::text::hf
