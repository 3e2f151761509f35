// What all schemes of several tensors share: the parts of a weight, reading pieces of them, and the checkpoint's configuration.
#pragma once
#include <mekik/numbers.hpp>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "scheme.hpp"

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {
#endif
namespace checkpoint {

[[noreturn]] inline void wrong(const std::string& what) { throw Error{MEKIK_E_INVALID, what}; }
[[noreturn]] inline void unsupported(const std::string& what) { throw Error{MEKIK_E_UNSUPPORTED, what}; }

// One part of a weight, by its position among the suffixes.
class Part {
 public:
  Part(const mekik_parts& all, std::uint32_t at) : all_{&all}, at_{at} {
    if (at < all.n_parts)
      part_ = reinterpret_cast<const mekik_part*>(reinterpret_cast<const char*>(all.parts) + std::size_t{at} * all.part_size);
    if (part_ != nullptr && part_->name == nullptr) part_ = nullptr;
  }
  explicit operator bool() const { return part_ != nullptr; }
  std::string name() const { return part_ != nullptr ? part_->name : "(absent)"; }
  std::uint32_t num() const { return there().num; }
  std::uint32_t rank() const { return there().rank; }
  std::uint64_t size(std::uint32_t axis) const { return static_cast<std::uint64_t>(there().shape[axis]); }
  std::uint64_t elements() const {
    std::uint64_t all = 1;
    for (std::uint32_t i = 0; i < rank(); ++i)
      if (__builtin_mul_overflow(all, size(i), &all)) wrong(name() + " has more numbers than can be counted");
    return all;
  }
  std::string shape() const {
    std::string out = "[";
    for (std::uint32_t i = 0; i < rank(); ++i) out += (i != 0 ? ", " : "") + std::to_string(size(i));
    return out + "]";
  }
  std::size_t number_bytes() const { return num_size(num()); }
  // Fails unless the part has these sizes; ones in front may be missing or too many.
  void need_shape(std::vector<std::uint64_t> sizes) const {
    std::vector<std::uint64_t> have;
    for (std::uint32_t i = 0; i < rank(); ++i) have.push_back(size(i));
    const auto strip = [](std::vector<std::uint64_t>& v) {
      while (!v.empty() && v.front() == 1) v.erase(v.begin());
    };
    std::string wanted = "[";
    for (std::size_t i = 0; i < sizes.size(); ++i) wanted += (i != 0 ? ", " : "") + std::to_string(sizes[i]);
    strip(sizes);
    strip(have);
    if (sizes != have) wrong(name() + " has shape " + shape() + ", not " + wanted + "]");
  }
  void need_matrix(const char* of = "") const {
    constexpr std::uint64_t most = std::uint64_t{1} << 31;
    if (rank() != 2) wrong(name() + " has shape " + shape() + ", not a matrix's" + of);
    if (size(0) == 0 || size(1) == 0 || size(0) > most || size(1) > most) wrong(name() + " has shape " + shape() + ", which cannot be");
  }
  void need_num(std::initializer_list<std::uint32_t> nums, const char* called) const {
    if (std::find(nums.begin(), nums.end(), num()) == nums.end()) wrong(name() + " must hold " + called + " numbers");
  }

  void read(std::uint64_t at, void* out, std::uint64_t bytes) const {
    if (bytes == 0) return;
    if (at > there().bytes || bytes > part_->bytes - at) wrong(name() + " is shorter than its shape");
    if (part_->data != nullptr) {
      std::memcpy(out, static_cast<const char*>(part_->data) + at, bytes);
    } else if (const mekik_status status = all_->read(all_->self, at_, at, out, bytes); status != MEKIK_OK) {
      throw blocks::ReadFailed{status};
    }
  }
  // Numbers `first` .. first + count, as they are stored.
  std::vector<std::uint8_t> raw(std::uint64_t first, std::uint64_t count) const {
    std::vector<std::uint8_t> out(count * number_bytes());
    read(first * number_bytes(), out.data(), out.size());
    return out;
  }
  // A box of a matrix whose lines have `wide` numbers: lines a .. b, numbers c .. d of each.
  std::vector<std::uint8_t> box(std::uint64_t wide, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) const {
    const std::size_t each = number_bytes(), bytes = (d - c) * each;
    std::vector<std::uint8_t> out((b - a) * bytes);
    if (d - c == wide) read(a * wide * each, out.data(), out.size());
    else
      for (std::uint64_t line = a; line < b; ++line) read((line * wide + c) * each, out.data() + (line - a) * bytes, bytes);
    return out;
  }
  std::vector<float> floats(std::uint64_t first, std::uint64_t count) const {
    const std::vector<std::uint8_t> bytes = raw(first, count);
    std::vector<float> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = load_num(num(), bytes.data(), i);
    return out;
  }
  // Whole numbers, exactly.
  std::vector<std::int64_t> integers(std::uint64_t first, std::uint64_t count) const {
    need_num({MEKIK_I32, MEKIK_I64, MEKIK_I16, MEKIK_I8, MEKIK_U8}, "whole");
    const std::vector<std::uint8_t> bytes = raw(first, count);
    std::vector<std::int64_t> out(count);
    for (std::size_t i = 0; i < count; ++i)
      out[i] = num() == MEKIK_I64   ? numbers::load<std::int64_t>(bytes.data(), i)
               : num() == MEKIK_I32 ? numbers::load<std::int32_t>(bytes.data(), i)
               : num() == MEKIK_I16 ? numbers::load<std::int16_t>(bytes.data(), i)
               : num() == MEKIK_I8  ? numbers::load<std::int8_t>(bytes.data(), i)
                                    : numbers::load<std::uint8_t>(bytes.data(), i);
    return out;
  }

 private:
  const mekik_part& there() const {
    if (part_ == nullptr) wrong("a part of the weight is missing");
    return *part_;
  }
  const mekik_parts* all_;
  std::uint32_t at_;
  const mekik_part* part_ = nullptr;
};

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
