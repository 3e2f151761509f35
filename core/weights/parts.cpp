#include "weights/parts.hpp"

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <unordered_set>

#include "base/text.hpp"

namespace mekik::weights {

namespace {

struct Suffix {
  std::string text;
  bool optional = false, unread = false;
  // X for a tensor called like this; empty: it is not.
  std::string owner(const std::string& name) const {
    if (!name.ends_with(text)) return {};
    const std::size_t rest = name.size() - text.size();
    if (text[0] == '_') return name.substr(0, rest);
    return rest > 1 && name[rest - 1] == '.' ? name.substr(0, rest) + "weight" : std::string{};
  }
};

std::vector<Suffix> read_suffixes(std::string_view text) {
  std::vector<Suffix> out;
  for (const std::string& word : split(std::string{text}, ' ')) {
    if (word.empty()) continue;
    Suffix suffix{word};
    suffix.optional = word.back() == '?';
    suffix.unread = word.back() == '!';
    if (suffix.optional || suffix.unread) suffix.text.pop_back();
    if (!suffix.text.empty()) out.push_back(std::move(suffix));
  }
  return out;
}

bool plain_float(const program::TensorInfo& tensor) {
  return tensor.scheme.empty() && (tensor.num == MEKIK_F32 || tensor.num == MEKIK_F16 || tensor.num == MEKIK_BF16);
}

// Member of an object, if it is a text.
std::string text_of(const json::value* of, std::string_view key) {
  const json::value* found = of != nullptr ? json::find(*of, key) : nullptr;
  return found != nullptr && found->is_string() ? std::string{std::string_view{found->as_string()}} : std::string{};
}

const json::value* object_at(const json::value& of, std::string_view key) {
  const json::value* found = json::find(of, key);
  return found != nullptr && found->is_object() ? found : nullptr;
}

// The number type that config.json gives the model, in whichever place it does.
std::string model_dtype(const json::value& config) {
  for (const json::value* at : {&config, object_at(config, "text_config")})
    for (const char* key : {"dtype", "torch_dtype"})
      if (std::string found = text_of(at, key); !found.empty()) return found.starts_with("torch.") ? found.substr(6) : found;
  return {};
}

// Block formats whose scheme names suffixes keep something beside the blocks: X.scale of X.weight. The first scheme of which that is so.
Quantization block_parts(plugin::Registry& registry, const program::ModelMeta& meta) {
  std::unordered_set<std::string> names;
  std::map<std::string, std::vector<std::string>> blocks;  // names by scheme
  for (const program::TensorInfo& tensor : meta.tensors) {
    names.insert(tensor.name);
    if (!tensor.scheme.empty() && tensor.name.ends_with("weight")) blocks[tensor.scheme].push_back(tensor.name);
  }
  for (const auto& [scheme, weights] : blocks) {
    const auto component = registry.find("scheme", scheme);
    if (!component.ok()) continue;  // said when such a tensor is needed
    const auto& table = component->table<mekik_scheme>();
    if (table.suffixes == nullptr) continue;
    for (const Suffix& suffix : read_suffixes(table.suffixes)) {
      if (suffix.text[0] == '_' || suffix.text == "weight") continue;
      for (const std::string& name : weights)
        if (names.count(name.substr(0, name.size() - std::string_view{"weight"}.size()) + suffix.text) != 0) return {scheme, scheme, {}};
    }
  }
  return {};
}

// A plugin's name, or nothing where no plugin can be called so.
std::string plugin_name(const std::string& method) {
  std::string out;
  for (const char c : method) out += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const bool fits =
      std::all_of(out.begin(), out.end(), [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
  return fits ? out : std::string{};
}

// The groups of one file: which tensors would be one weight, in the order of their first tensors.
class Grouper {
 public:
  Grouper(plugin::Registry& registry, const RawFile& raw, const Quantization& quantization, program::ModelMeta& meta)
      : registry_{registry}, raw_{raw}, quantization_{quantization}, meta_{meta} {}

  Result<Grouped> run() {
    auto component = registry_.find("scheme", quantization_.scheme);
    if (!component.ok())
      return component.status().in("it was quantized by " + mekik::quoted(quantization_.method) +
                                   ", which is not read here (have that tool write a plain checkpoint, or take one of another kind)");
    component_ = std::move(*component);
    table_ = &component_.table<mekik_scheme>();
    if (table_->suffixes == nullptr || !MEKIK_HAS(mekik_scheme, table_, shape) || table_->shape == nullptr)
      return invalid("it was quantized by " + mekik::quoted(quantization_.method) + ", but scheme " + quantization_.scheme +
                     " reads single tensors only");
    suffixes_ = read_suffixes(table_->suffixes);
    collect();
    for (std::size_t at = 0; at < order_.size(); ++at) MEKIK_CHECK_OK(settle(order_[at]));
    MEKIK_CHECK_OK(check_names());
    meta_.tensors = std::move(tensors_);
    return std::move(out_);
  }

 private:
  struct Group {
    std::string name;
    std::vector<std::uint32_t> parts;  // by suffix
    std::vector<std::uint32_t> all;    // as the file has them
  };

  void collect() {
    std::unordered_map<std::string, std::size_t> known;
    for (std::uint32_t i = 0; i < meta_.tensors.size(); ++i) {
      std::string owner;
      std::size_t position = 0;
      for (; position < suffixes_.size() && owner.empty(); ++position) owner = suffixes_[position].owner(meta_.tensors[i].name);
      if (owner.empty()) {
        order_.push_back({{}, {}, {i}});
        continue;
      }
      --position;
      if (suffixes_[position].unread) {
        ++out_.notes["tensors named \"..." + suffixes_[position].text + "\" are not used"];
        continue;
      }
      const auto [found, fresh] = known.try_emplace(owner, order_.size());
      if (fresh) order_.push_back({owner, std::vector<std::uint32_t>(suffixes_.size(), MEKIK_NONE), {}});
      Group& group = order_[found->second];
      group.parts[position] = i;
      group.all.push_back(i);
    }
  }

  // As it is stored: nothing that the scheme knows.
  void keep(const Group& group) {
    for (const std::uint32_t i : group.all) {
      tensors_.push_back(meta_.tensors[i]);
      out_.parts.push_back({i});
    }
  }

  Status settle(const Group& group) {
    const bool alone = group.all.size() == 1;
    if (group.name.empty() || (alone && meta_.tensors[group.all[0]].name == group.name && plain_float(meta_.tensors[group.all[0]]))) {
      keep(group);
      return {};
    }
    Parts parts{raw_, group.parts, quantization_.config};
    if (table_->claims(&parts.abi()) <= 0) {
      keep(group);
      return {};
    }
    const std::string where = mekik::quoted(group.name) + ", stored as " + quantization_.method;
    for (std::size_t i = 0; i < suffixes_.size(); ++i)
      if (!suffixes_[i].optional && !suffixes_[i].unread && group.parts[i] == MEKIK_NONE)
        return invalid(where + ": its part \"..." + suffixes_[i].text + "\" is not in the file");
    std::int64_t shape[4] = {};
    std::uint32_t rank = 0;
    MEKIK_CHECK_OK(plugin::to_status(table_->shape(&parts.abi(), shape, &rank), where));
    if ((rank != 2 && rank != 3) || !std::all_of(shape, shape + rank, [](std::int64_t side) { return side > 0; }))
      return internal_error("scheme " + quantization_.scheme + " gives " + mekik::quoted(group.name) + " no shape");
    program::TensorInfo info{group.name, quantization_.scheme, 0, {shape, shape + rank}, 0};
    for (const std::uint32_t i : group.all) info.bytes += meta_.tensors[i].bytes;
    tensors_.push_back(std::move(info));
    out_.parts.push_back(group.parts);
    if (MEKIK_HAS(mekik_scheme, table_, left_out) && table_->left_out != nullptr)
      if (const std::string_view text = plugin::view(table_->left_out(&parts.abi())); !text.empty()) ++out_.notes[std::string{text}];
    return {};
  }

  Status check_names() const {
    std::unordered_map<std::string, bool> seen;
    for (const program::TensorInfo& tensor : tensors_)
      if (!seen.emplace(tensor.name, true).second)
        return invalid("tensor " + mekik::quoted(tensor.name) + " is there both as it is and in parts, stored as " + quantization_.method);
    return {};
  }

  plugin::Registry& registry_;
  const RawFile& raw_;
  const Quantization& quantization_;
  program::ModelMeta& meta_;
  plugin::Component component_;
  const mekik_scheme* table_ = nullptr;
  std::vector<Suffix> suffixes_;
  std::vector<Group> order_;
  std::vector<program::TensorInfo> tensors_;
  Grouped out_;
};

}  // namespace

Parts::Parts(const RawFile& raw, std::vector<std::uint32_t> indices, const std::string& config) : raw_{raw}, indices_{std::move(indices)} {
  for (const std::uint32_t i : indices_) parts_.push_back(i != MEKIK_NONE ? *raw_.tensors[i] : mekik_part{});
  abi_.struct_size = sizeof abi_;
  abi_.n_parts = static_cast<std::uint32_t>(parts_.size());
  abi_.part_size = sizeof(mekik_part);
  abi_.parts = parts_.data();
  abi_.config_json = plugin::abi_str(config);
  abi_.self = this;
  abi_.read = read;
}

mekik_status Parts::read(void* self, std::uint32_t part, std::uint64_t at, void* out, std::uint64_t bytes) {
  const auto& parts = *static_cast<const Parts*>(self);
  if (part >= parts.indices_.size() || parts.indices_[part] == MEKIK_NONE) return MEKIK_E_INVALID;
  return parts.raw_.loader->read(parts.raw_.file, parts.indices_[part], at, out, bytes);
}

Result<Quantization> find_quantization(plugin::Registry& registry, const program::ModelMeta& meta) {
  if (meta.format != "hf") return block_parts(registry, meta);
  Quantization out;
  const json::value* found = nullptr;
  for (const json::value* at : {&meta.config, object_at(meta.config, "text_config")})
    for (const char* key : {"quantization_config", "compression_config"})
      if (found == nullptr && at != nullptr) found = object_at(*at, key);
  json::value beside;
  std::string where = "config.json: quantization_config", key = "quant_method";
  if (found != nullptr) {
    out.method = text_of(found, key);
  } else {
    if (meta.file) beside = meta.file("hf_quant_config.json");
    if (!beside.is_object()) return out;
    found = &beside;
    where = "hf_quant_config.json: producer";
    key = "name";
    out.method = text_of(object_at(beside, "producer"), key);
  }
  if (out.method.empty()) return invalid(where + " has no \"" + key + "\", so nothing says how the weights were quantized");
  out.scheme = plugin_name(out.method);
  if (out.scheme.empty()) return invalid(where + " names " + mekik::quoted(out.method) + ", which no scheme is called");
  json::object config = found->as_object();
  if (const std::string dtype = model_dtype(meta.config); !dtype.empty()) config["model_dtype"] = dtype;
  out.config = json::serialize(config);
  return out;
}

Result<Grouped> group_tensors(plugin::Registry& registry, const RawFile& raw, const Quantization& quantization, program::ModelMeta& meta) {
  return Grouper{registry, raw, quantization, meta}.run();
}

}  // namespace mekik::weights
