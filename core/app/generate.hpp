// One request, waited for: what run and chat are made of.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "app/session.hpp"
#include "text/answer/parser.hpp"

namespace mekik::app {

struct Answer {
  std::vector<std::int32_t> tokens;
  std::string text;
  engine::Finish finish = engine::Finish::none;
  engine::Usage usage;
  engine::Timings timings;
};

// Runs the request and returns when it is over. `on_event` gets what comes, on another thread. SIGINT cancels it. Throws Failure.
Answer generate(engine::Engine& engine, engine::Request request, const std::function<void(const engine::Event&)>& on_event);

// The request that the options of run and chat describe, without its prompt; without a pipeline, only what needs none is checked. Throws
// Failure with all mistakes.
engine::Request request_of(const Arguments& arguments, Session& session, const config::Pipeline* pipeline);
void declare_request_options(po::options_description& options);

// The tokens of a text; one that cannot fit the context is refused before it is tokenized. Throws Failure. The model has a tokenizer.
std::vector<std::int32_t> tokens_of(const engine::Model& model, const std::vector<text::TextPart>& parts, bool add_special);

// The prompt of a conversation by the model's template. Throws Failure, for instance when there is none.
// `format`, `start`: of the answer to it; both may be nullptr.
std::vector<std::int32_t> chat_prompt(const engine::Model& model, const json::array& messages, const text::AnswerFormat* format = nullptr,
                                      text::AnswerStart* start = nullptr);

}  // namespace mekik::app
