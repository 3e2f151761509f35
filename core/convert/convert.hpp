// `mekik convert`: a model of one format written in another, names mapped by its architecture page turned around.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "plugin/registry.hpp"
#include "program/page.hpp"
#include "weights/model_file.hpp"

namespace mekik::convert {

struct Request {
  std::string to;                                            // "gguf" or "safetensors"
  std::string type;                                          // of matrices: "f32", "f16", "bf16", "q8_0", ...; empty: as they are
  std::filesystem::path out;                                 // a file, or a folder; must not be there yet
  std::string page;                                          // by name; empty: the one that matches
  std::function<bool()> stopped;                             // asked between pieces of a tensor
  std::uint64_t shard_bytes = std::uint64_t{5'000'000'000};  // of one safetensors file
};

struct Report {
  std::uint64_t tensors = 0, bytes = 0;
  std::vector<std::string> notes;  // what the other format has no place for, what got another type
};

// Plans everything, then reads and writes tensor by tensor. The result appears when it is whole: until
// then it is `out`.mekik-part, which is removed when it fails.
Result<Report> convert(plugin::Registry& registry, const program::Pages& pages, const weights::ModelFile& file, const Request& request);

}  // namespace mekik::convert
