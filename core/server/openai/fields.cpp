#include "server/openai/fields.hpp"

#include "base/text.hpp"
#include "server/limits.hpp"

namespace mekik::server::openai {

namespace {

constexpr unsigned kBoth = kChat | kCompletion, kVectors = kEmbeddings | kRerank, kAll = kBoth | kTokenize | kDetokenize | kVectors;
constexpr unsigned kTemplated = kChat | kTokenize;

constexpr FieldRow kRows[] = {
    {"model", kAll, Policy::honoured, "", ""},
    {"messages", kTemplated, Policy::honoured, "", ""},
    {"prompt", kCompletion | kTokenize, Policy::honoured, "", ""},
    {"max_tokens", kBoth, Policy::honoured, "", ""},
    {"max_completion_tokens", kChat, Policy::honoured, "", ""},
    {"n", kBoth, Policy::honoured, "", ""},
    {"best_of", kCompletion, Policy::honoured, "", ""},
    {"stop", kBoth, Policy::honoured, "", ""},
    {"stop_token_ids", kBoth, Policy::honoured, "", ""},
    {"seed", kBoth, Policy::honoured, "", ""},
    {"stream", kBoth, Policy::honoured, "", ""},
    {"stream_options", kBoth, Policy::honoured, "", ""},
    {"logprobs", kBoth, Policy::honoured, "", ""},
    {"top_logprobs", kChat, Policy::honoured, "", ""},
    {"logit_bias", kBoth, Policy::honoured, "", ""},
    {"echo", kCompletion, Policy::honoured, "", ""},
    {"ignore_eos", kBoth, Policy::honoured, "", ""},
    {"skip_special_tokens", kBoth, Policy::honoured, "", ""},
    {"priority", kBoth | kVectors, Policy::honoured, "", ""},
    {"cache_salt", kBoth | kVectors, Policy::honoured, "", ""},
    {"tools", kTemplated, Policy::honoured, "", ""},
    {"tool_choice", kTemplated, Policy::honoured, "", ""},
    {"parallel_tool_calls", kTemplated, Policy::honoured, "", ""},
    {"include_reasoning", kChat, Policy::honoured, "", ""},
    {"separate_reasoning", kChat, Policy::honoured, "", ""},
    {"chat_template_kwargs", kTemplated, Policy::honoured, "", ""},
    {"add_generation_prompt", kTemplated, Policy::honoured, "", ""},
    {"reasoning_effort", kTemplated, Policy::honoured, "", ""},
    {"add_special_tokens", kTokenize, Policy::honoured, "", ""},
    {"return_token_strs", kTokenize, Policy::honoured, "", ""},
    {"tokens", kDetokenize, Policy::honoured, "", ""},
    {"input", kEmbeddings, Policy::honoured, "", ""},
    {"encoding_format", kEmbeddings, Policy::honoured, "", ""},
    {"dimensions", kEmbeddings, Policy::honoured, "", ""},
    {"query", kRerank, Policy::honoured, "", ""},
    {"documents", kRerank, Policy::honoured, "", ""},
    {"top_n", kRerank, Policy::honoured, "", ""},
    {"return_documents", kRerank, Policy::honoured, "", ""},
    {"user", kBoth | kVectors, Policy::logged, "", ""},
    {"safety_identifier", kBoth, Policy::logged, "", ""},
    {"response_format", kBoth, Policy::only, R"({"type":"text"})", "answers that follow a schema are not supported yet"},
    {"store", kChat, Policy::only, "false", "answers are not stored here"},
    {"service_tier", kBoth, Policy::only, R"("auto" "default")", "there is only one tier of service"},
    {"modalities", kChat, Policy::only, R"(["text"])", "the answer can only be text"},
    {"include_stop_str_in_output", kBoth, Policy::only, "false", "the stop text is never shown"},
    {"suffix", kCompletion, Policy::only, R"("")", "inserting text before a suffix is not supported"},
    {"metadata", kBoth, Policy::warned, "", "metadata is not stored, since answers are not"},
    {"prompt_cache_key", kBoth, Policy::warned, "", "prompt_cache_key has no effect: prefixes are found by their content"},
    {"prompt_cache_retention", kBoth, Policy::warned, "", "prompt_cache_retention has no effect: the pipeline's cache decides"},
    {"prediction", kChat, Policy::refused, "", "predicted outputs are not supported"},
    {"audio", kChat, Policy::refused, "", "audio is not supported"},
    {"web_search_options", kChat, Policy::refused, "", "the server does not search the web"},
    {"verbosity", kChat, Policy::refused, "", "verbosity is not supported; say it in the messages"},
    {"functions", kChat, Policy::refused, "", "functions were replaced by tools"},
    {"function_call", kChat, Policy::refused, "", "function_call was replaced by tool_choice"},
    {"continue_final_message", kTemplated, Policy::refused, "", "continuing the last message is not supported; use /v1/completions"},
    {"chat_template", kTemplated, Policy::refused, "", "a template cannot come with a request; the model's is used"},
};

bool is_one_of(const json::value& value, const char* allowed) {
  for (const std::string& text : split(allowed, ' ')) {
    const auto parsed = json::parse(text);
    if (parsed.ok() && *parsed == value) return true;
  }
  return false;
}

}  // namespace

std::span<const FieldRow> field_rows() { return kRows; }

std::vector<std::string> known_fields(unsigned kind) {
  std::vector<std::string> names;
  for (const FieldRow& row : kRows)
    if ((row.kinds & kind) != 0) names.emplace_back(row.name);
  return names;
}

ApiError unknown_field(std::string_view name, const std::vector<std::string>& known) {
  std::string message = "unknown field " + mekik::quoted(name);
  if (std::find(known.begin(), known.end(), name) != known.end())
    return {400,
            std::string{name} + ": has no effect beside the other fields of this request; leave it out",
            std::string{name},
            "unused_field",
            {}};
  if (const auto near = closest(name, known)) message += "; did you mean " + *near + "?";
  else message += "; neither the server nor a sampler of this pipeline takes it";
  return {400, message, std::string{name.substr(0, 80)}, "unknown_field", {}};
}

void Fields::fail(std::string_view name, std::string message) {
  if (!error_) error_ = bad_field(path(name), path(name) + ": " + std::move(message));
}

const json::value* Fields::get(std::string_view name) {
  read_.emplace(name);
  const auto it = body_.find(name);
  return it == body_.end() || it->value().is_null() ? nullptr : &it->value();
}

bool Fields::boolean(std::string_view name, bool fallback) {
  const json::value* value = get(name);
  if (value == nullptr) return fallback;
  if (!value->is_bool()) fail(name, "must be true or false");
  return value->is_bool() && value->get_bool();
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t low, std::int64_t high) {
  const json::value* value = get(name);
  if (value == nullptr) return std::nullopt;
  std::optional<std::int64_t> number;
  if (value->is_int64()) number = value->get_int64();
  // 1.0 is what some clients send for 1; beyond 2^53 a double is no longer exact.
  if (value->is_double() && value->get_double() >= -9007199254740992.0 && value->get_double() <= 9007199254740992.0 &&
      static_cast<double>(static_cast<std::int64_t>(value->get_double())) == value->get_double())
    number = static_cast<std::int64_t>(value->get_double());
  if (!number || *number < low || *number > high) {
    fail(name, "must be an integer from " + std::to_string(low) + " to " + std::to_string(high));
    return std::nullopt;
  }
  return number;
}

std::optional<std::string> Fields::text(std::string_view name) {
  const json::value* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return std::string{value->get_string()};
  fail(name, "must be a string");
  return std::nullopt;
}

const json::array* Fields::array(std::string_view name) {
  const json::value* value = get(name);
  if (value != nullptr && !value->is_array()) fail(name, "must be an array");
  return value == nullptr ? nullptr : value->if_array();
}

const json::object* Fields::object(std::string_view name) {
  const json::value* value = get(name);
  if (value != nullptr && !value->is_object()) fail(name, "must be an object");
  return value == nullptr ? nullptr : value->if_object();
}

void Fields::apply_policies(unsigned kind, std::vector<std::string>& warnings, std::string& logged) {
  for (const FieldRow& row : kRows) {
    if ((row.kinds & kind) == 0 || row.policy == Policy::honoured) continue;
    const json::value* value = get(row.name);
    if (value == nullptr) continue;
    if (row.policy == Policy::refused) fail(row.name, row.why);
    if (row.policy == Policy::only && !is_one_of(*value, row.allowed))
      fail(row.name, std::string{row.why} + "; allowed: " + join(split(row.allowed, ' '), ", "));
    if (row.policy == Policy::warned) warnings.emplace_back(row.why);
    if (row.policy == Policy::logged && !value->is_string()) fail(row.name, "must be a string");
    if (row.policy == Policy::logged && value->is_string())
      logged += " " + std::string{row.name} + "=" + mekik::quoted(value->get_string());
  }
}

json::object Fields::rest() const {
  json::object out;
  for (const auto& member : body_)
    if (!member.value().is_null() && read_.find(std::string_view{member.key()}) == read_.end()) out[member.key()] = member.value();
  return out;
}

std::optional<json::object> parse_body(std::string_view body, std::size_t max_bytes, MaybeError& error) {
  const auto refuse = [&](std::string message) {
    error = ApiError{400, std::move(message), "", "invalid_json", {}};
    return std::nullopt;
  };
  if (!is_utf8(body)) return refuse("the body is not valid UTF-8");
  json::ParseLimits limits;
  limits.depth = kMaxJsonDepth;
  limits.bytes = max_bytes;
  auto parsed = json::parse(body, limits);
  if (!parsed.ok()) return refuse(parsed.status().text);
  if (!parsed->is_object()) return refuse("the body must be a JSON object");
  return std::move(parsed->get_object());
}

}  // namespace mekik::server::openai
