// An open model file or folder, read through a loader plugin.
#pragma once
#include <memory>
#include <string>

#include "base/json.hpp"
#include "base/status.hpp"
#include "plugin/registry.hpp"
#include "program/model_meta.hpp"
#include "weights/parts.hpp"

namespace mekik::weights {

// Thread: any, after open.
class ModelFile {
 public:
  // `loader` empty: chosen by the file's kind. Errors begin with the path.
  static Result<std::unique_ptr<ModelFile>> open(plugin::Registry& registry, const std::string& path, const std::string& loader);
  ~ModelFile();
  const program::ModelMeta& meta() const { return meta_; }  // its config is null when nothing says what the tensors belong to
  // The loader's `tokenizer` object, or null JSON when the file has none.
  Result<json::value> tokenizer() const;
  // The chat template's text; Code::invalid when the file has none.
  Result<std::string> chat_template() const;
  std::uint64_t file_bytes() const { return file_bytes_; }
  // Paths of all files that decide the weights; none: the loader does not say.
  Result<std::vector<std::string>> files() const;
  const std::string& library() const { return component_.library; }

  const mekik_loader& loader() const { return *loader_; }
  mekik_model_file* raw() const { return raw_; }
  // What the tensor meta().tensors[index] is stored as: tensors of stored(), in the order of its scheme's suffixes.
  const std::vector<std::uint32_t>& parts(std::uint32_t index) const { return grouped_.parts[index]; }
  const RawFile& stored() const { return stored_; }
  const Quantization& quantization() const { return quantization_; }
  std::vector<std::string> notes() const;  // what of a quantized checkpoint is left unread

 private:
  ModelFile() = default;
  Status group(plugin::Registry& registry);
  plugin::Component component_;
  const mekik_loader* loader_ = nullptr;
  mekik_model_file* raw_ = nullptr;
  program::ModelMeta meta_;
  RawFile stored_;
  Quantization quantization_;
  Grouped grouped_;
  std::uint64_t file_bytes_ = 0;
};

}  // namespace mekik::weights
