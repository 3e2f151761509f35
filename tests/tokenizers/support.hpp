// For the programs of this folder: the metadata of a GGUF file without the loader plugin, so that a fault here is one of the
// tokenizer, and a list of what failed.
#pragma once
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "support/paths.hpp"
#include "text/tokenizer.hpp"

namespace mekik::test {

class GgufMetadata {
 public:
  // The keys that begin with "tokenizer.". Throws on anything unexpected: the files are those of the cases.
  static json::object read(const std::filesystem::path& path) {
    GgufMetadata reader{path};
    return reader.keys();
  }

 private:
  explicit GgufMetadata(const std::filesystem::path& path) : file_{path, std::ios::binary} {
    if (!file_) throw std::runtime_error("cannot open " + path.string());
  }
  template <class T>
  T number() {
    T value{};
    if (!file_.read(reinterpret_cast<char*>(&value), sizeof value)) throw std::runtime_error("the file is too short");
    return value;
  }
  std::string text() {
    const auto size = number<std::uint64_t>();
    if (size > (1u << 26)) throw std::runtime_error("a text is too long");
    std::string value(size, '\0');
    if (!file_.read(value.data(), static_cast<std::streamsize>(size))) throw std::runtime_error("the file is too short");
    return value;
  }
  json::value value(std::uint32_t type) {
    switch (type) {
      case 0:
        return number<std::uint8_t>();
      case 1:
        return number<std::int8_t>();
      case 2:
        return number<std::uint16_t>();
      case 3:
        return number<std::int16_t>();
      case 4:
        return number<std::uint32_t>();
      case 5:
        return number<std::int32_t>();
      case 6:
        return number<float>();
      case 7:
        return number<std::uint8_t>() != 0;
      case 8:
        return json::value(text());
      case 9:
        return array();
      case 10:
        return number<std::uint64_t>();
      case 11:
        return number<std::int64_t>();
      case 12:
        return number<double>();
      default:
        throw std::runtime_error("unknown type of a value");
    }
  }
  json::array array() {
    const auto type = number<std::uint32_t>();
    const auto count = number<std::uint64_t>();
    json::array values;
    values.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) values.push_back(value(type));
    return values;
  }
  json::object keys() {
    if (number<std::uint32_t>() != 0x46554747u) throw std::runtime_error("not a GGUF file");
    number<std::uint32_t>();
    number<std::uint64_t>();
    json::object object;
    for (auto left = number<std::uint64_t>(); left > 0; --left) {
      std::string key = text();
      json::value read = value(number<std::uint32_t>());
      if (key.starts_with("tokenizer.")) object[key] = std::move(read);
    }
    return object;
  }

  std::ifstream file_;
};

class Failures {
 public:
  void check(bool good, const std::string& what) {
    ++checks_;
    if (good) return;
    ++failures_;
    std::printf("FAILED: %s\n", what.c_str());
  }
  int finish() const {
    std::printf("%d checks, %d failed\n", checks_, failures_);
    return failures_ == 0 && checks_ > 0 ? 0 : 1;
  }

 private:
  int checks_ = 0, failures_ = 0;
};

inline std::string shown(const std::vector<std::int32_t>& ids) {
  std::string text = "[";
  for (std::size_t i = 0; i < ids.size() && i < 40; ++i) text += (i == 0 ? "" : ",") + std::to_string(ids[i]);
  return text + (ids.size() > 40 ? ",...]" : "]");
}

inline std::unique_ptr<text::Tokenizer> open_tokenizer(const std::filesystem::path& path) {
  auto tokenizer = text::Tokenizer::create(GgufMetadata::read(path));
  if (!tokenizer.ok()) throw std::runtime_error(path.filename().string() + ": " + tokenizer.status().text);
  return std::move(*tokenizer);
}

inline void check_ids(Failures& failures, const text::Tokenizer& tokenizer, const std::string& name, const std::string& text,
                      const std::vector<std::int32_t>& expected, bool special = false) {
  const std::vector<std::int32_t> ids = tokenizer.encode(text, false, special);
  failures.check(ids == expected,
                 name + " " + json::serialize(json::value(text.substr(0, 60))) + ": " + shown(ids) + ", expected " + shown(expected));
  failures.check(tokenizer.fewest_tokens(text) <= ids.size(), name + " " + json::serialize(json::value(text.substr(0, 60))) + ": has " +
                                                                  std::to_string(ids.size()) + " tokens, said to have at least " +
                                                                  std::to_string(tokenizer.fewest_tokens(text)));
}

// The rows of tokenizer_cases.json whose vocabulary begins with `vocabulary`. Returns how many there are.
inline int check_rows(Failures& failures, const text::Tokenizer& tokenizer, const json::array& rows, const std::string& vocabulary) {
  int count = 0;
  for (const json::value& row : rows) {
    const std::string name{row.at("vocab").as_string().c_str()};
    if (!name.starts_with(vocabulary)) continue;
    ++count;
    const json::string& text = row.at("text").as_string();
    std::vector<std::int32_t> ids;
    for (const json::value& id : row.at("ids").as_array()) ids.push_back(static_cast<std::int32_t>(id.as_int64()));
    const std::string label = std::string{row.at("row").as_string().c_str()} + " " + name;
    check_ids(failures, tokenizer, label, {text.data(), text.size()}, ids, row.at("parse_special").as_bool());
    // What is normalised (NFC, and SentencePiece's sign for a space) does not come back as it was.
    failures.check(tokenizer.decode(ids, true) == std::string_view{text.data(), text.size()} ||
                       text.find("\xE2\x96\x81") != json::string::npos || label.starts_with("B12"),
                   label + ": decoding does not give the text back");
  }
  return count;
}

inline json::array read_rows(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  auto value = json::parse(text);
  if (!value.ok()) throw std::runtime_error(value.status().text);
  return value->as_array();
}

}  // namespace mekik::test
