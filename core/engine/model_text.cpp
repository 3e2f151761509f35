#include "engine/model_text.hpp"

namespace mekik::engine {

Result<ModelText> make_text(json::value metadata, std::optional<std::string> chat_template) {
  ModelText out;
  if (metadata.is_null()) {
    out.tokenizer_status = unsupported("the model file has no tokenizer; give tokens instead of text");
  } else {
    MEKIK_TRY(tokenizer, text::Tokenizer::create(metadata));
    out.tokenizer = std::move(tokenizer);
    const json::value* pair = json::find(metadata, "tokenizer.chat_template.rerank");
    if (pair != nullptr && pair->is_string()) out.pair_template = std::string_view{pair->get_string()};
  }
  out.has_template = chat_template.has_value();
  if (!out.has_template) {
    out.template_status = invalid("the model has no chat template, so it cannot chat; give it plain text instead (/v1/completions, --raw)");
    return out;
  }
  auto compiled = text::ChatTemplate::compile(*chat_template);
  if (compiled) out.chat_template.emplace(std::move(*compiled));
  else out.template_status = std::move(compiled.status()).in("the model's chat template cannot be used");
  return out;
}

}  // namespace mekik::engine
