#include "app/generate.hpp"

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>

#include "base/json.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "sample/chain.hpp"

namespace mekik::app {

namespace {

volatile std::sig_atomic_t interrupted = 0;  // set by the handler, which may do nothing else

// SIGINT sets a flag while this lives.
class CatchInterrupt {
 public:
  CatchInterrupt() {
    interrupted = 0;
    previous_ = std::signal(SIGINT, [](int) { interrupted = 1; });
  }
  ~CatchInterrupt() { std::signal(SIGINT, previous_); }
  CatchInterrupt(const CatchInterrupt&) = delete;
  CatchInterrupt& operator=(const CatchInterrupt&) = delete;

 private:
  void (*previous_)(int);
};

std::string sampler_fields(Session& session, const config::Pipeline& pipeline, const json::object& fields) {
  std::vector<const mekik_component*> chain;
  for (const config::Use& use : pipeline.samplers) chain.push_back(need(session.registry().component("sampler", use)));
  std::vector<std::string> unknown;
  auto checked = sample::sampler_request(chain, fields, unknown);
  if (!checked) throw misused(checked.status().text);
  if (!unknown.empty()) throw misused("--" + unknown.front() + ": no sampler of this pipeline has this option");
  return std::move(*checked);
}

}  // namespace

Answer generate(engine::Engine& engine, engine::Request request, const std::function<void(const engine::Event&)>& on_event) {
  std::mutex mutex;
  std::condition_variable over;
  Answer answer;
  Status error;
  bool done = false;
  const std::uint32_t asked = request.max_tokens;
  const CatchInterrupt interrupt;
  const engine::RequestId id = need(engine.submit(std::move(request), [&](const engine::Event& event) {
    on_event(event);
    const std::lock_guard lock{mutex};
    for (const engine::TokenInfo& token : event.tokens) answer.tokens.push_back(token.id);
    answer.text += event.text;
    if (event.finish == engine::Finish::none) return;
    answer.finish = event.finish;
    answer.usage = event.usage;
    answer.timings = event.timings;
    error = event.error;
    done = true;
    over.notify_all();
  }));
  std::unique_lock lock{mutex};
  while (!over.wait_for(lock, std::chrono::milliseconds{100}, [&] { return done; })) {
    if (interrupted == 0) continue;
    lock.unlock();
    engine.cancel(id);
    lock.lock();
  }
  need(error);
  if (answer.finish == engine::Finish::length && answer.usage.completion_tokens < asked)
    log::warning("run", "the answer ends after " + std::to_string(answer.usage.completion_tokens) + " tokens: the context of " +
                            std::to_string(engine.model().context()) + " tokens is full (model.context, cache.memory)");
  return answer;
}

void declare_request_options(po::options_description& o) {
  o.add_options()                                                                                                 //
      ("max-tokens", po::value<std::string>()->default_value("512"), "the most tokens to make")                   //
      ("temperature", po::value<std::string>(), "0 takes the likeliest token; without it the sampler's default")  //
      ("seed", po::value<std::string>(), "the same seed gives the same answer; without it a random one")          //
      ("ignore-eos", po::bool_switch(), "go on after the model's end token");
}

engine::Request request_of(const Arguments& arguments, Session& session, const config::Pipeline* pipeline) {
  engine::Request request;
  json::object fields;
  Mistakes mistakes;
  mistakes.in([&] { request.max_tokens = static_cast<std::uint32_t>(*whole_number(arguments, "max-tokens", 1, UINT32_MAX)); });
  mistakes.in([&] { request.seed = whole_number(arguments, "seed", 0, UINT64_MAX); });
  mistakes.in([&] {
    if (const auto temperature = real_number(arguments, "temperature")) fields["temperature"] = *temperature;
  });
  request.ignore_eos = arguments.flag("ignore-eos");
  if (pipeline != nullptr) mistakes.in([&] { request.sampler_json = sampler_fields(session, *pipeline, fields); });
  mistakes.tell();
  return request;
}

std::vector<std::int32_t> tokens_of(const engine::Model& model, const std::vector<text::TextPart>& parts, bool add_special) {
  const std::string whole = text::plain_text(parts);
  const std::size_t least = model.tokenizer()->fewest_tokens(whole), context = model.context();
  constexpr std::size_t kMostBytes = 1024;  // a token, where a tokenizer may leave out any part of a text
  const std::string far = least > context ? "at least " + std::to_string(least) + " tokens" : std::to_string(whole.size()) + " bytes";
  if (least > context || whole.size() / kMostBytes > context)
    throw failed(invalid("the text has " + far + ", which do not fit the context of " + std::to_string(context) + " tokens; shorten it"));
  return model.tokenizer()->encode(parts, add_special);
}

std::vector<std::int32_t> chat_prompt(const engine::Model& model, const json::array& messages, const text::AnswerFormat* format,
                                      text::AnswerStart* start) {
  if (model.tokenizer() == nullptr) throw failed(model.tokenizer_status());
  if (model.chat_template() == nullptr) throw failed(model.template_status());
  const text::Tokenizer& tokenizer = *model.tokenizer();
  json::object context{{"messages", need(text::normalise_messages(messages, model.chat_template()->needs()))},
                       {"add_generation_prompt", true}};
  if (tokenizer.bos() >= 0) context["bos_token"] = tokenizer.token(tokenizer.bos());
  if (tokenizer.eos() >= 0) context["eos_token"] = tokenizer.token(tokenizer.eos());
  const auto parts = model.chat_template()->render(context);
  if (!parts) throw failed(std::move(parts.status()).in("the model's chat template"));
  if (format != nullptr && start != nullptr) *start = text::answer_start(*format, *parts);
  std::vector<std::int32_t> tokens = tokens_of(model, *parts, false);
  if (tokens.empty())
    throw Failure{kFailed, "the model's chat template makes an empty prompt of this message; give the model plain text with --raw"};
  return tokens;
}

}  // namespace mekik::app
