// POST /v1/completions: the body.
#include "base/text.hpp"
#include "server/limits.hpp"
#include "server/openai/prepare.hpp"

namespace mekik::server::openai {

namespace {

constexpr std::uint32_t kDefaultMaxTokens = 16;  // OpenAI's

struct Prompt {
  std::vector<std::int32_t> tokens;
  Echo echo;
};

// The text of a prompt is wholly the client's, so special tokens in it are recognised, as in other servers.
MaybeError from_text(const Served& served, std::string_view text, Prompt& out) {
  if (served.tokenizer == nullptr)
    return bad_field("prompt", "prompt: this model has no tokenizer, so the prompt must be token ids: " + served.tokenizer_error);
  if (MaybeError error = check_length(served, text)) return error;
  out.tokens = served.tokenizer->encode(text, true, true);
  if (out.tokens.empty() && served.tokenizer->bos() >= 0) out.tokens.push_back(served.tokenizer->bos());
  if (out.tokens.empty()) return bad_field("prompt", "prompt: is empty, and this model has no BOS token to begin from");
  out.echo.text = text;
  const std::int32_t bos = served.tokenizer->bos();
  out.echo.hide_first =
      bos >= 0 && out.tokens.front() == bos && text.substr(0, served.tokenizer->token(bos).size()) != served.tokenizer->token(bos);
  return std::nullopt;
}

MaybeError from_tokens(const Served& served, const json::array& ids, Prompt& out) {
  if (ids.empty() || !read_tokens(ids, served.vocab, out.tokens))
    return bad_field("prompt", "prompt: token ids must be integers from 0 to " + std::to_string(served.vocab - 1) + ", at least one");
  if (served.tokenizer != nullptr) out.echo.text = utf8_replace_invalid(served.tokenizer->decode(out.tokens, true));
  return std::nullopt;
}

MaybeError read_prompt(const json::value& value, const Served& served, const Input& input, std::vector<Prompt>& out) {
  const auto add = [&](const json::value& one) -> MaybeError {
    Prompt prompt;
    MaybeError error = check_client(input);
    if (error) return error;
    if (one.is_string()) error = from_text(served, one.get_string(), prompt);
    else if (one.is_array()) error = from_tokens(served, one.get_array(), prompt);
    else error = bad_field("prompt", "prompt: must be a string, an array of strings, an array of token ids or an array of those");
    if (!error) out.push_back(std::move(prompt));
    return error;
  };
  const json::array* list = value.if_array();
  if (list == nullptr || list->empty() || list->front().is_number()) return add(value);
  if (list->size() > kMaxChoices) return bad_field("prompt", "prompt: at most " + std::to_string(kMaxChoices) + " prompts are allowed");
  for (const json::value& one : *list)
    if (MaybeError error = add(one)) return error;
  return std::nullopt;
}

void read_fields(Fields& fields, engine::Request& request, bool& echo, bool& asked) {
  echo = fields.boolean("echo", false);
  const auto limit = fields.integer("max_tokens", echo ? 0 : 1, 1 << 30);
  asked = limit.has_value();
  request.max_tokens = static_cast<std::uint32_t>(limit.value_or(kDefaultMaxTokens));
  // OpenAI's number; `true` is what users of the chat API try.
  const auto top = fields.integer("logprobs", 0, kMaxLogprobs);
  if (top) request.logprobs = static_cast<std::int32_t>(*top);
  request.score_prompt = echo && (top.has_value() || request.max_tokens == 0);
}

}  // namespace

MaybeError prepare_completion(const Input& input, Prepared& out) {
  MaybeError error;
  const auto body = parse_body(input.body, input.max_bytes, error);
  if (!body) return error;
  Fields fields{*body};
  out.served = find_model(input.models, program::Task::generate, fields, error);
  if (out.served == nullptr) return error;
  engine::Request request;
  AnswerOptions options;
  request.id = std::string{input.id};
  options.id = "cmpl-" + request.id;
  options.created = input.now;
  bool echo = false, asked = false;
  read_fields(fields, request, echo, asked);
  const json::value* prompt = fields.get("prompt");
  if (prompt == nullptr) fields.fail("prompt", "is missing");
  const auto best_of = fields.integer("best_of", 1, kMaxAnswers);
  if ((error = read_common(fields, kCompletion, input, *out.served, request, options, out))) return error;
  if (best_of && *best_of != request.n) return bad_field("best_of", "best_of: only the value of n is supported");
  std::vector<Prompt> prompts;
  if ((error = read_prompt(*prompt, *out.served, input, prompts))) return error;
  if (prompts.size() > out.served->max_queue)
    return bad_field("prompt", "prompt: " + std::to_string(prompts.size()) + " prompts at once, but the queue of this server holds " +
                                   std::to_string(out.served->max_queue) + " (server.max_queue)");
  if (prompts.size() * request.n > kMaxChoices) return bad_field("n", "n: prompts times n may be at most " + std::to_string(kMaxChoices));
  std::vector<Echo> echoes;
  for (Prompt& one : prompts) {
    out.requests.push_back(request);
    out.requests.back().prompt = std::move(one.tokens);
    if ((error = fit_context(*out.served, out.requests.back(), asked, options.warnings))) return error;
    echoes.push_back(std::move(one.echo));
  }
  options.answers_per_prompt = request.n;
  options.choices = static_cast<std::uint32_t>(prompts.size()) * request.n;
  options.logprobs = request.logprobs;
  out.answer = make_completion_answer(std::move(options), echo, std::move(echoes));
  return std::nullopt;
}

}  // namespace mekik::server::openai
