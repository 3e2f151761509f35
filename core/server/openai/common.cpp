// What chat and completions read alike.
#include <algorithm>
#include <limits>

#include "base/text.hpp"
#include "sample/chain.hpp"
#include "server/limits.hpp"
#include "server/openai/prepare.hpp"

namespace mekik::server::openai {

namespace {

void read_stop(Fields& fields, engine::Request& request) {
  const json::value* stop = fields.get("stop");
  if (stop == nullptr) return;
  const auto add = [&](const json::value& text) {
    if (!text.is_string() || text.get_string().empty() || text.get_string().size() > kMaxStopBytes)
      return fields.fail("stop", "each must be a string of 1 to " + std::to_string(kMaxStopBytes) + " bytes");
    request.stop.emplace_back(text.get_string());
  };
  if (!stop->is_array()) return add(*stop);
  if (stop->get_array().size() > kMaxStops) return fields.fail("stop", "at most " + std::to_string(kMaxStops) + " are allowed");
  for (const json::value& text : stop->get_array()) add(text);
}

void read_logit_bias(Fields& fields, std::uint32_t vocab) {
  const json::object* bias = fields.object("logit_bias");
  if (bias == nullptr) return;
  for (const auto& member : *bias) {
    const std::string_view key = member.key();
    const bool digits = !key.empty() && key.size() <= 9 && key.find_first_not_of("0123456789") == std::string_view::npos &&
                        (key.size() == 1 || key[0] != '0');
    if (!digits || std::stoul(std::string{key}) >= vocab)
      return fields.fail("logit_bias", "keys must be token ids from 0 to " + std::to_string(vocab - 1) + ", not " + mekik::quoted(key));
    const json::value& value = member.value();
    const double number = value.is_int64() ? static_cast<double>(value.get_int64()) : value.is_double() ? value.get_double() : 1e9;
    if (!(number >= -100 && number <= 100)) return fields.fail("logit_bias", "values must be numbers from -100 to 100");
  }
}

void read_seed(Fields& fields, engine::Request& request) {
  const json::value* seed = fields.get("seed");
  if (seed == nullptr) return;
  // Every integer of 64 bits is a seed of its own; negative ones, too.
  if (seed->is_uint64()) request.seed = seed->get_uint64();
  else if (seed->is_int64()) request.seed = static_cast<std::uint64_t>(seed->get_int64());
  else fields.fail("seed", "must be an integer from -9223372036854775808 to 18446744073709551615");
}

void read_stream(Fields& fields, AnswerOptions& options, Prepared& out) {
  out.stream = fields.boolean("stream", false);
  const json::object* stream_options = fields.object("stream_options");
  if (stream_options == nullptr) return;
  if (!out.stream) fields.fail("stream_options", "is only allowed with stream = true");
  Fields inner{*stream_options, "stream_options"};
  options.include_usage = inner.boolean("include_usage", false);
  if (inner.boolean("include_obfuscation", false)) inner.fail("include_obfuscation", "is not supported");
  if (const json::object rest = inner.rest(); !rest.empty())
    inner.fail(rest.begin()->key(), "unknown field; known are include_usage and include_obfuscation");
  if (inner.error()) fields.adopt(*inner.error());
}

MaybeError read_sampling(Fields& fields, unsigned kind, const Served& served, engine::Request& request) {
  json::object rest = fields.rest();
  if (const json::value* bias = fields.get("logit_bias")) rest["logit_bias"] = *bias;
  std::vector<std::string> unknown;
  auto sampling = sample::sampler_request(served.samplers, rest, unknown);
  if (!sampling.ok()) {
    ApiError error = from_status(sampling.status(), request.id);
    for (const auto& member : rest)  // the message names the field; OpenAI's clients also want it in `param`
      if (error.param.empty() && sampling.status().text.find(std::string_view{member.key()}) != std::string::npos)
        error.param = member.key();
    return error;
  }
  if (!unknown.empty()) {
    std::vector<std::string> known = known_fields(kind);
    for (const mekik_component* link : served.samplers)
      for (std::uint32_t i = 0; i < link->n_options; ++i)
        known.emplace_back(
            reinterpret_cast<const mekik_option*>(reinterpret_cast<const char*>(link->options) + i * link->option_size)->key);
    if (unknown.front() == "logit_bias") return bad_field("logit_bias", "logit_bias: no sampler of this pipeline takes it");
    return unknown_field(unknown.front(), known);
  }
  request.sampler_json = *sampling;
  return std::nullopt;
}

}  // namespace

const Served* find_model(const std::vector<Served>& models, Fields& fields, MaybeError& error) {
  const auto name = fields.text("model");
  if (fields.error()) {
    error = fields.error();
    return nullptr;
  }
  if (!name && models.size() == 1) return &models.front();
  std::vector<std::string> names;
  for (const Served& served : models) {
    if (name && served.name == *name) return &served;
    names.push_back(served.name);
  }
  if (!name) {
    error = bad_field("model", "model: this server has several models; name one of " + join(names, ", "));
    return nullptr;
  }
  // The name that was asked for is not repeated: it may be a path.
  error = ApiError{404, "there is no model of this name here; there is " + join(names, ", "), "model", "model_not_found", {}};
  return nullptr;
}

const Served* find_model(const std::vector<Served>& models, program::Task task, Fields& fields, MaybeError& error) {
  const Served* served = find_model(models, fields, error);
  if (served == nullptr || served->task == task) return served;
  const bool generates = served->task == program::Task::generate, embeds = served->task == program::Task::embed;
  error = ApiError{400,
                   std::string{"this model is run for "} +
                       (generates ? "text: /v1/chat/completions and /v1/completions"
                        : embeds  ? "embeddings: /v1/embeddings"
                                  : "scores: /v1/rerank") +
                       "; task = \"generate\", \"embed\" or \"score\" in [model] of its pipeline says for what",
                   "model",
                   "wrong_task",
                   {}};
  return nullptr;
}

// Whose request it is, and what it may share with others.
void read_owner(Fields& fields, const Input& input, engine::Request& request) {
  request.priority = static_cast<std::int32_t>(
      fields.integer("priority", std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()).value_or(0));
  request.tenant = input.tenant;
  request.salt = input.share_prefixes ? 0 : input.tenant;
  if (const std::optional<std::string> salt = fields.text("cache_salt"); salt && !salt->empty())
    request.salt = std::stoull(sha256_hex(std::to_string(request.salt) + " " + *salt).substr(0, 16), nullptr, 16) | 1;
}

MaybeError read_common(Fields& fields, unsigned kind, const Input& input, const Served& served, engine::Request& request,
                       AnswerOptions& options, Prepared& out) {
  options.model = served.name;
  options.tokenizer = served.tokenizer;
  read_stop(fields, request);
  read_seed(fields, request);
  read_stream(fields, options, out);
  read_logit_bias(fields, served.vocab);
  request.n = static_cast<std::uint32_t>(fields.integer("n", 1, kMaxAnswers).value_or(1));
  request.ignore_eos = fields.boolean("ignore_eos", false);
  request.show_special = !fields.boolean("skip_special_tokens", true);
  read_owner(fields, input, request);
  options.show_special = request.show_special;
  if (const json::array* tokens = fields.array("stop_token_ids"))
    if (tokens->size() > kMaxStops || !read_tokens(*tokens, served.vocab, request.stop_tokens))
      fields.fail("stop_token_ids", "must be at most " + std::to_string(kMaxStops) + " token ids below " + std::to_string(served.vocab));
  fields.apply_policies(kind, options.warnings, out.logged);
  if (fields.error()) return fields.error();
  return read_sampling(fields, kind, served, request);
}

MaybeError read_vector_fields(Fields& fields, unsigned kind, const Input& input, engine::Request& request, AnswerOptions& options,
                              Prepared& out) {
  request.vector = true;
  request.id = std::string{input.id};
  read_owner(fields, input, request);
  fields.apply_policies(kind, options.warnings, out.logged);
  if (fields.error()) return fields.error();
  if (const json::object rest = fields.rest(); !rest.empty()) return unknown_field(rest.begin()->key(), known_fields(kind));
  return std::nullopt;
}

bool read_tokens(const json::array& from, std::uint32_t vocab, std::vector<std::int32_t>& out) {
  out.reserve(from.size());
  for (const json::value& value : from) {
    if (!value.is_int64() || value.get_int64() < 0 || value.get_int64() >= vocab) return false;
    out.push_back(static_cast<std::int32_t>(value.get_int64()));
  }
  return true;
}

ApiError context_exceeded(const Served& served, std::size_t tokens, bool at_least) {
  return {400,
          "the context of this model is " + std::to_string(served.context) + " tokens, but the prompt has " +
              (at_least ? "at least " : "") + std::to_string(tokens) +
              (tokens == served.context ? ", which leaves no room for an answer" : "") + "; shorten it",
          "",
          "context_length_exceeded",
          {}};
}

MaybeError check_length(const Served& served, std::string_view text) {
  if (const std::size_t tokens = served.tokenizer->fewest_tokens(text); tokens > served.context)
    return context_exceeded(served, tokens, true);
  // Where a tokenizer may leave out any part of a text, there is still an end to what it is given.
  constexpr std::size_t kMostBytes = 1024;
  if (text.size() / kMostBytes <= served.context) return std::nullopt;
  return ApiError{400,
                  "the prompt has " + std::to_string(text.size()) + " bytes, more than " + std::to_string(kMostBytes) +
                      " for each of the " + std::to_string(served.context) + " tokens of this model's context; shorten it",
                  "",
                  "context_length_exceeded",
                  {}};
}

MaybeError check_client(const Input& input) {
  if (input.gone == nullptr || !*input.gone) return std::nullopt;
  return ApiError{499, "the client has left", "", "", {}};
}

MaybeError fit_context(const Served& served, engine::Request& request, bool asked, std::vector<std::string>& warnings) {
  const std::size_t prompt = request.prompt.size();
  const bool scores_only = request.max_tokens == 0 && request.score_prompt;
  if (prompt > served.context || (prompt == served.context && !scores_only)) return context_exceeded(served, prompt, false);
  const std::uint32_t room = served.context - static_cast<std::uint32_t>(prompt);
  if (request.max_tokens <= room) return std::nullopt;
  if (asked)
    warnings.push_back("the prompt has " + std::to_string(prompt) + " of the context's " + std::to_string(served.context) +
                       " tokens, so at most " + std::to_string(room) + " can follow instead of " + std::to_string(request.max_tokens));
  request.max_tokens = room;
  return std::nullopt;
}

}  // namespace mekik::server::openai
