#include "folder.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <mekik/plugin.hpp>
#include <optional>
#include <set>

#include <mekik/file.hpp>
#include <mekik/text.hpp>

namespace mekik_safetensors {

namespace {

using mekik::loaders::shown;

constexpr std::uint64_t kMaxIndex = std::uint64_t{64} << 20;
constexpr std::size_t kMaxListed = 4, kMaxShards = 10000;
constexpr const char* kIndexEnd = ".safetensors.index.json";

[[noreturn]] void refuse(const fs::path& at, const std::string& why) { throw mekik::Error{MEKIK_E_INVALID, at.string() + ": " + why}; }

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}
bool starts_with(const std::string& text, const std::string& start) { return text.compare(0, start.size(), start) == 0; }

// The files of a folder by name, sorted.
std::vector<std::string> names_in(const fs::path& root) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry{root, error}, end; !error && entry != end; entry.increment(error))
    if (!entry->is_directory(error)) names.push_back(entry->path().filename().string());
  if (error) throw mekik::Error{MEKIK_E_IO, root.string() + ": cannot be listed: " + error.message()};
  std::sort(names.begin(), names.end());
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < kMaxListed; ++i) out += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kMaxListed ? out + " and " + std::to_string(names.size() - kMaxListed) + " more" : out;
}

std::vector<std::string> those(const std::vector<std::string>& names, bool (*which)(const std::string&)) {
  std::vector<std::string> out;
  std::copy_if(names.begin(), names.end(), std::back_inserter(out), which);
  return out;
}

bool is_torch(const std::string& name) {
  const bool training = name == "training_args.bin" || name == "optimizer.pt" || name == "scheduler.pt" || name == "rng_state.pth";
  return !training && (ends_with(name, ".bin") || ends_with(name, ".pt") || ends_with(name, ".pth") || ends_with(name, ".ckpt"));
}

// What stands in the folder instead of a model, or nothing.
std::string other_model(const fs::path& root, const std::vector<std::string>& names) {
  const auto has = [&](const char* name) { return std::binary_search(names.begin(), names.end(), name); };
  if (has("adapter_config.json"))
    return "is an adapter (LoRA), not a model; merge it into its base model (peft: merge_and_unload) and save that";
  if (const auto gguf = those(names, [](const std::string& n) { return ends_with(n, ".gguf"); }); !gguf.empty())
    return "holds no config.json, but GGUF files: name one of them, " + (root / gguf[0]).string();
  if (has("params.json"))
    return "is in Mistral's own layout (params.json); fetch the files for transformers, config.json and model*.safetensors";
  if (has("model_index.json")) return "is a pipeline of several models (model_index.json); name the folder of its language model";
  return {};
}

[[noreturn]] void refuse_without_config(const fs::path& root, const std::vector<std::string>& names) {
  const std::string other = other_model(root, names);
  refuse(root, !other.empty()
                   ? other
                   : "is a folder without a config.json, so not a model; fetch the model's config.json into it, or name a model's "
                     "folder or a .gguf file");
}

[[noreturn]] void refuse_without_weights(const fs::path& root, const std::vector<std::string>& names) {
  if (const auto torch = those(names, is_torch); !torch.empty())
    refuse(root, "has its weights only in " + listed(torch) +
                     ", which is not read (it can run code); convert it: python3 -c \"from transformers "
                     "import AutoModelForCausalLM as M; M.from_pretrained('" +
                     root.string() + "', dtype='auto').save_pretrained('" + root.string() + "')\"");
  const auto other =
      those(names, [](const std::string& n) { return ends_with(n, ".h5") || ends_with(n, ".msgpack") || ends_with(n, ".onnx"); });
  if (!other.empty())
    refuse(root, "has its weights only in " + listed(other) + ", which is not read; fetch the model's .safetensors files");
  const std::string found = other_model(root, names);
  refuse(root, found.empty() ? "has a config.json but no weights; fetch the model's .safetensors files into it" : found);
}

// A name of an index must stay in the folder.
void check_name(const fs::path& index, const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos || name.find('\0') != std::string::npos || name == "." || name == "..")
    refuse(index, "names the file " + shown(name) + ", which is not one of its folder");
}

void require_all(const fs::path& said_by, const fs::path& root, const std::vector<std::string>& shards) {
  std::vector<std::string> missing;
  for (const std::string& shard : shards)
    if (!is_there(root / shard)) missing.push_back(shard);
  if (missing.empty()) return;
  std::string names;
  for (const std::string& name : missing) names += (names.empty() ? "" : ", ") + name;
  refuse(said_by, (missing.size() == 1
                       ? "a file of the model is missing: "
                       : std::to_string(missing.size()) + " of " + std::to_string(shards.size()) + " files of the model are missing: ") +
                      names + "; fetch " + (missing.size() == 1 ? "it" : "them") + " into the same folder");
}

void read_index(Folder& folder, const std::string& name) {
  const fs::path path = folder.root / name;
  const std::string text = read_text(path, kMaxIndex);
  boost::json::error_code error;
  const boost::json::value parsed = boost::json::parse(text, error);
  if (error) refuse(path, "is not valid JSON: " + error.message());
  const boost::json::object* top = parsed.if_object();
  const boost::json::value* map = top != nullptr ? top->if_contains("weight_map") : nullptr;
  if (map == nullptr || !map->is_object())
    refuse(path, "has no weight_map, so it is no index of safetensors files; name a model's folder or one of its .safetensors files");
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map->get_object()) {
    if (!shard.is_string()) refuse(path, "gives tensor " + shown({tensor.data(), tensor.size()}) + " a file that is not a text");
    const std::string file{shard.get_string().data(), shard.get_string().size()};
    check_name(path, file);
    shards.insert(file);
    folder.shard_of.emplace(std::string{tensor.data(), tensor.size()}, file);
  }
  if (shards.empty()) refuse(path, "has an empty weight_map");
  if (shards.size() > kMaxShards)
    refuse(path, "names " + std::to_string(shards.size()) + " files; at most " + std::to_string(kMaxShards) + " are read");
  folder.index = name;
  folder.shards.assign(shards.begin(), shards.end());
  require_all(path, folder.root, folder.shards);
}

// All N names of a set that this is one of ("model-00002-of-00005.safetensors"); empty: it is not of a set.
std::vector<std::string> set_of(const std::string& name) {
  constexpr const char* kEnd = ".safetensors";
  constexpr std::size_t kTail = 5 + 4 + 5 + 12;  // 00002-of-00005.safetensors
  if (!ends_with(name, kEnd) || name.size() <= kTail) return {};
  unsigned number = 0, count = 0;
  int used = 0;
  const std::string tail = name.substr(name.size() - kTail);
  if (std::sscanf(tail.c_str(), "%5u-of-%5u.safetensors%n", &number, &count, &used) != 2 || used != static_cast<int>(kTail) || number < 1 ||
      number > count || count > kMaxShards)
    return {};
  std::vector<std::string> out;
  for (unsigned i = 1; i <= count; ++i) {
    char text[32];
    std::snprintf(text, sizeof text, "%05u-of-%05u", i, count);
    out.push_back(name.substr(0, name.size() - kTail) + text + kEnd);
  }
  return out;
}

void use_set(Folder& folder, const std::string& member, const std::vector<std::string>& set) {
  const std::size_t head = member.size() - (5 + 4 + 5 + 12);
  const std::string index = (head > 0 ? member.substr(0, head - 1) : std::string{}) + kIndexEnd;
  if (head > 0 && is_there(folder.root / index)) return read_index(folder, index);
  require_all(folder.root / member, folder.root, set);
  folder.shards = set;
}

// Of a folder without model.safetensors and its index.
void use_what_is_there(Folder& folder, const std::vector<std::string>& names) {
  const auto indices = those(names, [](const std::string& n) { return ends_with(n, kIndexEnd); });
  if (indices.size() == 1) return read_index(folder, indices[0]);
  auto found = those(names, [](const std::string& n) { return ends_with(n, ".safetensors") && !starts_with(n, "adapter_"); });
  if (found.empty()) refuse_without_weights(folder.root, names);
  if (const auto set = set_of(found[0]); !set.empty() && std::all_of(found.begin(), found.end(), [&](const std::string& n) {
        return std::find(set.begin(), set.end(), n) != set.end();
      }))
    return use_set(folder, found[0], set);
  if (found.size() > 1) refuse(folder.root, "holds several models: " + listed(found) + "; name one of the files");
  folder.shards = std::move(found);
}

// The Dense modules of modules.json; their tensors are called PATH/NAME.
void find_modules(Folder& folder) {
  const fs::path path = folder.root / "modules.json";
  boost::json::error_code error;
  const boost::json::value parsed = boost::json::parse(read_text(path, kMaxIndex), error);
  if (error || !parsed.is_array()) refuse(path, error ? "is not valid JSON: " + error.message() : "is no list of modules");
  for (const boost::json::value& module : parsed.get_array()) {
    const boost::json::object* entry = module.if_object();
    const boost::json::value* type = entry != nullptr ? entry->if_contains("type") : nullptr;
    const boost::json::value* where = entry != nullptr ? entry->if_contains("path") : nullptr;
    if (type == nullptr || !type->is_string() || !ends_with(std::string{type->get_string()}, ".Dense")) continue;
    if (where == nullptr || !where->is_string()) refuse(path, "has a Dense module without a path");
    const std::string name{where->get_string()};
    check_name(path, name);
    if (!is_there(folder.root / name / "model.safetensors"))
      refuse(path, "names the module " + shown(name) + ", but " + name + "/model.safetensors is missing; fetch it");
    folder.modules.push_back(name);
  }
}

Folder of_directory(const fs::path& root) {
  Folder folder;
  folder.root = root;
  const std::vector<std::string> names = names_in(root);
  folder.has_config = std::binary_search(names.begin(), names.end(), "config.json");
  if (!folder.has_config) refuse_without_config(root, names);
  if (is_there(root / "model.safetensors")) folder.shards = {"model.safetensors"};
  else if (is_there(root / "model.safetensors.index.json")) read_index(folder, "model.safetensors.index.json");
  else use_what_is_there(folder, names);
  if (std::binary_search(names.begin(), names.end(), "modules.json")) find_modules(folder);
  return folder;
}

}  // namespace

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::string read_text(const fs::path& path, std::uint64_t limit) {
  const mekik::loaders::File file{path.string()};
  // Not MEKIK_E_INVALID, which says that a model has no such thing.
  const auto unreadable = [&](const std::string& why) { throw mekik::Error{MEKIK_E_UNSUPPORTED, path.string() + ": " + why}; };
  if (file.is_lfs_pointer()) unreadable(mekik::loaders::kLfsPointer);
  if (file.bytes() > limit) unreadable("has " + std::to_string(file.bytes()) + " bytes; at most " + std::to_string(limit) + " are read");
  std::string text(file.bytes(), '\0');
  file.read(0, text.data(), text.size());
  return text;
}

Folder find_model(const std::string& given) {
  const fs::path path{given};
  std::error_code error;
  if (fs::is_directory(path, error)) return of_directory(path);
  const std::string name = path.filename().string();
  const fs::path root = path.has_parent_path() ? path.parent_path() : fs::path{"."};
  if (name == "config.json") return of_directory(root);
  if (is_torch(name))
    refuse(path,
           "is a PyTorch file, which is not read (it can run code); name a folder with .safetensors files, which save_pretrained of "
           "transformers writes");
  Folder folder;
  folder.root = root;
  folder.has_config = is_there(root / "config.json");
  if (ends_with(name, ".json")) read_index(folder, name);
  else if (const auto set = set_of(name); set.size() > 1) use_set(folder, name, set);
  else folder.shards = {name};
  return folder;
}

}  // namespace mekik_safetensors
