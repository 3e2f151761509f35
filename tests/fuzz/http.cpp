// A client's bytes. An even first byte: a stream of HTTP, read whole and byte by byte with the same outcome, and routed. An odd one: a
// body for the function that it chooses. What is accepted lies within the model's limits, samplers take it, and the answer is JSON.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>

#include "base/text.hpp"
#include "config/options.hpp"
#include "plugin/registry.hpp"
#include "sample/chain.hpp"
#include "server/auth.hpp"
#include "server/openai/prepare.hpp"
#include "server/route.hpp"
#include "server/sse.hpp"
#include "support/registry.hpp"

namespace {

using namespace mekik;
using namespace mekik::server;

void require(bool holds) {
  if (!holds) std::abort();
}

constexpr std::size_t kBodyBytes = 1u << 14;

constexpr const char* kTemplate =
    "{% for m in messages %}{% if m.role == 'tool' and n is not defined %}{{ raise_exception('no tools') }}{% endif %}"
    "{{ '<|im_start|>' + m.role + '\n' + m.content }}{% for c in m.tool_calls %}{{ c.function | tojson }}{% endfor %}{{ '<|im_end|>\n' }}"
    "{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    "{{ enable_thinking }}{{ reasoning_effort }}";

std::unique_ptr<text::Tokenizer> make_tokenizer() {
  json::array tokens, types, scores;
  const auto add = [&](const std::string& token, int type) {
    tokens.emplace_back(token);
    types.emplace_back(type);
    scores.emplace_back(0.0);
  };
  for (unsigned byte = 0; byte < 256; ++byte) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    add(std::string{"<0x"} + digits[byte >> 4] + digits[byte & 15] + ">", 6);
  }
  for (const char* special : {"<s>", "</s>", "<|im_start|>", "<|im_end|>"}) add(special, 3);
  for (const char* word : {"\xE2\x96\x81", "a", "b", "ab", "user", "\n"}) add(word, 1);
  json::object metadata;
  metadata["tokenizer.ggml.model"] = "llama";
  metadata["tokenizer.ggml.tokens"] = tokens;
  metadata["tokenizer.ggml.token_type"] = types;
  metadata["tokenizer.ggml.scores"] = scores;
  metadata["tokenizer.ggml.bos_token_id"] = 256;
  metadata["tokenizer.ggml.eos_token_id"] = 257;
  metadata["tokenizer.ggml.add_bos_token"] = true;
  auto made = text::Tokenizer::create(metadata);
  require(made.ok());
  return std::move(*made);
}

// Two models: one with all that a model can have, and one without tokenizer and template.
struct Fixture {
  Fixture() {
    const auto found = plugins.registry.find("sampler", "standard");
    require(found.ok());
    sampler = *found;
    Served whole, bare;
    whole.name = "whole";
    whole.tokenizer = tokenizer.get();
    whole.chat_template = &*chat_template;
    whole.context = 4096;
    whole.vocab = tokenizer->size();
    whole.samplers = {sampler.raw};
    bare.name = "bare";
    bare.context = 16;
    bare.vocab = 100;
    two = {whole, bare};
    one = {whole};
  }
  test::Plugins plugins;
  plugin::Component sampler;
  std::unique_ptr<text::Tokenizer> tokenizer = make_tokenizer();
  Result<text::ChatTemplate> chat_template = text::ChatTemplate::compile(kTemplate);
  std::vector<Served> one, two;
};

const Fixture& fixture() {
  static const Fixture made;
  return made;
}

void check_error(const ApiError& error) {
  require(error.status >= 400 && error.status < 600 && error.status != 500 && !error.message.empty());
  const json::object body = error_body(error, "id");
  require(json::parse(json::serialize(body)).ok());
}

void check_request(const engine::Request& request, const Served& served) {
  require(!request.prompt.empty() && request.n >= 1 && request.logprobs <= 20 && request.logprobs >= -1);
  require(request.prompt.size() + request.max_tokens <= served.context);
  require(request.max_tokens > 0 || request.score_prompt);
  for (const auto* ids : {&request.prompt, &request.stop_tokens})
    for (const std::int32_t id : *ids) require(id >= 0 && static_cast<std::uint32_t>(id) < served.vocab);
  for (const std::string& stop : request.stop) require(!stop.empty() && is_utf8(stop));
}

// The sampler takes what was accepted for it, and leaves at least one token possible.
void check_sampler(const engine::Request& request, const Served& served) {
  if (served.samplers.empty()) return;
  static const std::unique_ptr<config::Table> defaults = [] {
    config::Diagnostics diagnostics;
    auto table =
        config::check_table({config::rows_of(*fixture().sampler.raw)}, {}, "[sampler]", "", {diagnostics, nullptr, true, {}, false});
    require(diagnostics.ok());
    return table;
  }();
  mekik_vocab vocab{};
  vocab.struct_size = sizeof vocab;
  vocab.n = served.vocab;
  const sample::Link link{fixture().sampler.raw, fixture().sampler.host, plugin::abi_config(*defaults)};
  auto chain = sample::Chain::create({link}, vocab, request.sampler_json);
  if (!chain.ok()) {
    require(chain.status().code == Code::invalid && !chain.status().text.empty());
    return;
  }
  (*chain).accept(request.prompt, true);
  std::vector<float> logits(served.vocab);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 17) - 8.0f;
  require((*chain).apply(logits, 0.5).ok());
  require(std::any_of(logits.begin(), logits.end(), [](float l) { return l > -std::numeric_limits<float>::infinity(); }));
}

// Two tokens for each choice, streamed and whole.
void check_answer(openai::Prepared& prepared) {
  std::uint32_t first = 0;
  std::size_t chunks = 0;
  for (const engine::Request& request : prepared.requests) {
    for (std::uint32_t i = 0; i < request.n; ++i) {
      engine::Event event;
      event.index = i;
      event.text = "a\xC3\xA9";
      if (request.score_prompt)
        for (const std::int32_t id : request.prompt) event.prompt.push_back({id, -1.0f, {}});
      engine::TokenInfo token{97, -0.5f, {}};
      for (std::int32_t k = 0; k < request.logprobs; ++k) token.top.push_back({k, -1.0f});
      if (request.max_tokens > 0) event.tokens = {token, token};
      event.finish = engine::Finish::length;
      event.usage = {static_cast<std::uint32_t>(request.prompt.size()), 2, 0};
      if (prepared.stream) {
        std::vector<json::object> out;
        prepared.answer->chunks(first + i, event, out);
        for (const json::object& chunk : out) require(is_utf8(sse_event(chunk)));
        chunks += out.size();
      } else {
        prepared.answer->collect(first + i, event);
      }
    }
    first += request.n;
  }
  require(prepared.answer->done());
  require(prepared.stream ? chunks > 0 : json::parse(json::serialize(prepared.answer->result())).ok());
}

void check_generation(MaybeError (*prepare)(const openai::Input&, openai::Prepared&), const openai::Input& input) {
  openai::Prepared prepared;
  if (const MaybeError error = prepare(input, prepared)) return check_error(*error);
  require(prepared.served != nullptr && !prepared.requests.empty() && prepared.answer != nullptr);
  for (const engine::Request& request : prepared.requests) check_request(request, *prepared.served);
  check_sampler(prepared.requests.front(), *prepared.served);
  check_answer(prepared);
}

void check_computation(MaybeError (*compute)(const openai::Input&, json::object&), const openai::Input& input) {
  json::object out;
  if (const MaybeError error = compute(input, out)) return check_error(*error);
  require(json::parse(json::serialize(out)).ok());
}

void run_body(unsigned kind, std::string_view body) {
  const openai::Input input{(kind & 4) != 0 ? fixture().two : fixture().one, body, kBodyBytes, "req-1", 1};
  switch (kind & 3) {
    case 0:
      return check_generation(openai::prepare_chat, input);
    case 1:
      return check_generation(openai::prepare_completion, input);
    case 2:
      return check_computation(openai::run_tokenize, input);
    default:
      return check_computation(openai::run_detokenize, input);
  }
}

struct Outcome {
  RequestReader::State state = RequestReader::State::head;
  HttpError error;
  Head head;
  std::string body, rest;
};

// As a connection does it: what the reader does not take stays in front of what comes next.
Outcome read(std::string_view stream, std::size_t step) {
  Limits limits;
  limits.body_bytes = kBodyBytes;
  limits.header_bytes = 1u << 11;
  RequestReader reader{limits};
  Outcome out;
  const auto running = [&] { return reader.state() == RequestReader::State::head || reader.state() == RequestReader::State::body; };
  while (running() && !stream.empty()) {
    out.rest += stream.substr(0, step);
    stream.remove_prefix(std::min(step, stream.size()));
    // The head is left before the body is fed, so that it can be refused.
    for (std::size_t used = 1; running() && used > 0 && !out.rest.empty(); out.rest.erase(0, used)) {
      const auto before = reader.state();
      used = reader.feed(out.rest);
      require(used <= out.rest.size());
      if (reader.state() == before && before == RequestReader::State::head) require(used == 0);
    }
  }
  out.rest += stream;
  out.state = reader.state();
  out.error = reader.error();
  if (out.state == RequestReader::State::done || out.state == RequestReader::State::body) out.head = reader.head();
  if (out.state == RequestReader::State::done) out.body = reader.take_body();
  return out;
}

void check_head(const Head& head) {
  require(is_utf8(head.path) && head.path.find('\0') == std::string::npos && !head.path.empty());
  for (const Header& header : head.headers)
    require((header.first + header.second).find_first_of(std::string_view{"\r\n\0", 3}) == std::string::npos);
  require(!(head.chunked && head.content_length));
  const KeyCheck keys{{"secret"}};
  const Match match = match_route(head, keys);
  if (match.error) check_error(*match.error);
  else require(match.route != nullptr || head.method == "OPTIONS");
  require(match.allow.find_first_of("\r\n") == std::string::npos);
}

void run_stream(std::string_view stream) {
  const Outcome whole = read(stream, stream.size()), cut = read(stream, 1);
  // Of a request that is not well formed one may still wait for more where the other has seen enough (Beast counts the bytes of a chunk
  // again for each piece of a broken extension), and what is complained about first may differ.
  const auto state = [](const Outcome& of, RequestReader::State which) { return of.state == which; };
  require(state(whole, RequestReader::State::done) == state(cut, RequestReader::State::done));
  require(state(whole, RequestReader::State::head) == state(cut, RequestReader::State::head));
  if (whole.state != cut.state) return;
  if (whole.state == RequestReader::State::failed)
    return require(whole.error.status >= 400 && cut.error.status >= 400 && !whole.error.message.empty());
  require(whole.head.path == cut.head.path && whole.head.headers == cut.head.headers && whole.body == cut.body);
  if (whole.state == RequestReader::State::head) return;
  check_head(whole.head);
  if (whole.state != RequestReader::State::done) return;
  require(whole.rest == cut.rest && whole.body.size() <= kBodyBytes);
  require(!whole.head.content_length || whole.body.size() == *whole.head.content_length);
  if (whole.head.method == "POST") run_body(0, whole.body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest{reinterpret_cast<const char*>(data) + 1, size - 1};
  if ((data[0] & 1) == 0) run_stream(rest);
  else run_body(data[0] >> 1, rest);
  return 0;
}
