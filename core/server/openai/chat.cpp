// POST /v1/chat/completions: the body.
#include <algorithm>

#include "base/text.hpp"
#include "server/limits.hpp"
#include "server/openai/messages.hpp"
#include "server/openai/prepare.hpp"

namespace mekik::server::openai {

namespace {

void read_max_tokens(Fields& fields, const Served& served, engine::Request& request, bool& asked) {
  const auto limit = fields.integer("max_tokens", 1, 1 << 30), newer = fields.integer("max_completion_tokens", 1, 1 << 30);
  if (limit && newer && *limit != *newer) fields.fail("max_tokens", "differs from max_completion_tokens; give one of them");
  asked = limit || newer;
  request.max_tokens = asked ? static_cast<std::uint32_t>(newer ? *newer : *limit) : served.context;
}

void read_logprobs(Fields& fields, engine::Request& request) {
  const bool wanted = fields.boolean("logprobs", false);
  const auto top = fields.integer("top_logprobs", 0, kMaxLogprobs);
  if (top && !wanted) fields.fail("top_logprobs", "is only allowed with logprobs = true");
  if (wanted) request.logprobs = static_cast<std::int32_t>(top.value_or(0));
}

ChatOptions read_reasoning(Fields& fields) {
  ChatOptions out;
  out.shows_reasoning = fields.boolean("include_reasoning", true);
  out.parse.reasoning = fields.boolean("separate_reasoning", true);
  if (!out.shows_reasoning && !out.parse.reasoning)
    fields.fail("include_reasoning", "reasoning that is not separated cannot be left out; separate_reasoning must be true");
  return out;
}

}  // namespace

MaybeError prepare_chat(const Input& input, Prepared& out) {
  MaybeError error;
  const auto body = parse_body(input.body, input.max_bytes, error);
  if (!body) return error;
  Fields fields{*body};
  out.served = find_model(input.models, program::Task::generate, fields, error);
  if (out.served == nullptr) return error;
  engine::Request request;
  AnswerOptions options;
  request.id = std::string{input.id};
  options.id = "chatcmpl-" + request.id;
  options.created = input.now;
  bool asked = false;
  read_max_tokens(fields, *out.served, request, asked);
  read_logprobs(fields, request);
  ChatFields chat = read_chat_fields(fields, options.warnings);
  ChatOptions parse = read_reasoning(fields);
  if ((error = read_common(fields, kChat, input, *out.served, request, options, out))) return error;
  if ((error = render_chat(chat, *out.served, request.prompt, options.warnings, &parse.parse.start))) return error;
  if ((error = fit_context(*out.served, request, asked, options.warnings))) return error;
  options.choices = options.answers_per_prompt = request.n;
  options.logprobs = request.logprobs;
  parse.format = out.served->format;
  if (chat.calls) parse.tools = text::KnownTools{*chat.tools};
  parse.parse.calls = chat.calls;
  parse.parse.show_special = options.show_special;
  parse.one_call = chat.one_call;
  out.answer = make_chat_answer(std::move(options), std::move(parse));
  out.requests.push_back(std::move(request));
  return std::nullopt;
}

}  // namespace mekik::server::openai
