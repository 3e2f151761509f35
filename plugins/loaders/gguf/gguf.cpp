// Loads GGUF files: one file, or all parts of a split model when given the first.
#include <array>
#include <cstdio>
#include <deque>
#include <mekik/plugin.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "header.hpp"
#include "json.hpp"
#include "reader.hpp"

namespace mekik_gguf {

namespace {

constexpr std::uint64_t kMaxParts = 1000;

// An open model. Thread: any, after open; nothing in it changes.
struct Model {
  std::deque<File> files;
  Header header;                       // metadata of the first part, tensors of all
  std::vector<std::uint32_t> file_of;  // per tensor
  std::vector<mekik_part> parts;
  std::string file_list;
};

std::string part_suffix(std::uint64_t number, std::uint64_t count) {
  char text[64];
  std::snprintf(text, sizeof text, "-%05llu-of-%05llu.gguf", static_cast<unsigned long long>(number),
                static_cast<unsigned long long>(count));
  return text;
}

// Path without "-00001-of-0000N.gguf".
std::string split_prefix(const std::string& path, const Header& first) {
  const std::string suffix = part_suffix(first.split_no + 1, first.split_count);
  if (path.size() <= suffix.size() || path.compare(path.size() - suffix.size(), suffix.size(), suffix) != 0)
    throw mekik::Error{MEKIK_E_INVALID, path + ": is part " + std::to_string(first.split_no + 1) + " of " +
                                            std::to_string(first.split_count) + " of a split model, so its name must end in " + suffix +
                                            " for the other parts to be found"};
  return path.substr(0, path.size() - suffix.size());
}

void append(Model& model, std::vector<TensorEntry>&& tensors, std::uint32_t file) {
  for (TensorEntry& tensor : tensors) {
    model.header.tensors.push_back(std::move(tensor));
    model.file_of.push_back(file);
  }
}

void check_part(const File& file, const Header& part, std::uint64_t number, std::uint64_t count) {
  if (part.split_count != count || part.split_no != number - 1)
    throw mekik::Error{MEKIK_E_INVALID, file.path() + ": says it is part " + std::to_string(part.split_no + 1) + " of " +
                                            std::to_string(part.split_count) + " (split.no counts from 0), expected " +
                                            std::to_string(number) + " of " + std::to_string(count)};
  if (part.n_keys > part.n_split_keys)
    mekik::write_log(3, "gguf", file.path() + ": metadata of a split model is read from its first part only");
}

File open_part(const std::string& path, std::uint64_t number, std::uint64_t count) {
  try {
    return File{path};
  } catch (const mekik::Error& e) {
    throw mekik::Error{e.code, "part " + std::to_string(number) + " of " + std::to_string(count) + " missing: " + e.what()};
  }
}

void open_other_parts(Model& model) {
  const std::string path = model.files[0].path();
  const std::uint64_t count = model.header.split_count;
  if (count > kMaxParts)
    throw mekik::Error{MEKIK_E_INVALID, path + ": split.count is " + std::to_string(count) + "; at most 1000 parts are read"};
  if (model.header.split_no >= count)
    throw mekik::Error{MEKIK_E_INVALID, path + ": split.no is " + std::to_string(model.header.split_no) + ", but there are " +
                                            std::to_string(count) + " parts (split.no counts from 0)"};
  const std::string prefix = split_prefix(path, model.header);
  if (model.header.split_no != 0)
    throw mekik::Error{MEKIK_E_INVALID, path + ": is part " + std::to_string(model.header.split_no + 1) + " of " + std::to_string(count) +
                                            "; open the first part: " + prefix + part_suffix(1, count)};
  for (std::uint64_t number = 2; number <= count; ++number) {
    model.files.push_back(open_part(prefix + part_suffix(number, count), number, count));
    Header part = read_header(model.files.back());
    check_part(model.files.back(), part, number, count);
    append(model, std::move(part.tensors), static_cast<std::uint32_t>(number - 1));
  }
  std::unordered_set<std::string_view> names;
  for (const TensorEntry& tensor : model.header.tensors)
    if (!names.insert(tensor.name).second)
      throw mekik::Error{MEKIK_E_INVALID, path + ": tensor " + shown(tensor.name) + " is in two parts of the split model"};
  if (model.header.split_tensors && *model.header.split_tensors != model.header.tensors.size())
    throw mekik::Error{MEKIK_E_INVALID, path + ": the parts hold " + std::to_string(model.header.tensors.size()) +
                                            " tensors together, split.tensors.count says " + std::to_string(*model.header.split_tensors)};
}

void describe_tensors(Model& model) {
  for (const TensorEntry& tensor : model.header.tensors) {
    mekik_part part{};
    part.name = tensor.name.c_str();
    part.scheme = tensor.scheme;
    part.num = tensor.num;
    part.rank = tensor.rank;
    for (std::size_t i = 0; i < 4; ++i) part.shape[i] = tensor.shape[i];
    part.bytes = tensor.bytes;
    model.parts.push_back(part);
  }
}

Model* as_model(mekik_model_file* file) { return reinterpret_cast<Model*>(file); }

int probe(mekik_str path, const void* head, size_t head_bytes) {
  if (std::string_view{static_cast<const char*>(head), head_bytes}.substr(0, 4) == "GGUF") return 100;
  const std::string_view name = mekik::view(path);
  return name.size() > 5 && name.substr(name.size() - 5) == ".gguf" ? 60 : 0;
}

mekik_status open(const mekik_host*, mekik_str path, mekik_model_file** out) {
  return mekik::guard([&] {
    auto model = std::make_unique<Model>();
    model->files.emplace_back(std::string{mekik::view(path)});
    model->header = read_header(model->files[0]);
    model->file_of.assign(model->header.tensors.size(), 0);
    if (model->header.split_count > 1) open_other_parts(*model);
    describe_tensors(*model);
    model->file_list = mekik::loaders::file_list(model->files);
    *out = reinterpret_cast<mekik_model_file*>(model.release());
  });
}

void close(mekik_model_file* file) { delete as_model(file); }

mekik_status meta(mekik_model_file* file, mekik_str key, mekik_str* out) {
  const Model& model = *as_model(file);
  const std::string_view name = mekik::view(key);
  std::string_view found;
  if (name == "format") found = "\"gguf\"";
  else if (name == "config") found = model.header.config;
  else if (name == "tokenizer") found = model.header.tokenizer;
  else if (name == "template") found = model.header.chat_template;
  else if (name == "files") found = model.file_list;
  if (found.empty())
    return mekik::guard([&] { throw mekik::Error{MEKIK_E_INVALID, model.files[0].path() + ": has no " + std::string{name}}; });
  *out = mekik::str(found);
  return MEKIK_OK;
}

mekik_status tensors(mekik_model_file* file, const mekik_part** out, std::uint32_t* n, std::uint32_t* part_size) {
  const Model& model = *as_model(file);
  *out = model.parts.data();
  *n = static_cast<std::uint32_t>(model.parts.size());
  *part_size = sizeof(mekik_part);
  return MEKIK_OK;
}

mekik_status read(mekik_model_file* file, std::uint32_t i, std::uint64_t at, void* out, std::uint64_t bytes) {
  return mekik::guard([&] {
    const Model& model = *as_model(file);
    if (i >= model.parts.size()) throw mekik::Error{MEKIK_E_INVALID, model.files[0].path() + ": there is no tensor " + std::to_string(i)};
    const TensorEntry& tensor = model.header.tensors[i];
    if (at > tensor.bytes || bytes > tensor.bytes - at)
      throw mekik::Error{MEKIK_E_INVALID, model.files[0].path() + ": tensor " + shown(tensor.name) + " has " +
                                              std::to_string(tensor.bytes) + " bytes; " + std::to_string(bytes) + " from " +
                                              std::to_string(at) + " were asked for"};
    model.files[model.file_of[i]].read(tensor.begin + at, out, bytes);
  });
}

constexpr mekik_loader kTable{sizeof(mekik_loader), 0, probe, open, close, meta, tensors, read};
constexpr std::array<mekik_option, 0> kOptions{};

}  // namespace

}  // namespace mekik_gguf

MEKIK_PLUGIN("mekik.loader.gguf", "1.0",
             mekik::component(MEKIK_KIND_LOADER, "gguf", "1.0", "Reads GGUF files, version 2 and 3, and split models.",
                              mekik_gguf::kOptions, &mekik_gguf::kTable));
