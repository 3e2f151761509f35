#include "convert/convert.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "convert/gguf_writer.hpp"
#include "convert/place.hpp"
#include "convert/tokenizer.hpp"
#include "convert/types.hpp"
#include "convert/values.hpp"
#include "weights/source.hpp"
#include "weights/store.hpp"

namespace mekik::convert {

namespace {

namespace fs = std::filesystem;
using program::Transcript;

constexpr std::uint64_t kPanelFloats = std::uint64_t{4} << 20;  // decoded and encoded at once

std::uint64_t product(const std::vector<std::int64_t>& sizes) {
  std::uint64_t out = 1;
  for (const std::int64_t size : sizes) out *= static_cast<std::uint64_t>(size);
  return out;
}

// What llama.cpp keeps in F32 whatever the type: it reads no other there.
bool always_f32(const std::string& name) {
  for (const char* part :
       {"ffn_gate_inp", "_norm.weight", "ssm_conv1d", "ssm_a", "ssm_d", "shortconv.conv", "token_types", "position_embd"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

class Conversion {
 public:
  Conversion(plugin::Registry& registry, const weights::ModelFile& file, const Request& request, Transcript transcript)
      : registry_{registry}, file_{file}, request_{request}, transcript_{std::move(transcript)}, gguf_{request.to == "gguf"} {}

  Status choose_types();
  // Under this name, which is not yet the one that was asked for.
  Status write_gguf(const fs::path& path);
  Status write_folder(const fs::path& folder);
  Report report;

 private:
  struct Chosen {
    const Transcript::Tensor* tensor;
    const Encoder* encoder;
    std::uint64_t bytes;
  };
  Result<const Encoder*> encoder(const Type& type);
  const Type& own_type(const Transcript::Tensor& tensor) const;
  bool in_blocks(const Transcript::Tensor& tensor) const;
  Result<GgufKeys> keys();
  Status write_values(Values& values, const Chosen& chosen, OutFile& out);
  Status write_shard(Values& values, const std::vector<Chosen>& chosen, const fs::path& path);
  Status write_texts(const fs::path& folder);
  Status write_parts(Values& values, const std::vector<Chosen>& chosen, const fs::path& folder);

  plugin::Registry& registry_;
  const weights::ModelFile& file_;
  const Request& request_;
  Transcript transcript_;
  bool gguf_;
  std::map<std::string, Encoder> encoders_;
  std::vector<Chosen> chosen_;
  const Type* main_ = nullptr;  // of most bytes
};

Result<const Encoder*> Conversion::encoder(const Type& type) {
  const auto found = encoders_.find(type.name);
  if (found != encoders_.end()) return &found->second;
  MEKIK_TRY(opened, Encoder::open(registry_, type));
  return &encoders_.emplace(type.name, std::move(opened)).first->second;
}

// The number that holds what the source's tensor holds: its own, or F32 for what is computed or stands in blocks.
const Type& Conversion::own_type(const Transcript::Tensor& tensor) const {
  std::uint32_t num = 0;
  for (const Transcript::Part& part : tensor.parts) {
    const program::WeightRecipe& recipe = transcript_.program.weights[part.weight];
    const std::uint32_t source = !recipe.rows.empty() ? recipe.rows[0].source : recipe.parts[0].source;
    const program::TensorInfo& info = file_.meta().tensors[source];
    const bool plain = info.scheme.empty() && (info.num == MEKIK_F16 || info.num == MEKIK_BF16) && recipe.value.empty() &&
                       part.undo.empty() && part.factors.empty();
    if (!plain || (num != 0 && num != info.num)) return type_of(MEKIK_F32);
    num = info.num;
  }
  return type_of(num == 0 ? static_cast<std::uint32_t>(MEKIK_F32) : num);
}

bool Conversion::in_blocks(const Transcript::Tensor& tensor) const {
  return std::any_of(tensor.parts.begin(), tensor.parts.end(), [&](const Transcript::Part& part) {
    const program::WeightRecipe& recipe = transcript_.program.weights[part.weight];
    const std::uint32_t source = !recipe.rows.empty() ? recipe.rows[0].source : recipe.parts[0].source;
    return !file_.meta().tensors[source].scheme.empty();
  });
}

Status Conversion::choose_types() {
  const Type* wanted = nullptr;
  if (!request_.type.empty()) {
    wanted = find_type(request_.type);
    if (wanted == nullptr || (!gguf_ && wanted->num == 0))
      return invalid("--type " + request_.type + " is not one that " + request_.to + " is written in: " + type_names(gguf_));
  }
  std::map<const Type*, std::uint64_t> bytes;
  std::map<std::uint64_t, std::vector<std::string>> too_short;  // by the length of their rows
  std::uint64_t decoded = 0;
  for (const Transcript::Tensor& tensor : transcript_.tensors) {
    const std::uint64_t columns = static_cast<std::uint64_t>(tensor.shape.back());
    const bool f32 = gguf_ && (tensor.small || always_f32(tensor.name));
    const Type* type = f32 ? &type_of(MEKIK_F32) : wanted != nullptr ? wanted : &own_type(tensor);
    MEKIK_TRY(chosen, encoder(*type));
    const Encoder* use = chosen;
    if (!use->fits(columns)) {
      MEKIK_TRY(f16, encoder(type_of(MEKIK_F16)));
      too_short[columns].push_back(mekik::quoted(tensor.name));
      use = f16;
    }
    decoded += !f32 && wanted == nullptr && in_blocks(tensor) ? 1 : 0;
    const std::uint64_t size = product(tensor.shape) / columns * use->row_bytes(columns);
    chosen_.push_back({&tensor, use, size});
    bytes[&use->type()] += size;
    report.bytes += size;
  }
  for (const auto& [columns, names] : too_short)
    report.notes.push_back((names.size() == 1 ? "tensor " + names[0] + " has"
                                              : std::to_string(names.size()) + " tensors (the first is " + names[0] + ") have") +
                           " rows of " + std::to_string(columns) + " values, which " + wanted->name + " cannot hold; written as f16");
  if (decoded > 0)
    report.notes.push_back(std::to_string(decoded) + " tensors are stored in blocks, which " + request_.to +
                           " would not take as they are; written as f32, or give --type");
  report.tensors = chosen_.size();
  main_ = std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
  return {};
}

Status Conversion::write_values(Values& values, const Chosen& chosen, OutFile& out) {
  const std::uint64_t columns = static_cast<std::uint64_t>(chosen.tensor->shape.back()), rows = product(chosen.tensor->shape) / columns;
  const std::uint64_t panel = std::max<std::uint64_t>(1, kPanelFloats / columns);
  std::vector<float> decoded(std::min(panel, rows) * columns);
  std::vector<std::uint8_t> encoded(std::min(panel, rows) * chosen.encoder->row_bytes(columns));
  for (std::uint64_t row = 0; row < rows; row += panel) {
    const std::uint64_t count = std::min(panel, rows - row);
    if (request_.stopped && request_.stopped()) return fail(Code::cancelled, "stopped; nothing was written");
    MEKIK_CHECK_OK(values.rows(*chosen.tensor, row, count, decoded.data()).in("tensor " + mekik::quoted(chosen.tensor->name)));
    MEKIK_CHECK_OK(chosen.encoder->encode(decoded.data(), count, columns, encoded.data()));
    MEKIK_CHECK_OK(out.write(encoded.data(), count * chosen.encoder->row_bytes(columns)));
  }
  return {};
}

Result<GgufKeys> Conversion::keys() {
  GgufKeys out;
  out.text("general.architecture", transcript_.architecture);
  out.text("general.type", "model");
  const fs::path path = fs::path{file_.meta().path}.lexically_normal();
  out.text("general.name", path.has_filename() ? path.filename().string() : path.parent_path().filename().string());
  out.u32("general.file_type", main_->file);
  out.u32("general.quantization_version", 2);
  for (const auto& member : transcript_.config)
    if (member.key() != "general.architecture") MEKIK_CHECK_OK(out.json(std::string_view{member.key()}, member.value()));
  MEKIK_TRY(tokenizer, file_.tokenizer());
  if (tokenizer.is_null()) no_tokenizer(out, report.notes);
  else MEKIK_CHECK_OK(tokenizer_to_gguf(tokenizer, transcript_.program.vocab, out, report.notes));
  if (const auto source = file_.chat_template()) out.text("tokenizer.chat_template", *source);
  else if (source.status().code != Code::invalid) return source.status();
  return out;
}

Status Conversion::write_gguf(const fs::path& path) {
  MEKIK_TRY(head, keys());
  std::vector<GgufTensor> tensors;
  for (const Chosen& chosen : chosen_)
    tensors.push_back({chosen.tensor->name, chosen.tensor->shape, chosen.encoder->type().number, chosen.bytes});
  MEKIK_TRY(store, weights::Store::open(registry_, file_, transcript_.program, "f32"));
  Values values{transcript_, *store};
  MEKIK_TRY(out, OutFile::create(path));
  MEKIK_CHECK_OK(write_gguf_head(out, head, tensors));
  for (const Chosen& chosen : chosen_) {
    MEKIK_CHECK_OK(write_values(values, chosen, out));
    MEKIK_CHECK_OK(out.zeros((kGgufAlignment - chosen.bytes % kGgufAlignment) % kGgufAlignment));
  }
  return out.close();
}

Status Conversion::write_shard(Values& values, const std::vector<Chosen>& chosen, const fs::path& path) {
  json::object header{{"__metadata__", json::object{{"format", "pt"}}}};
  std::uint64_t at = 0;
  for (const Chosen& one : chosen) {
    header[fs::path{one.tensor->name}.filename().string()] =
        json::object{{"dtype", one.encoder->type().dtype},
                     {"shape", json::array(one.tensor->shape.begin(), one.tensor->shape.end())},
                     {"data_offsets", json::array{at, at + one.bytes}}};
    at += one.bytes;
  }
  std::string text = json::serialize(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::uint8_t length[8];
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<std::uint8_t>(text.size() >> (8 * i));
  MEKIK_TRY(out, OutFile::create(path));
  MEKIK_CHECK_OK(out.write(length, sizeof length));
  MEKIK_CHECK_OK(out.write(text.data(), text.size()));
  for (const Chosen& one : chosen) MEKIK_CHECK_OK(write_values(values, one, out));
  return out.close();
}

// The parts of a sentence-transformers model by their folders: "1_Pooling" is a Pooling.
json::array modules(const std::set<std::string>& parts) {
  json::array out{json::object{{"idx", 0}, {"name", "0"}, {"path", ""}, {"type", "sentence_transformers.models.Transformer"}}};
  for (const std::string& part : parts)
    out.push_back(json::object{{"idx", out.size()},
                               {"name", std::to_string(out.size())},
                               {"path", part},
                               {"type", "sentence_transformers.models." + part.substr(part.find('_') + 1)}});
  return out;
}

Status write_text(const fs::path& path, const std::string& text) {
  MEKIK_TRY(out, OutFile::create(path));
  MEKIK_CHECK_OK(out.write(text.data(), text.size()));
  return out.close();
}

Status Conversion::write_texts(const fs::path& folder) {
  json::object config = transcript_.config;
  config["torch_dtype"] = main_->num == MEKIK_F16 ? "float16" : main_->num == MEKIK_BF16 ? "bfloat16" : "float32";
  MEKIK_TRY(tokenizer, file_.tokenizer());
  std::map<std::string, std::string> files;
  if (tokenizer.is_null()) report.notes.push_back("the model has no tokenizer, so the folder has none");
  else MEKIK_CHECK_OK(tokenizer_to_files(tokenizer, config, files, report.notes));
  if (const auto source = file_.chat_template()) files["chat_template.jinja"] = *source;
  else if (source.status().code != Code::invalid) return source.status();
  files["config.json"] = indented(config) + "\n";
  std::set<std::string> parts;
  for (const auto& [name, values] : transcript_.files) {
    files[name] = indented(values) + "\n";
    parts.insert(fs::path{name}.parent_path().string());
  }
  if (!parts.empty()) files["modules.json"] = indented(modules(parts)) + "\n";
  for (const std::string& part : parts) fs::create_directories(folder / part);
  for (const auto& [name, text] : files) MEKIK_CHECK_OK(write_text(folder / name, text));
  return {};
}

// Tensors of folders of their own: "2_Dense/linear.weight" is linear.weight of 2_Dense/model.safetensors.
Status Conversion::write_parts(Values& values, const std::vector<Chosen>& chosen, const fs::path& folder) {
  std::map<fs::path, std::vector<Chosen>> parts;
  for (const Chosen& one : chosen) parts[fs::path{one.tensor->name}.parent_path()].push_back(one);
  for (const auto& [part, own] : parts) {
    fs::create_directories(folder / part);
    MEKIK_CHECK_OK(write_shard(values, own, folder / part / "model.safetensors"));
  }
  return {};
}

Status Conversion::write_folder(const fs::path& folder) {
  MEKIK_CHECK_OK(write_texts(folder));
  std::vector<std::vector<Chosen>> shards(1);
  std::uint64_t in_shard = 0;
  std::vector<Chosen> apart;
  for (const Chosen& chosen : chosen_) {
    if (chosen.tensor->name.find('/') != std::string::npos) {
      apart.push_back(chosen);
      continue;
    }
    if (in_shard > 0 && in_shard + chosen.bytes > request_.shard_bytes) {
      shards.emplace_back();
      in_shard = 0;
    }
    shards.back().push_back(chosen);
    in_shard += chosen.bytes;
  }
  MEKIK_TRY(store, weights::Store::open(registry_, file_, transcript_.program, "f32"));
  Values values{transcript_, *store};
  MEKIK_CHECK_OK(write_parts(values, apart, folder));
  if (shards.size() == 1) return write_shard(values, shards[0], folder / "model.safetensors");
  json::object map;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    for (const Chosen& chosen : shards[i]) map[chosen.tensor->name] = name;
    MEKIK_CHECK_OK(write_shard(values, shards[i], folder / name));
  }
  const json::object index{{"metadata", json::object{{"total_size", report.bytes}}}, {"weight_map", map}};
  return write_text(folder / "model.safetensors.index.json", indented(index) + "\n");
}

}  // namespace

Result<Report> convert(plugin::Registry& registry, const program::Pages& pages, const weights::ModelFile& file, const Request& request) {
  const std::string format = request.to == "gguf" ? "gguf" : "hf";
  if (file.meta().format == format)
    return invalid(file.meta().path + ": is " + request.to + " already" + (format == "gguf" ? "" : " (a folder of safetensors)"));
  std::error_code error;
  if (fs::exists(request.out, error)) return invalid(request.out.string() + ": is there already; name another place, or remove it first");
  const program::ReadVector read = [&](std::uint32_t tensor) -> Result<std::vector<float>> {
    MEKIK_TRY(source, weights::Source::open(registry, file, tensor, 1));
    std::vector<float> values(source->n_rows() * source->k());
    MEKIK_CHECK_OK(source->decode(0, source->n_rows(), values.data()));
    return values;
  };
  MEKIK_TRY(transcript, pages.transcribe(file.meta(), format, read, request.page));
  const std::vector<std::string> notes = transcript.notes;
  Conversion conversion{registry, file, request, std::move(transcript)};
  conversion.report.notes = notes;
  MEKIK_CHECK_OK(conversion.choose_types());
  MEKIK_TRY(place, Place::begin(request.out, format == "hf"));
  MEKIK_CHECK_OK(format == "gguf" ? conversion.write_gguf(place.path()) : conversion.write_folder(place.path()));
  MEKIK_CHECK_OK(place.finish());
  return std::move(conversion.report);
}

}  // namespace mekik::convert
