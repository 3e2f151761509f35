#include "config/layers.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/files.hpp"
#include "base/text.hpp"

namespace mekik::config {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxLayers = 8;
constexpr std::size_t kMaxFileBytes = 1u << 20;

void merge(Value& base, Value&& over) {
  if (base.kind != Kind::table || over.kind != Kind::table) {
    base = std::move(over);
    return;
  }
  base.origin = over.origin;
  base.key_origin = over.key_origin;
  for (auto& [key, value] : over.table) {
    if (Value* existing = base.find(key)) merge(*existing, std::move(value));
    else base.table.emplace_back(key, std::move(value));
  }
}

// The file that a layer extends, relative to the layer; "" for none.
std::string base_of(const Value& layer, const std::string& path, Origin& at, Diagnostics& diagnostics) {
  const Value* pipeline = layer.find("pipeline");
  const Value* extends = pipeline == nullptr ? nullptr : pipeline->find("extends");
  if (extends == nullptr) return {};
  at = extends->origin;
  if (extends->kind == Kind::text && !extends->text.empty())
    return (fs::path{path}.parent_path() / extends->text).lexically_normal().string();
  diagnostics.error(at, std::string{"'extends': expected the path of a pipeline file, found "} +
                            (extends->kind == Kind::text ? "an empty text" : kind_name(extends->kind)));
  return {};
}

// "scheduler.max_tokens" in front of the first "=": letters, digits, _ and - between dots.
bool is_key_path(std::string_view key) {
  for (const std::string& part : split(key, '.')) {
    const bool ok = !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
    if (!ok) return false;
  }
  return true;
}

void set_source(Value& value, const std::shared_ptr<const Source>& source) {
  value.origin.source = value.key_origin.source = source;
  for (Value& element : value.list) set_source(element, source);
  for (auto& [key, member] : value.table) set_source(member, source);
}

// Whether TOML would drop the end of the text as a comment, which in --set cannot be meant.
bool has_comment(const std::string& text) {
  for (std::size_t at = text.find('#'); at != std::string::npos; at = text.find('#', at + 1)) {
    Value ignored;
    Diagnostics why;
    if (parse_toml(std::string_view{text}.substr(0, at), "--set", ignored, why)) return true;
  }
  return false;
}

// "a.b.0.c=value" is itself a TOML document; only a bare word needs help.
bool parse_override(const std::string& text, Value& out, Diagnostics& diagnostics) {
  const auto source = std::make_shared<const Source>(Source{"--set", text});
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || !is_key_path(std::string_view{text}.substr(0, equals))) {
    diagnostics.error({source, 1, 1}, "--set takes key.path=value, for instance scheduler.max_batch_tokens=256");
    return false;
  }
  if (!is_utf8(text)) {  // a bare word would take the bytes as they are
    diagnostics.error({source, 1, 1}, "--set takes UTF-8 text");
    return false;
  }
  if (text.find('\n') != std::string::npos) {
    diagnostics.error({source, 1, 1}, "--set takes one line");
    return false;
  }
  Diagnostics why;
  if (parse_toml(text, "--set", out, why) && !has_comment(text)) {
    set_source(out, source);
    return true;
  }
  const char first = equals + 1 < text.size() ? text[equals + 1] : ' ';
  if (first == '"' || first == '\'' || first == '[' || first == '{') {
    if (why.ok()) why.error({source, 1, 1}, "--set takes no comment");
    for (const Diagnostic& one : why.all()) diagnostics.error(one.at, one.message, one.hint);
    return false;
  }
  if (!parse_toml(text.substr(0, equals + 1) + "\"\"", "--set", out, diagnostics)) return false;
  set_source(out, source);
  Value* leaf = &out;
  while (leaf->kind == Kind::table) leaf = &leaf->table[0].second;
  leaf->text = text.substr(equals + 1);
  leaf->plain_text = false;
  return true;
}

void put(Value& target, Value&& over, const std::string& where, Diagnostics& diagnostics) {
  if (target.kind == Kind::list && over.kind == Kind::table) {
    for (auto& [key, value] : over.table) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
      if (error != std::errc{} || end != key.data() + key.size() || index >= target.list.size()) {
        diagnostics.error(
            value.key_origin,
            "'" + where + "' is a list of " + std::to_string(target.list.size()) + "; it has no element " + mekik::quoted(key),
            target.list.empty() ? "" : "elements are numbered from 0 to " + std::to_string(target.list.size() - 1));
        continue;
      }
      put(target.list[index], std::move(value), where + "." + key, diagnostics);
    }
    return;
  }
  if (target.kind == Kind::table && over.kind == Kind::table) {
    for (auto& [key, value] : over.table) {
      if (Value* existing = target.find(key)) put(*existing, std::move(value), where.empty() ? key : where + "." + key, diagnostics);
      else target.table.emplace_back(key, std::move(value));
    }
    return;
  }
  target = std::move(over);
}

}  // namespace

bool read_layers(const std::string& path, Value& out, Diagnostics& diagnostics) {
  std::vector<Value> layers;  // the file itself first
  std::vector<std::string> chain;
  Origin named_at;
  for (std::string next = path; !next.empty();) {
    std::error_code ignored;
    const std::string identity = fs::weakly_canonical(next, ignored).string();
    if (std::find(chain.begin(), chain.end(), identity) != chain.end()) {
      diagnostics.error(named_at, "'extends' leads back to " + next, "a pipeline cannot extend itself");
      return false;
    }
    if (layers.size() == kMaxLayers) {
      diagnostics.error(named_at, "more than " + std::to_string(kMaxLayers) + " files extend each other");
      return false;
    }
    chain.push_back(identity);
    const Result<std::string> text = read_file(next, kMaxFileBytes);
    if (!text.ok()) {
      diagnostics.error(named_at, text.status().text);
      return false;
    }
    Value layer;
    parse_toml(*text, next, layer, diagnostics);
    next = base_of(layer, next, named_at, diagnostics);
    layers.push_back(std::move(layer));
  }
  if (!diagnostics.ok()) return false;
  out = std::move(layers.back());
  for (std::size_t i = layers.size() - 1; i-- > 0;) merge(out, std::move(layers[i]));
  return true;
}

void apply_override(const Override& override, Value& root, Diagnostics& diagnostics) {
  Value over;
  if (!parse_override(override.text, over, diagnostics)) return;
  put(root, std::move(over), "", diagnostics);
}

}  // namespace mekik::config
