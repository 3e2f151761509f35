// Which tensors of a file stand for one weight together, and how its scheme sees them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/status.hpp"
#include "plugin/registry.hpp"
#include "program/model_meta.hpp"

namespace mekik::weights {

// An open file of a loader: its tensors as they are stored.
struct RawFile {
  const mekik_loader* loader = nullptr;
  mekik_model_file* file = nullptr;
  std::vector<const mekik_part*> tensors;
};

// The mekik_parts of one weight. It points to itself, so it stays where it is.
class Parts {
 public:
  // `indices`: of raw.tensors, in the order of the scheme's suffixes; MEKIK_NONE: absent. Borrowed: raw, config.
  Parts(const RawFile& raw, std::vector<std::uint32_t> indices, const std::string& config);
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  mekik_parts& abi() { return abi_; }
  const mekik_parts& abi() const { return abi_; }

 private:
  static mekik_status read(void* self, std::uint32_t part, std::uint64_t at, void* out, std::uint64_t bytes);
  const RawFile& raw_;
  std::vector<std::uint32_t> indices_;
  std::vector<mekik_part> parts_;
  mekik_parts abi_{};
};

// How a checkpoint says it was quantized.
struct Quantization {
  std::string scheme;  // the plugin's name; empty: it was not
  std::string method;  // as the checkpoint spells it
  std::string config;  // for mekik_parts.config_json
};
// From config.json, else from the `hf_quant_config.json` that some tools write beside it. Of a file of blocks: the scheme that keeps
// something beside them.
Result<Quantization> find_quantization(plugin::Registry& registry, const program::ModelMeta& meta);

// Replaces the tensors of quantized weights in meta.tensors by one each, with the scheme's name and the whole shape.
struct Grouped {
  std::vector<std::vector<std::uint32_t>> parts;  // of each of meta.tensors: indices of raw.tensors
  std::map<std::string, std::uint32_t> notes;     // what is left unread, of how many weights
};
Result<Grouped> group_tensors(plugin::Registry& registry, const RawFile& raw, const Quantization& quantization, program::ModelMeta& meta);

}  // namespace mekik::weights
