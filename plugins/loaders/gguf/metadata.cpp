#include "metadata.hpp"

#include <cmath>
#include <mekik/plugin.hpp>
#include <string>
#include <string_view>
#include <unordered_set>

#include "json.hpp"

namespace mekik_gguf {

namespace {

constexpr std::uint64_t kMaxKey = 65535;                     // the specification's limit
constexpr std::uint64_t kMaxText = std::uint64_t{16} << 20;  // one string; chat templates are the longest
constexpr std::size_t kMaxJson = std::size_t{256} << 20;     // all metadata as text
constexpr int kMaxNesting = 4;                               // arrays in arrays

enum Type : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

// The least bytes that one value takes; 0: no such type.
std::uint64_t least_bytes(std::uint32_t type) {
  switch (type) {
    case u8:
    case i8:
    case boolean:
      return 1;
    case u16:
    case i16:
      return 2;
    case u32:
    case i32:
    case f32:
      return 4;
    case string:
    case u64:
    case i64:
    case f64:
      return 8;
    case array:
      return 12;
    default:
      return 0;
  }
}

class Metadata {
 public:
  Metadata(Reader& reader, Header& header) : reader_{reader}, header_{header} {}

  std::uint64_t read(std::uint64_t count) {
    // A pair is at least an empty key's length, a type and a byte.
    reader_.expect(count, 8 + 4 + 1, "the number of metadata keys");
    header_.config = "{";
    for (std::uint64_t i = 0; i < count; ++i) pair();
    header_.config += '}';
    if (!header_.tokenizer.empty()) header_.tokenizer += '}';
    header_.n_keys = count;
    return alignment_;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw mekik::Error{MEKIK_E_INVALID, reader_.path() + ": metadata key " + shown(key_) + " " + why};
  }

  void pair() {
    key_ = std::string{reader_.text("a metadata key", kMaxKey)};
    if (key_.empty()) throw mekik::Error{MEKIK_E_INVALID, reader_.path() + ": a metadata key is empty"};
    if (valid_utf8_prefix(key_) != key_.size()) refuse("is not valid UTF-8");
    if (!keys_.insert(key_).second) refuse("occurs twice");
    const auto type = reader_.number<std::uint32_t>("the type of a metadata key");
    const bool of_tokenizer = key_.rfind("tokenizer.", 0) == 0;
    std::string& out = of_tokenizer ? header_.tokenizer : header_.config;
    out += out.size() > 1 ? "," : out.empty() ? "{" : "";
    append_quoted(out, key_);
    out += ':';
    const std::size_t begin = out.size();
    value(out, type, 0);
    note(type, std::string_view{out}.substr(begin));
  }

  // The keys that the loader itself lives by.
  void note(std::uint32_t type, std::string_view json) {
    if (key_ == "tokenizer.chat_template") {
      if (type != string) refuse("is not a string");
      header_.chat_template = json;
    } else if (key_ == "general.alignment") {
      alignment_ = integer(type);
      if (alignment_ < 1 || alignment_ > 65536 || (alignment_ & (alignment_ - 1)) != 0)
        refuse("is " + std::string{json} + "; it must be a power of two from 1 to 65536");
    } else if (key_ == "split.no") {
      header_.split_no = integer(type);
    } else if (key_ == "split.count") {
      header_.split_count = integer(type);
      if (header_.split_count == 0) refuse("is 0; a file has at least one part");
    } else if (key_ == "split.tensors.count") {
      header_.split_tensors = integer(type);
    }
    if (key_.rfind("split.", 0) == 0) ++header_.n_split_keys;
  }

  std::uint64_t integer(std::uint32_t type) const {
    if (type == f32 || type == f64 || type == boolean || type == string || type == array) refuse("is not an integer");
    if (last_negative_) refuse("is negative");
    return last_;
  }

  void value(std::string& out, std::uint32_t type, int depth) {
    switch (type) {
      case u8:
        return whole<std::uint8_t>(out);
      case i8:
        return whole<std::int8_t>(out);
      case u16:
        return whole<std::uint16_t>(out);
      case i16:
        return whole<std::int16_t>(out);
      case u32:
        return whole<std::uint32_t>(out);
      case i32:
        return whole<std::int32_t>(out);
      case u64:
        return whole<std::uint64_t>(out);
      case i64:
        return whole<std::int64_t>(out);
      case f32:
        return real(out, reader_.number<float>("a metadata value"));
      case f64:
        return real(out, reader_.number<double>("a metadata value"));
      case boolean:
        return truth(out);
      case string:
        return text(out);
      case array:
        return list(out, depth);
      default:
        refuse("has the unknown type " + std::to_string(type));
    }
  }

  template <class T>
  void whole(std::string& out) {
    const T read = reader_.number<T>("a metadata value");
    last_ = static_cast<std::uint64_t>(read);
    last_negative_ = std::is_signed_v<T> && static_cast<std::int64_t>(read) < 0;
    if constexpr (std::is_signed_v<T>) append_number(out, static_cast<std::int64_t>(read));
    else append_number(out, static_cast<std::uint64_t>(read));
  }
  void real(std::string& out, double read) {
    if (std::isnan(read)) refuse("holds NaN (byte " + std::to_string(reader_.at()) + ")");
    append_number(out, read);
  }
  void truth(std::string& out) {
    const auto read = reader_.number<std::uint8_t>("a metadata value");
    if (read > 1) refuse("is a boolean with the value " + std::to_string(read) + "; only 0 and 1 are");
    out += read != 0 ? "true" : "false";
  }
  void text(std::string& out) {
    const std::string_view read = reader_.text("a metadata string", kMaxText);
    const std::size_t valid = valid_utf8_prefix(read);
    if (valid != read.size())
      refuse("holds a string that is not valid UTF-8: " + shown(read.substr(0, valid + 4)) + ", byte " + std::to_string(valid) +
             " of it, before byte " + std::to_string(reader_.at()) + " of the file");
    append_quoted(out, read);
  }
  void list(std::string& out, int depth) {
    if (depth >= kMaxNesting) refuse("nests arrays more than " + std::to_string(kMaxNesting) + " deep");
    const auto type = reader_.number<std::uint32_t>("the type of an array");
    const auto count = reader_.number<std::uint64_t>("the length of an array");
    const std::uint64_t each = least_bytes(type);
    if (each == 0) refuse("is an array of the unknown type " + std::to_string(type));
    reader_.expect(count, each, ("the array " + shown(key_)).c_str());
    out += '[';
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i > 0) out += ',';
      value(out, type, depth + 1);
      if (out.size() > kMaxJson) refuse("makes the metadata larger than " + std::to_string(kMaxJson >> 20) + " MiB");
    }
    out += ']';
  }

  Reader& reader_;
  Header& header_;
  std::string key_;
  std::unordered_set<std::string> keys_;
  std::uint64_t alignment_ = 32, last_ = 0;
  bool last_negative_ = false;
};

}  // namespace

std::uint64_t read_metadata(Reader& reader, std::uint64_t count, Header& header) { return Metadata{reader, header}.read(count); }

}  // namespace mekik_gguf
