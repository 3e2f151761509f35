// What all schemes of several tensors share: the parts of a weight, reading pieces of them, and the checkpoint's configuration.
#pragma once
#include <mekik/files.hpp>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {
#endif
namespace checkpoint {

using mekik::Part;

[[noreturn]] inline void wrong(const std::string& what) { throw Error{MEKIK_E_INVALID, what}; }
[[noreturn]] inline void unsupported(const std::string& what) { throw Error{MEKIK_E_UNSUPPORTED, what}; }

// X of a part named X.suffix: the module that the checkpoint's rules speak of.
inline std::string module_of(const Part& part, std::string_view suffix) {
  std::string name = part.name();
  if (name.size() > suffix.size() && std::string_view{name}.substr(name.size() - suffix.size()) == suffix)
    name.resize(name.size() - suffix.size());
  if (!name.empty() && name.back() == '.') name.pop_back();
  return name;
}

using Json = boost::json::value;
using Object = boost::json::object;

// Members of an object with a default; one of the wrong kind is an error that names it.
inline const Json* find(const Object& of, std::string_view key) {
  const Json* found = of.if_contains(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}
inline std::string text_at(const Object& of, std::string_view key, std::string otherwise) {
  const Json* found = find(of, key);
  if (found == nullptr) return otherwise;
  if (!found->is_string()) wrong("quantization_config: " + std::string{key} + " must be a text");
  return std::string{found->get_string()};
}
inline std::int64_t whole_at(const Object& of, std::string_view key, std::int64_t otherwise) {
  const Json* found = find(of, key);
  if (found == nullptr) return otherwise;
  if (found->is_double() && found->get_double() == std::floor(found->get_double()) && std::fabs(found->get_double()) < 1e9)
    return static_cast<std::int64_t>(found->get_double());
  if (!found->is_int64()) wrong("quantization_config: " + std::string{key} + " must be a whole number");
  return found->get_int64();
}
// A text that is one of these, or the first of them where there is none.
inline std::string word_at(const Object& of, std::string_view key, std::initializer_list<const char*> words) {
  const std::string found = text_at(of, key, *words.begin());
  if (std::find(words.begin(), words.end(), found) != words.end()) return found;
  std::string all;
  for (const char* word : words) all += (all.empty() ? "" : ", ") + std::string{word};
  wrong("quantization_config: " + std::string{key} + " is \"" + found + "\", which is none of " + all);
}
inline bool flag_at(const Object& of, std::string_view key, bool otherwise) {
  const Json* found = find(of, key);
  if (found == nullptr) return otherwise;
  if (!found->is_bool()) wrong("quantization_config: " + std::string{key} + " must be true or false");
  return found->get_bool();
}
inline double real_at(const Object& of, std::string_view key, double otherwise) {
  const Json* found = find(of, key);
  if (found == nullptr) return otherwise;
  if (!found->is_number()) wrong("quantization_config: " + std::string{key} + " must be a number");
  return found->to_number<double>();
}
// Fails unless the member is absent, or an object, or a list of texts.
inline void need_object(const Object& of, std::string_view key) {
  if (const Json* found = find(of, key); found != nullptr && !found->is_object())
    wrong("quantization_config: " + std::string{key} + " must be an object");
}
inline void need_texts(const Object& of, std::string_view key) {
  const Json* found = find(of, key);
  if (found == nullptr) return;
  bool texts = found->is_array();
  if (texts)
    for (const Json& entry : found->get_array()) texts = texts && entry.is_string();
  if (!texts) wrong("quantization_config: " + std::string{key} + " must be a list of texts");
}
inline const Object* object_at(const Object& of, std::string_view key) {
  const Json* found = find(of, key);
  return found != nullptr && found->is_object() ? &found->get_object() : nullptr;
}

inline Object parse_object(std::string_view text, const std::string& what) {
  boost::system::error_code error;
  Json parsed = boost::json::parse({text.data(), text.size()}, error);
  if (error || !parsed.is_object()) wrong(what + " is no JSON object");
  return std::move(parsed.get_object());
}

// The quantization_config of the checkpoint, parsed once: it is the same for thousands of weights.
inline std::shared_ptr<const Object> config(const mekik_parts& parts) {
  static std::mutex mutex;
  static std::string text;
  static std::shared_ptr<const Object> kept;
  const std::string_view given = view(parts.config_json);
  const std::lock_guard lock{mutex};
  if (kept == nullptr || text != given) {
    kept = std::make_shared<const Object>(given.empty() ? Object{} : parse_object(given, "quantization_config"));
    text = given;
  }
  return kept;
}

// "bfloat16", as config.json spells number types; 0: another.
inline std::uint32_t float_num(std::string_view name) {
  return name == "float16" || name == "half"    ? MEKIK_F16
         : name == "bfloat16"                   ? MEKIK_BF16
         : name == "float32" || name == "float" ? MEKIK_F32
                                                : 0;
}
// What the model itself computes in, as the checkpoint says; 0: it does not.
inline std::uint32_t model_num(const Object& config) { return float_num(text_at(config, "model_dtype", "")); }

// Number `index` of a stream of `bits` a number, the lowest bits first: over words w[0], w[stride], ...
inline std::uint32_t bits_at(const std::uint32_t* words, std::size_t stride, std::uint64_t index, std::uint32_t bits) {
  const std::uint64_t bit = index * bits;
  const std::uint32_t shift = bit % 32;
  std::uint64_t value = words[bit / 32 * stride] >> shift;
  if (shift + bits > 32) value |= static_cast<std::uint64_t>(words[(bit / 32 + 1) * stride]) << (32 - shift);
  return static_cast<std::uint32_t>(value & ((std::uint64_t{1} << bits) - 1));
}

// The first `count` numbers of such a stream.
inline void unpack_bits(const std::uint32_t* words, std::uint32_t bits, std::uint64_t count, std::uint8_t* out) {
  if (32 % bits != 0) {
    for (std::uint64_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(bits_at(words, 1, i, bits));
    return;
  }
  const std::uint64_t each = 32 / bits;
  const std::uint32_t mask = (1u << bits) - 1;
  for (std::uint64_t i = 0; i < count; i += each) {
    std::uint32_t word = *words++;
    for (std::uint64_t j = i; j < std::min(count, i + each); ++j, word >>= bits) out[j] = static_cast<std::uint8_t>(word & mask);
  }
}

inline std::vector<std::uint32_t> as_words(const std::vector<std::uint8_t>& bytes) {
  std::vector<std::uint32_t> out(bytes.size() / 4);
  std::memcpy(out.data(), bytes.data(), out.size() * 4);
  return out;
}

}  // namespace checkpoint
#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
