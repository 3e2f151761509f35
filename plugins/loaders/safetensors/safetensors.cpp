// Loads the folders that transformers writes: config.json, weights in safetensors files, and what the tokenizer is made of. The tensors of
// quantized checkpoints are listed as they are stored; who reads them puts the parts of a weight together.
#include <array>
#include <deque>
#include <mekik/plugin.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <mekik/text.hpp>
#include "documents.hpp"
#include "folder.hpp"
#include "header.hpp"

namespace mekik_safetensors {

namespace {

using mekik::loaders::shown;

// An open model. Thread: any, after open; only `documents` changes, under its lock.
struct Model {
  Folder folder;
  std::deque<File> files;
  std::vector<TensorEntry> tensors;
  std::vector<std::uint32_t> file_of;  // per tensor
  std::vector<mekik_part> parts;
  std::unique_ptr<Documents> documents;
  std::string file_list;
};

// Adds the tensors of one file. Of a tensor that several files hold, the index says which counts.
void add_file(Model& model, const std::string& name, std::unordered_map<std::string, std::string>& found_in,
              const std::string& prefix = {}) {
  model.files.emplace_back((model.folder.root / name).string());
  const File& file = model.files.back();
  for (TensorEntry& tensor : read_header(file)) {
    tensor.name.insert(0, prefix);
    const auto said = model.folder.shard_of.find(tensor.name);
    if (said != model.folder.shard_of.end() && said->second != name) continue;
    const auto [before, fresh] = found_in.emplace(tensor.name, name);
    if (!fresh)
      throw mekik::Error{MEKIK_E_INVALID, file.path() + ": tensor " + shown(tensor.name) + " is also in " + before->second +
                                              ", and no index says which counts"};
    model.tensors.push_back(std::move(tensor));
    model.file_of.push_back(static_cast<std::uint32_t>(model.files.size() - 1));
  }
}

void open_files(Model& model) {
  std::unordered_map<std::string, std::string> found_in;
  for (const std::string& name : model.folder.shards) add_file(model, name, found_in);
  for (const std::string& name : model.folder.modules) add_file(model, name + "/model.safetensors", found_in, name + "/");
  for (const auto& [tensor, shard] : model.folder.shard_of)
    if (found_in.count(tensor) == 0)
      throw mekik::Error{MEKIK_E_INVALID, (model.folder.root / model.folder.index).string() + ": says that tensor " + shown(tensor) +
                                              " is in " + shard + ", which lacks it; fetch both files again"};
}

// The ABI has at most four sizes. Of more, the last ones become one: the numbers lie the same.
void describe_tensors(Model& model) {
  for (const TensorEntry& tensor : model.tensors) {
    mekik_part part{};
    part.name = tensor.name.c_str();
    part.num = tensor.dtype->num;
    part.bytes = tensor.bytes;
    part.rank = static_cast<std::uint32_t>(std::min<std::size_t>(std::max<std::size_t>(tensor.shape.size(), 1), std::size(part.shape)));
    std::fill_n(part.shape, part.rank, 1);
    for (std::size_t i = 0; i < tensor.shape.size(); ++i)
      part.shape[std::min<std::size_t>(i, part.rank - 1)] *= static_cast<std::int64_t>(tensor.shape[i]);
    model.parts.push_back(part);
  }
}

Model* as_model(mekik_model_file* file) { return reinterpret_cast<Model*>(file); }

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

int probe(mekik_str path, const void* head, size_t head_bytes) {
  const std::string_view name = mekik::view(path), start{static_cast<const char*>(head), head_bytes};
  if (ends_with(name, ".safetensors")) return 90;
  // A length below 100 MB, then an object.
  if (start.size() > 8 && start[8] == '{' && start.substr(4, 4) == std::string_view{"\0\0\0\0", 4}) return 60;
  return ends_with(name, "config.json") || ends_with(name, ".safetensors.index.json") ? 50 : 0;
}

mekik_status open(const mekik_host*, mekik_str path, mekik_model_file** out) {
  return mekik::guard([&] {
    auto model = std::make_unique<Model>();
    model->folder = find_model(std::string{mekik::view(path)});
    open_files(*model);
    describe_tensors(*model);
    // How quantized weights are to be read is said in config.json.
    model->file_list =
        mekik::loaders::file_list(model->files, model->folder.has_config ? (model->folder.root / "config.json").string() : std::string{});
    model->documents = std::make_unique<Documents>(model->folder);
    *out = reinterpret_cast<mekik_model_file*>(model.release());
  });
}

void close(mekik_model_file* file) { delete as_model(file); }

mekik_status meta(mekik_model_file* file, mekik_str key, mekik_str* out) {
  return mekik::guard([&] {
    Model& model = *as_model(file);
    const bool files = mekik::view(key) == "files" && !model.file_list.empty();
    *out = mekik::str(files ? model.file_list : model.documents->get(std::string{mekik::view(key)}));
  });
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
    if (i >= model.parts.size())
      throw mekik::Error{MEKIK_E_INVALID, model.folder.root.string() + ": there is no tensor " + std::to_string(i)};
    const TensorEntry& tensor = model.tensors[i];
    const File& from = model.files[model.file_of[i]];
    if (at > tensor.bytes || bytes > tensor.bytes - at)
      throw mekik::Error{MEKIK_E_INVALID, from.path() + ": tensor " + shown(tensor.name) + " has " + std::to_string(tensor.bytes) +
                                              " bytes; " + std::to_string(bytes) + " from " + std::to_string(at) + " were asked for"};
    from.read(tensor.begin + at, out, bytes);
  });
}

constexpr mekik_loader kTable{sizeof(mekik_loader), 0, probe, open, close, meta, tensors, read};
constexpr std::array<mekik_option, 0> kOptions{};

}  // namespace

}  // namespace mekik_safetensors

MEKIK_PLUGIN("mekik.loader.safetensors", "1.0",
             mekik::component(MEKIK_KIND_LOADER, "safetensors", "1.0",
                              "Reads a folder as transformers writes it: config.json, safetensors files, tokenizer files.",
                              mekik_safetensors::kOptions, &mekik_safetensors::kTable));
