#include "documents.hpp"

#include <array>
#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <mekik/plugin.hpp>
#include <optional>
#include <utility>

#include <mekik/text.hpp>

namespace mekik_safetensors {

namespace {

using mekik::loaders::append_quoted;

constexpr std::uint64_t kMaxConfig = std::uint64_t{64} << 20, kMaxTokenizer = std::uint64_t{256} << 20,
                        kMaxTemplate = std::uint64_t{16} << 20;

[[noreturn]] void refuse(const fs::path& at, const std::string& why) { throw mekik::Error{MEKIK_E_UNSUPPORTED, at.string() + ": " + why}; }
[[noreturn]] void absent(const std::string& why) { throw mekik::Error{MEKIK_E_INVALID, why}; }

// Accepts any JSON and keeps nothing.
struct Nothing {
  static constexpr std::size_t max_object_size = std::size_t(-1), max_array_size = std::size_t(-1), max_key_size = std::size_t(-1),
                               max_string_size = std::size_t(-1);
  using Error = boost::json::error_code;
  using Text = boost::json::string_view;
  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_object_begin(Error&) { return true; }
  bool on_object_end(std::size_t, Error&) { return true; }
  bool on_array_begin(Error&) { return true; }
  bool on_array_end(std::size_t, Error&) { return true; }
  bool on_key_part(Text, std::size_t, Error&) { return true; }
  bool on_key(Text, std::size_t, Error&) { return true; }
  bool on_string_part(Text, std::size_t, Error&) { return true; }
  bool on_string(Text, std::size_t, Error&) { return true; }
  bool on_number_part(Text, Error&) { return true; }
  bool on_int64(std::int64_t, Text, Error&) { return true; }
  bool on_uint64(std::uint64_t, Text, Error&) { return true; }
  bool on_double(double, Text, Error&) { return true; }
  bool on_bool(bool, Error&) { return true; }
  bool on_null(Error&) { return true; }
  bool on_comment_part(Text, Error&) { return true; }
  bool on_comment(Text, Error&) { return true; }
};

void check_json(const fs::path& path, const std::string& text) {
  if (text.compare(0, 3, "\xEF\xBB\xBF") == 0) refuse(path, "begins with a byte order mark, which JSON does not have; save it without");
  boost::json::parse_options options;
  options.max_depth = 64;
  boost::json::basic_parser<Nothing> parser{options};
  boost::json::error_code error;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  const auto line = [&](std::size_t at) {
    return std::to_string(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1);
  };
  if (error) refuse(path, "is not valid JSON at line " + line(used) + ": " + error.message() + "; fetch it again");
  const std::size_t more = text.find_first_not_of(" \t\r\n", used);
  if (more != std::string::npos) refuse(path, "is not valid JSON: more text after the value, at line " + line(more));
}

// Python writes Infinity, -Infinity and NaN, which are not JSON. A number too large for a double reads as infinity, so it stands in; NaN,
// which nothing in these files means, becomes null.
std::string strict_json(std::string text) {
  if (text.find("Infinity") == std::string::npos && text.find("NaN") == std::string::npos) return text;
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      out += text[i++];
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && text.compare(i, 8, "Infinity") == 0) {
      out += "1e999";
      i += 7;
      continue;
    } else if (!in_string && text.compare(i, 3, "NaN") == 0) {
      out += "null";
      i += 2;
      continue;
    }
    out += text[i];
  }
  return out;
}

std::string read_json(const fs::path& path, std::uint64_t limit) {
  std::string text = strict_json(read_text(path, limit));
  check_json(path, text);
  return text;
}

std::string read_utf8(const fs::path& path, std::uint64_t limit) {
  std::string text = read_text(path, limit);
  const std::size_t valid = mekik::loaders::valid_utf8_prefix(text);
  if (valid != text.size()) refuse(path, "is not valid UTF-8 at byte " + std::to_string(valid));
  return text;
}

std::string json_text(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t three = 0;
    for (std::size_t j = 0; j < 3; ++j) three = three << 8 | (j < n ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) out += j <= n ? kDigits[three >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

std::optional<boost::json::value> parsed(const fs::path& path) {
  if (!is_there(path)) return std::nullopt;
  return boost::json::parse(read_json(path, kMaxConfig));
}

// The template called `name` of a file's "chat_template", which is one text or a list of {name, template}.
std::optional<std::string> named_template(const fs::path& path, const std::string& name) {
  const auto file = parsed(path);
  const boost::json::value* found = file && file->is_object() ? file->get_object().if_contains("chat_template") : nullptr;
  if (found == nullptr || found->is_null()) return std::nullopt;
  const auto text = [](const boost::json::value& of) { return std::string{of.get_string().data(), of.get_string().size()}; };
  if (found->is_string()) return name == "default" ? std::optional{text(*found)} : std::nullopt;
  if (!found->is_array()) refuse(path, "has a chat_template that is neither a text nor a list of named ones");
  std::string names;
  for (const boost::json::value& entry : found->get_array()) {
    const boost::json::object* one = entry.if_object();
    const boost::json::value* called = one != nullptr ? one->if_contains("name") : nullptr;
    const boost::json::value* is = one != nullptr ? one->if_contains("template") : nullptr;
    if (called == nullptr || is == nullptr || !called->is_string() || !is->is_string())
      refuse(path, "has a chat_template with an entry that is not a name and a template");
    if (text(*called) == name) return text(*is);
    names += (names.empty() ? "" : ", ") + text(*called);
  }
  if (name == "default") absent(path.string() + ": has no chat template called \"default\"; there are: " + names);
  return std::nullopt;
}

struct Source {
  const char* key;
  const char* file;
};

// What a tokenizer is made of. The first two kinds make one each; the third is what older checkpoints have in their place.
constexpr std::array<Source, 5> kAround{{{"tokenizer_config", "tokenizer_config.json"},
                                         {"special_tokens_map", "special_tokens_map.json"},
                                         {"added_tokens", "added_tokens.json"},
                                         {"generation_config", "generation_config.json"},
                                         {"config", "config.json"}}};
// Of SentencePiece or of tiktoken: the core sees which.
constexpr std::array<const char*, 6> kVocabularies{"tokenizer.model", "spiece.model",       "sentencepiece.bpe.model",
                                                   "spm.model",       "tokenizer.model.v3", "tiktoken.model"};

}  // namespace

const std::string& Documents::get(const std::string& key) {
  const std::lock_guard lock{mutex_};
  if (const auto found = made_.find(key); found != made_.end()) return found->second;
  return made_.emplace(key, make(key)).first->second;
}

std::string Documents::make(const std::string& key) const {
  if (key == "format") return "\"hf\"";
  if (key == "config") {
    if (!folder_.has_config)
      absent(folder_.root.string() +
             ": there is no config.json, which says what the model is; fetch the model's config.json into that folder");
    std::string config = read_json(folder_.root / "config.json", kMaxConfig);
    if (config[config.find_first_not_of(" \t\r\n")] != '{') refuse(folder_.root / "config.json", "is not a JSON object");
    return config;
  }
  if (key == "template") return json_text(chat_template("default"));
  if (key.compare(0, 9, "template:") == 0) return json_text(chat_template(key.substr(9)));
  if (key == "tokenizer") return tokenizer();
  if (key.compare(0, 5, "file:") == 0) {
    const fs::path name{key.substr(5)};
    bool inside = !name.empty() && !name.is_absolute() && key.find('\0') == std::string::npos;
    for (const fs::path& step : name) inside = inside && step != ".." && step != ".";
    if (!inside) absent(folder_.root.string() + ": " + name.string() + " is not a file of the model's folder");
    if (!is_there(folder_.root / name)) absent(folder_.root.string() + ": there is no " + name.string());
    return read_json(folder_.root / name, kMaxConfig);
  }
  absent(folder_.root.string() + ": has no " + key);
}

std::string Documents::chat_template(const std::string& name) const {
  const bool plain = !name.empty() && name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
  const fs::path file = folder_.root / (name == "default" ? "chat_template.jinja" : "additional_chat_templates/" + name + ".jinja");
  if (plain && is_there(file)) return read_utf8(file, kMaxTemplate);
  for (const char* other : {"tokenizer_config.json", "chat_template.json"})
    if (auto found = named_template(folder_.root / other, name)) return std::move(*found);
  absent(folder_.root.string() + ": has no chat template" + (name == "default" ? "" : " called " + mekik::loaders::shown(name)));
}

std::string Documents::tokenizer() const {
  std::string out;
  const auto add = [&](const char* key, const std::string& json) {
    out += (out.empty() ? "{\"hf\":{\"" : ",\"") + std::string{key} + "\":" + json;
  };
  const auto in_folder = [&](const char* file) { return folder_.root / file; };
  const bool whole = is_there(in_folder("tokenizer.json"));
  if (whole) add("tokenizer_json", read_json(in_folder("tokenizer.json"), kMaxTokenizer));
  for (const char* file : kVocabularies) {
    if (!is_there(in_folder(file))) continue;
    add("sentencepiece_base64", json_text(base64(read_text(in_folder(file), kMaxTokenizer))));
    break;
  }
  if (!whole) {  // else they only repeat it
    if (is_there(in_folder("vocab.json"))) add("vocab_json", read_json(in_folder("vocab.json"), kMaxTokenizer));
    if (is_there(in_folder("merges.txt"))) add("merges_txt", json_text(read_utf8(in_folder("merges.txt"), kMaxTokenizer)));
    if (is_there(in_folder("vocab.txt"))) add("vocab_txt", json_text(read_utf8(in_folder("vocab.txt"), kMaxTokenizer)));
  }
  if (out.empty())
    absent(folder_.root.string() + ": has no tokenizer; fetch the model's tokenizer.json (or tokenizer.model) into that folder" +
           (is_there(in_folder("tekken.json")) ? "; tekken.json is not read" : ""));
  for (const Source& source : kAround)
    if (is_there(in_folder(source.file))) add(source.key, read_json(in_folder(source.file), kMaxConfig));
  return out + "}}";
}

}  // namespace mekik_safetensors
