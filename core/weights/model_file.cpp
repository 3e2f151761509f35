#include "weights/model_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/files.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace mekik::weights {

namespace {

namespace fs = std::filesystem;

// Metadata of large vocabularies: a million tokens with scores and merges stay under this.
constexpr std::size_t kMaxJson = std::size_t{512} << 20;

Result<std::string> pick_loader(const std::string& path) {
  MEKIK_CHECK_OK(find_path(path).in(path));
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return std::string{"safetensors"};
  if (!fs::is_regular_file(status)) return invalid(path + ": is neither a file nor a folder");
  char head[4] = {};
  std::ifstream file{path, std::ios::binary};
  if (!file) return fail(Code::io, path + ": cannot be opened: " + std::strerror(errno));
  file.read(head, sizeof head);
  const std::string extension = fs::path{path}.extension().string();
  if (std::memcmp(head, "GGUF", 4) == 0 || extension == ".gguf") return std::string{"gguf"};
  // Those of PyTorch are not read, but their loader knows what to do about them.
  for (const char* known : {".safetensors", ".json", ".bin", ".pt", ".pth", ".ckpt"})
    if (extension == known) return std::string{"safetensors"};
  return invalid(path + ": is not a GGUF file, and not a folder with a config.json; name its loader in [model] loader");
}

// A loader's answer to `key`, parsed. Code::invalid when the file has none; what is there and cannot be read has another code.
Result<json::value> ask(const mekik_loader& loader, mekik_model_file* raw, const std::string& path, std::string_view key) {
  mekik_str text{};
  MEKIK_CHECK_OK(plugin::to_status(loader.meta(raw, plugin::abi_str(key), &text), {}));
  json::ParseLimits limits;
  limits.bytes = kMaxJson;
  limits.duplicate_keys = key == "tokenizer" || key.substr(0, 5) == "file:" || key == "config";  // as the tools that wrote them read them
  auto parsed = json::parse(plugin::view(text), limits);
  if (!parsed.ok()) return internal_error(path + ": " + std::string{key} + ": " + parsed.status().text);
  return parsed;
}

// The same, but null when the file has none.
Result<json::value> ask_maybe(const mekik_loader& loader, mekik_model_file* raw, const std::string& path, std::string_view key) {
  auto found = ask(loader, raw, path, key);
  if (found.status().code == Code::invalid) return json::value{};
  return found;
}

Result<std::vector<program::TensorInfo>> tensor_infos(const mekik_loader& loader, mekik_model_file* raw, const std::string& path,
                                                      std::vector<const mekik_part*>& stored) {
  const mekik_part* parts = nullptr;
  std::uint32_t n = 0, size = 0;
  MEKIK_CHECK_OK(plugin::to_status(loader.tensors(raw, &parts, &n, &size), path));
  if (n > 0 && (parts == nullptr || size < sizeof(mekik_part))) return internal_error(path + ": the loader's tensors cannot be read");
  std::vector<program::TensorInfo> tensors(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    const auto& part = *reinterpret_cast<const mekik_part*>(reinterpret_cast<const char*>(parts) + std::size_t{i} * size);
    if (part.name == nullptr || part.rank < 1 || part.rank > 4)
      return internal_error(path + ": the loader describes a tensor without a name or shape");
    // One without numbers may lie in a file; a page that uses it is told.
    if (std::any_of(part.shape, part.shape + part.rank, [](std::int64_t side) { return side < 0; }))
      return internal_error(path + ": the loader describes tensor " + quoted(part.name) + " with a negative size");
    stored.push_back(&part);
    tensors[i] = {part.name, part.scheme != nullptr ? part.scheme : "", part.num, {part.shape, part.shape + part.rank}, part.bytes};
  }
  return tensors;
}

}  // namespace

Result<std::unique_ptr<ModelFile>> ModelFile::open(plugin::Registry& registry, const std::string& path, const std::string& loader) {
  MEKIK_CHECK_OK(find_path(path).in(path));
  std::string name = loader;
  if (name.empty()) {
    MEKIK_TRY(picked, pick_loader(path));
    name = picked;
  }
  std::unique_ptr<ModelFile> file{new ModelFile};
  auto component = registry.find("loader", name);
  if (!component.ok()) return component.status().in(path);
  file->component_ = std::move(*component);
  file->loader_ = &file->component_.table<mekik_loader>();
  Status opened = plugin::to_status(file->loader_->open(file->component_.host, plugin::abi_str(path), &file->raw_), {});
  if (!opened.ok()) return opened.text.starts_with(path) ? opened : std::move(opened).in(path);
  program::ModelMeta& meta = file->meta_;
  meta.path = path;
  MEKIK_TRY(format, ask(*file->loader_, file->raw_, path, "format"));
  if (!format.is_string()) return internal_error(path + ": the loader does not say what format it reads");
  meta.format = format.as_string();
  MEKIK_TRY(config, ask_maybe(*file->loader_, file->raw_, path, "config"));
  if (!config.is_object() && !config.is_null()) return invalid(path + ": its configuration is not a JSON object");
  meta.config = std::move(config);
  file->stored_ = {file->loader_, file->raw_, {}};
  MEKIK_TRY(tensors, tensor_infos(*file->loader_, file->raw_, path, file->stored_.tensors));
  meta.tensors = std::move(tensors);
  const ModelFile* self = file.get();
  meta.file = [self](const std::string& other) {
    auto found = ask_maybe(self->loader(), self->raw(), self->meta_.path, "file:" + other);
    if (found.ok()) return std::move(*found);
    log::warning("model", found.status().text + "; it counts as absent");
    return json::value{};
  };
  for (const program::TensorInfo& tensor : meta.tensors) file->file_bytes_ += tensor.bytes;
  MEKIK_CHECK_OK(file->group(registry).in(path));
  // Of a single file all of it counts; of a folder or a split model, what its tensors take.
  std::error_code error;
  if (fs::is_regular_file(path, error)) file->file_bytes_ = std::max<std::uint64_t>(file->file_bytes_, fs::file_size(path, error));
  return file;
}

// Tensors that are one weight together become one.
Status ModelFile::group(plugin::Registry& registry) {
  MEKIK_TRY(quantization, find_quantization(registry, meta_));
  quantization_ = std::move(quantization);
  if (quantization_.scheme.empty()) {
    for (std::uint32_t i = 0; i < meta_.tensors.size(); ++i) grouped_.parts.push_back({i});
    return {};
  }
  MEKIK_TRY(grouped, group_tensors(registry, stored_, quantization_, meta_));
  grouped_ = std::move(grouped);
  return {};
}

ModelFile::~ModelFile() {
  if (raw_ != nullptr) loader_->close(raw_);
}

Result<json::value> ModelFile::tokenizer() const {
  auto found = ask_maybe(*loader_, raw_, meta_.path, "tokenizer");
  if (!found.ok()) return found;
  // How a GGUF file says that it has none.
  const json::value* kind = json::find(*found, "tokenizer.ggml.model");
  if (kind != nullptr && (*kind == "no_vocab" || *kind == "none")) return json::value{};
  return found;
}

Result<std::string> ModelFile::chat_template() const {
  MEKIK_TRY(found, ask(*loader_, raw_, meta_.path, "template"));
  if (!found.is_string()) return invalid(meta_.path + ": its chat template is not a text");
  return std::string{std::string_view{found.as_string()}};
}

Result<std::vector<std::string>> ModelFile::files() const {
  MEKIK_TRY(found, ask_maybe(*loader_, raw_, meta_.path, "files"));
  std::vector<std::string> out;
  if (found.is_null()) return out;
  const auto* list = found.if_array();
  for (std::size_t i = 0; list != nullptr && i < list->size() && (*list)[i].is_string(); ++i)
    out.emplace_back((*list)[i].get_string().c_str());
  if (list == nullptr || out.size() != list->size()) return internal_error(meta_.path + ": the loader's list of files is no list of paths");
  return out;
}

std::vector<std::string> ModelFile::notes() const {
  std::vector<std::string> out;
  for (const auto& [text, count] : grouped_.notes) out.push_back(count == 1 ? text : text + " (" + std::to_string(count) + " of them)");
  return out;
}

}  // namespace mekik::weights
