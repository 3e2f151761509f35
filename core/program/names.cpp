// Names: placeholders, prefixes, and looking things up in a model's metadata.
#include <algorithm>
#include <filesystem>

#include "base/text.hpp"
#include "program/model_reader.hpp"

namespace mekik::program {

namespace {

// Keys that say nothing about how a model computes, or that only training uses.
constexpr const char* kHarmless[] = {"general.*",
                                     "tokenizer.*",
                                     "split.*",
                                     "quantize.*",
                                     "GGUF.*",
                                     "*.vocab_size",
                                     "adapter.*",
                                     "_name_or_path",
                                     "architectures",
                                     "model_type",
                                     "torch_dtype",
                                     "dtype",
                                     "transformers_version",
                                     "transformers.js_config*",
                                     "*bos_token_id",
                                     "*eos_token_id",
                                     "*pad_token_id",
                                     "*sep_token_id",
                                     "*cls_token_id",
                                     "*mask_token_id",
                                     "unk_token_id",
                                     "decoder_start_token_id",
                                     "use_cache",
                                     "initializer_*",
                                     "init_std",
                                     "*dropout*",
                                     "*_pdrop",
                                     "tie_word_embeddings",
                                     "tie_encoder_decoder",
                                     "pretraining_tp",
                                     "quantization_config",
                                     "auto_map",
                                     "attention_bias",
                                     "mlp_bias",
                                     "use_bias",
                                     "use_qkv_bias",
                                     "bias",
                                     "attn_implementation",
                                     "_attn_implementation*",
                                     "output_attentions",
                                     "output_hidden_states",
                                     "return_dict*",
                                     "output_router_logits",
                                     "router_aux_loss_coef",
                                     "router_jitter_noise",
                                     "aux_loss_alpha",
                                     "seq_aux",
                                     "id2label",
                                     "label2id",
                                     "num_labels",
                                     "problem_type",
                                     "task_specific_params",
                                     "summary_*",
                                     "is_decoder",
                                     "is_encoder_decoder",
                                     "add_cross_attention",
                                     "cross_attention_hidden_size",
                                     "chunk_size_feed_forward",
                                     "gradient_checkpointing",
                                     "unsloth_*",
                                     "reorder_and_upcast_attn",
                                     "n_ctx",
                                     "rescale_prenorm_residual",
                                     "residual_in_fp32",
                                     "time_step_min",
                                     "time_step_max",
                                     "time_step_floor",
                                     "time_step_init_scheme",
                                     "time_step_scale",
                                     "chunk_size",
                                     "ep_size",
                                     "num_nextn_predict_layers"};

bool harmless(const std::string& path) {
  const std::string_view leaf = std::string_view{path}.substr(path.rfind('.') == std::string::npos ? 0 : path.rfind('.') + 1);
  return std::any_of(std::begin(kHarmless), std::end(kHarmless),
                     [&](const char* glob) { return glob_match(glob, path) || glob_match(glob, leaf); });
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

}  // namespace

std::string source_place(const config::Origin& at) {
  if (!at.source) return "the page";
  return std::filesystem::path{at.source->name}.filename().string() + (at.line != 0 ? ":" + std::to_string(at.line) : std::string{});
}

ModelReader::ModelReader(const PageSpec& page, const ModelMeta& meta, const BuildOptions& options)
    : page_{page}, meta_{meta}, options_{options}, format_{format_index(meta.format)} {
  if (format_ == kNoFormat) wrong(page.origin, "no page describes models of format " + mekik::quoted(meta.format));
  used_.assign(meta.tensors.size(), false);
  for (std::uint32_t i = 0; i < meta.tensors.size(); ++i) tensor_names_.emplace(meta.tensors[i].name, i);
  if (const json::value* arch = json::find(meta.config, "general.architecture"); arch != nullptr && arch->is_string())
    arch_ = arch->get_string().c_str();
  settled_.assign(page.prefixes.size(), -1);
  settle_prefixes();
}

std::string ModelReader::replace_placeholders(const NameText& name, const std::string& text, std::optional<std::int64_t> layer,
                                              const std::string& expert) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find('{', at);
    out += text.substr(at, open - at);
    if (open == std::string::npos) break;
    const std::size_t close = text.find('}', open);
    if (close == std::string::npos) wrong(name.origin, "a { without its } in " + mekik::quoted(text));
    const std::string inside = text.substr(open + 1, close - open - 1);
    at = close + 1;
    if (inside == "e") {
      out += expert;
      continue;
    }
    const bool same = text == name.text;  // prefixes move the columns
    const Expression e = read_placeholder(inside, name.origin, name.exact && same, same ? static_cast<std::uint32_t>(open + 1) : 0);
    Scope scope;
    scope.layer = layer;
    const Datum value = evaluate(e, scope);
    if (value.type != Datum::Type::integer && value.type != Datum::Type::text)
      wrong(name.origin, "{" + inside + "} in a name must be a whole number or a text, not " + type_name(value.type));
    out += to_text(value);
  }
  return out;
}

std::vector<std::string> ModelReader::spell(const NameText& name, std::optional<std::int64_t> layer, const std::string& expert) {
  std::vector<std::string> out{name.text};
  replace_all(out[0], "{arch}", arch_);
  for (std::size_t p = 0; p < page_.prefixes.size(); ++p) {
    const auto& [symbol, texts] = page_.prefixes[p];
    const std::string mark = "{" + symbol + "}";
    if (name.text.find(mark) == std::string::npos) continue;
    std::vector<std::string> more;
    for (const std::string& text : out)
      for (std::size_t i = 0; i < texts.size(); ++i) {
        if (settled_[p] >= 0 && settled_[p] != static_cast<int>(i)) continue;
        more.push_back(text);
        replace_all(more.back(), mark, texts[i]);
      }
    out = std::move(more);
  }
  for (std::string& text : out)
    if (text.find('{') != std::string::npos) text = replace_placeholders(name, text, layer, expert);
  return out;
}

std::string ModelReader::spell_in(std::size_t format, const NameText& name, std::optional<std::int64_t> layer, const std::string& expert) {
  std::string out = name.text;
  const std::vector<std::string>& own = page_.matches[format];
  replace_all(out, "{arch}", !page_.written[format].empty() ? page_.written[format] : own.empty() ? page_.name : own[0]);
  for (const auto& [symbol, texts] : page_.prefixes) replace_all(out, "{" + symbol + "}", texts[0]);
  return out.find('{') == std::string::npos ? out : replace_placeholders(name, out, layer, expert);
}

std::vector<std::string> ModelReader::glob(const NameText& name, bool evaluate_placeholders) {
  if (evaluate_placeholders) return spell(name, std::nullopt, "*");
  NameText simple = name;
  for (std::size_t at = simple.text.find('{'); at != std::string::npos; at = simple.text.find('{', at + 1)) {
    const std::size_t close = simple.text.find('}', at);
    if (close == std::string::npos) break;
    const std::string inside = simple.text.substr(at + 1, close - at - 1);
    const bool prefix = std::any_of(page_.prefixes.begin(), page_.prefixes.end(), [&](const auto& p) { return p.first == inside; });
    if (!prefix && inside != "arch") simple.text.replace(at, close - at + 1, "*");
  }
  return spell(simple, std::nullopt, "*");
}

// Each prefix is settled by the first row of the page, in its order, that resolves in this model.
void ModelReader::settle_prefixes() {
  for (std::size_t p = 0; p < page_.prefixes.size(); ++p) {
    const std::vector<std::string>& texts = page_.prefixes[p].second;
    const std::string mark = "{" + page_.prefixes[p].first + "}";
    if (texts.size() == 1) settled_[p] = 0;
    const auto try_name = [&](const NameText& name, bool tensor) {
      if (settled_[p] >= 0 || name.text.find(mark) == std::string::npos) return;
      for (std::size_t i = 0; i < texts.size() && settled_[p] < 0; ++i) {
        settled_[p] = static_cast<int>(i);
        NameText plain = name;
        replace_all(plain.text, "{l}", "0");
        replace_all(plain.text, "{e}", "0");
        bool found = false;
        if (std::string rest = plain.text;
            (replace_all(rest, mark, ""), replace_all(rest, "{arch}", ""), rest.find('{') == std::string::npos))
          for (const std::string& spelled : spell(plain, 0, "0"))
            found = found || (tensor ? tensor_index(spelled).has_value() : config_value(spelled) != nullptr);
        if (!found) settled_[p] = -1;
      }
    };
    for (const auto& [unused, row] : page_.hparams)
      for (const NameText& name : row.names[format_]) try_name(name, false);
    for (const auto& [unused, row] : page_.weights)
      for (const WeightSource& source : row.sources[format_]) {
        try_name(source.from, true);
        for (const WeightSource& part : source.join) try_name(part.from, true);
      }
  }
}

// The value of a key, null where the file says null; nothing where it is left out.
const json::value* ModelReader::config_node(const std::string& name) {
  const json::value* node = &meta_.config;
  std::string path = name;
  if (const std::size_t colon = name.rfind(':'); colon != std::string::npos && format_ == format_index("hf")) {
    const std::string file = name.substr(0, colon);
    path = name.substr(colon + 1);
    node = &beside(file);
  }
  if (meta_.format == "gguf") {
    node = json::find(*node, path);
  } else {
    for (const std::string& part : split(path, '.'))
      if (node != nullptr) node = json::find(*node, part);
  }
  return node;
}

// Another JSON file of the model's folder, or null.
const json::value& ModelReader::beside(const std::string& file) {
  auto found = files_.find(file);
  if (found == files_.end()) found = files_.emplace(file, meta_.file ? meta_.file(file) : json::value{}).first;
  return found->second;
}

const json::value* ModelReader::config_value(const std::string& name) {
  const json::value* node = config_node(name);
  return node == nullptr || node->is_null() ? nullptr : node;
}

// The keys under a name: an object of config.json, or all flat keys that begin with it. Empty: there is none.
std::vector<std::pair<std::string, Datum>> ModelReader::config_group(const std::string& name) {
  std::vector<std::pair<std::string, Datum>> out;
  const auto add = [&](std::string key, const json::value& value) {
    Datum datum;
    if (value.is_null()) return;
    if (const std::string why = from_json(value, datum); !why.empty())
      wrong({}, "metadata key " + mekik::quoted(name + "." + key) + " " + why);
    out.emplace_back(std::move(key), std::move(datum));
  };
  const auto each = [&](const json::value& object, std::string_view strip) {
    if (!object.is_object()) return;
    for (const auto& member : object.get_object()) {
      const std::string key{member.key().data(), member.key().size()};
      if (key.compare(0, strip.size(), strip) == 0) add(key.substr(strip.size()), member.value());
    }
  };
  if (meta_.format == "gguf") each(meta_.config, name + ".");
  else if (const json::value* group = config_value(name)) {
    if (!group->is_object()) wrong({}, "metadata key " + mekik::quoted(name) + " is " + json::serialize(*group) + ", not an object");
    each(*group, "");
  }
  return out;
}

std::optional<std::uint32_t> ModelReader::tensor_index(const std::string& name) const {
  const auto found = tensor_names_.find(name);
  if (found == tensor_names_.end()) return std::nullopt;
  return found->second;
}

std::string ModelReader::close_tensor(const std::string& name) const {
  std::vector<std::string> names;
  const std::string first_part = name.substr(0, name.find('.'));
  for (const TensorInfo& tensor : meta_.tensors)
    if (tensor.name.compare(0, first_part.size(), first_part) == 0) names.push_back(tensor.name);
  const auto near = closest(name, names);
  return near ? "close: \"" + *near + "\"" : std::string{};
}

void ModelReader::mention(const std::string& path, const json::value& value, const std::vector<std::string>& named,
                          std::vector<std::string>& out) {
  if (harmless(path)) return;
  bool entered = false;
  for (const std::string& name : named) {
    if (name == path || path.compare(0, name.size() + 1, name + ".") == 0) return;
    entered = entered || name.compare(0, path.size() + 1, path + ".") == 0;
  }
  if (!entered || !value.is_object()) {
    out.push_back(path);
    return;
  }
  for (const auto& member : value.get_object())
    mention(path + "." + std::string{member.key().data(), member.key().size()}, member.value(), named, out);
}

// Keys of the metadata that no row of the page names, that may matter, and of which the page does not say that they do not.
std::vector<std::string> ModelReader::unknown_config_keys() {
  std::vector<std::string> named, out;
  const auto collect = [&](const std::vector<NameText>& names) {
    for (const NameText& name : names)
      for (std::string& spelled : spell(name, 0)) named.push_back(std::move(spelled));
  };
  for (const auto& [symbol, row] : page_.hparams) collect(row.names[format_]);
  for (const auto& [symbol, row] : page_.ropes)
    for (const auto& [key, value] : row.keys) collect(value.names[format_]);
  if (meta_.config.is_object())
    for (const auto& member : meta_.config.get_object())
      if (!member.value().is_null()) mention(std::string{member.key().data(), member.key().size()}, member.value(), named, out);
  for (const NameText& name : page_.ignore)
    for (const std::string& pattern : glob(name, true))
      std::erase_if(out, [&](const std::string& key) { return glob_match(pattern, key); });
  return out;
}

}  // namespace mekik::program
