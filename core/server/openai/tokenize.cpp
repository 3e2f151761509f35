// POST /tokenize and /detokenize, as vLLM has them.
#include "base/text.hpp"
#include "server/openai/messages.hpp"
#include "server/openai/prepare.hpp"

namespace mekik::server::openai {

namespace {

MaybeError refuse_rest(const Fields& fields, unsigned kind) {
  if (const json::object rest = fields.rest(); !rest.empty()) return unknown_field(rest.begin()->key(), known_fields(kind));
  return std::nullopt;
}

json::object token_list(const Served& served, const std::vector<std::int32_t>& tokens, bool with_texts) {
  json::object out;
  out["count"] = tokens.size();
  out["max_model_len"] = served.context;
  json::array ids, texts;
  for (const std::int32_t id : tokens) {
    ids.emplace_back(id);
    if (with_texts) texts.emplace_back(utf8_replace_invalid(served.tokenizer->token(id)));
  }
  out["tokens"] = std::move(ids);
  out["token_strs"] = nullptr;
  if (with_texts) out["token_strs"] = std::move(texts);
  return out;
}

ApiError no_tokenizer(const Served& served) {
  return {400, "this model has no tokenizer: " + served.tokenizer_error, "model", "no_tokenizer", {}};
}

}  // namespace

MaybeError run_tokenize(const Input& input, json::object& out) {
  MaybeError error;
  const auto body = parse_body(input.body, input.max_bytes, error);
  if (!body) return error;
  Fields fields{*body};
  const Served* served = find_model(input.models, fields, error);
  if (served == nullptr) return error;
  if (served->tokenizer == nullptr) return no_tokenizer(*served);
  const auto prompt = fields.text("prompt");
  const bool add_special = fields.boolean("add_special_tokens", true), texts = fields.boolean("return_token_strs", false);
  const bool chats = fields.get("messages") != nullptr;
  std::vector<std::string> warnings;
  std::string logged;
  ChatFields chat;
  if (chats) chat = read_chat_fields(fields, warnings);
  if (prompt.has_value() == chats) fields.fail("prompt", "give either prompt or messages");
  fields.apply_policies(kTokenize, warnings, logged);
  if (fields.error()) return fields.error();
  if ((error = refuse_rest(fields, kTokenize))) return error;
  std::vector<std::int32_t> tokens;
  if (chats) {
    if ((error = render_chat(chat, *served, tokens, warnings))) return error;
  } else {
    tokens = served->tokenizer->encode(*prompt, add_special, true);
  }
  out = token_list(*served, tokens, texts);
  if (!warnings.empty()) out["warnings"] = json::array(warnings.begin(), warnings.end());
  return std::nullopt;
}

MaybeError run_detokenize(const Input& input, json::object& out) {
  MaybeError error;
  const auto body = parse_body(input.body, input.max_bytes, error);
  if (!body) return error;
  Fields fields{*body};
  const Served* served = find_model(input.models, fields, error);
  if (served == nullptr) return error;
  if (served->tokenizer == nullptr) return no_tokenizer(*served);
  const json::array* ids = fields.array("tokens");
  std::vector<std::int32_t> tokens;
  if (ids == nullptr) fields.fail("tokens", "is missing");
  else if (!read_tokens(*ids, std::min(served->vocab, served->tokenizer->size()), tokens))
    fields.fail("tokens", "must be token ids from 0 to " + std::to_string(served->vocab - 1));
  if (fields.error()) return fields.error();
  if ((error = refuse_rest(fields, kDetokenize))) return error;
  out = json::object{{"prompt", utf8_replace_invalid(served->tokenizer->decode(tokens, true))}};
  return std::nullopt;
}

}  // namespace mekik::server::openai
