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
  if ((error = read_common(fields, kChat, *out.served, request, options, out))) return error;
  if ((error = render_chat(chat, *out.served, request.prompt, options.warnings))) return error;
  if ((error = fit_context(*out.served, request, asked, options.warnings))) return error;
  options.choices = options.answers_per_prompt = request.n;
  options.logprobs = request.logprobs;
  out.answer = make_chat_answer(std::move(options));
  out.requests.push_back(std::move(request));
  return std::nullopt;
}

}  // namespace mekik::server::openai
