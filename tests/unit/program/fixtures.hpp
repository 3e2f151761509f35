// Models made of metadata alone: a JSON file with a configuration and tensor headers.
#pragma once
#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "program/page.hpp"
#include "support/catch.hpp"
#include "support/paths.hpp"

namespace mekik::test {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file{path};
  INFO(path.string());
  REQUIRE(file.good());
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

inline json::value parse_json(const std::string& text) {
  Result<json::value> parsed = json::parse(text);
  INFO(parsed.status().text);
  REQUIRE(parsed.ok());
  return *parsed;
}

// {"format", "config", "tensors": [[name, type, [sizes..]], ..], "layers": n: a name with {l} stands for n tensors; "files": {name: json}}.
// Types: f32, f16, bf16, and any scheme's name.
inline program::ModelMeta make_model(const json::value& fixture) {
  program::ModelMeta out;
  out.path = "fixture";
  out.format = json::find(fixture, "format")->get_string().c_str();
  out.config = *json::find(fixture, "config");
  const json::value* layers = json::find(fixture, "layers");
  const std::int64_t n_layers = layers != nullptr ? layers->get_int64() : 0;
  for (const json::value& row : json::find(fixture, "tensors")->get_array()) {
    program::TensorInfo info;
    const std::string name = row.get_array()[0].get_string().c_str(), type = row.get_array()[1].get_string().c_str();
    if (type == "f32") info.num = MEKIK_F32;
    else if (type == "f16") info.num = MEKIK_F16;
    else if (type == "bf16") info.num = MEKIK_BF16;
    else info.scheme = type;
    for (const json::value& size : row.get_array()[2].get_array()) info.shape.push_back(size.get_int64());
    const std::size_t mark = name.find("{l}");
    for (std::int64_t l = 0; l < (mark == std::string::npos ? 1 : n_layers); ++l) {
      info.name = name;
      if (mark != std::string::npos) info.name.replace(mark, 3, std::to_string(l));
      out.tensors.push_back(info);
    }
  }
  if (const json::value* files = json::find(fixture, "files")) {
    const json::value copy = *files;
    out.file = [copy](const std::string& name) {
      const json::value* found = json::find(copy, name);
      return found != nullptr ? *found : json::value{};
    };
  }
  return out;
}

inline json::value load_fixture(const std::string& name) {  // "gguf/llama"
  return parse_json(read_text(source_directory() / "tests/programs" / (name + ".json")));
}
// A folder as transformers wrote it, seen without its weights: "tiny/llama-plain" of tests/models.
inline program::ModelMeta load_folder(const std::string& name) {
  const std::filesystem::path folder = source_directory() / "tests/models" / name;
  program::ModelMeta out;
  out.path = name;
  out.format = "hf";
  out.config = parse_json(read_text(folder / "config.json"));
  std::ifstream file{folder / "model.safetensors", std::ios::binary};
  std::uint64_t size = 0;
  file.read(reinterpret_cast<char*>(&size), sizeof size);
  REQUIRE((file.good() && size < (1u << 24)));
  std::string header(size, ' ');
  file.read(header.data(), static_cast<std::streamsize>(size));
  const json::value tensors = parse_json(header);
  for (const auto& member : tensors.get_object()) {
    if (member.key() == "__metadata__") continue;
    program::TensorInfo info;
    info.name = std::string{member.key()};
    const std::string type = json::find(member.value(), "dtype")->get_string().c_str();
    info.num = type == "F16" ? MEKIK_F16 : type == "BF16" ? MEKIK_BF16 : MEKIK_F32;
    for (const json::value& one : json::find(member.value(), "shape")->get_array()) info.shape.push_back(one.get_int64());
    out.tensors.push_back(std::move(info));
  }
  out.file = [folder](const std::string& other) {
    return std::filesystem::exists(folder / other) ? parse_json(read_text(folder / other)) : json::value{};
  };
  return out;
}
inline program::ModelMeta load_model(const std::string& name) {
  return name.rfind("tiny/", 0) == 0 ? load_folder(name) : make_model(load_fixture(name));
}
inline program::BuildOptions fixture_options(const json::value& fixture) {
  program::BuildOptions out;
  if (const json::value* outputs = json::find(fixture, "outputs")) {
    out.outputs.clear();
    for (const json::value& name : outputs->get_array()) out.outputs.emplace_back(name.get_string().c_str());
  }
  return out;
}
// One folder of each page would do; all of them take a second.
inline std::vector<std::string> all_folders() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator{source_directory() / "tests/models/tiny"})
    if (std::filesystem::exists(entry.path() / "model.safetensors")) out.push_back("tiny/" + entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}
// Built for the first output that its page has.
inline Result<program::Program> build_folder(const program::Pages& pages, const std::string& name) {
  Status why;
  for (const char* output : {"logits", "score", "embedding", "hidden"}) {
    program::BuildOptions options;
    options.outputs = {output};
    Result<program::Program> out = pages.build(load_folder(name), options);
    if (out.ok()) return out;
    if (why.ok()) why = out.status();
  }
  return why;
}
inline std::vector<std::string> all_fixtures() {
  std::vector<std::string> out;
  for (const char* format : {"gguf", "hf"})
    for (const auto& entry : std::filesystem::directory_iterator{source_directory() / "tests/programs" / format})
      if (entry.path().extension() == ".json") out.push_back(std::string{format} + "/" + entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

inline const program::Pages& all_pages() {
  static config::Diagnostics diagnostics;
  static const std::unique_ptr<program::Pages> pages = program::Pages::load({source_directory() / "configs/architectures"}, diagnostics);
  INFO(diagnostics.render());
  REQUIRE(diagnostics.ok());
  return *pages;
}

inline program::Program build(const program::ModelMeta& model, const program::BuildOptions& options = {}) {
  Result<program::Program> program = all_pages().build(model, options);
  INFO(program.status().text);
  REQUIRE(program.ok());
  return std::move(*program);
}

}  // namespace mekik::test
