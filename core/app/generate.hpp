// One request, waited for: what run and chat are made of.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "app/session.hpp"

namespace mekik::app {

struct Answer {
  std::vector<std::int32_t> tokens;
  std::string text;
  engine::Finish finish = engine::Finish::none;
  engine::Usage usage;
  engine::Timings timings;
};

// Runs the request and returns when it is over. `on_text` gets the text as it comes, on another thread. SIGINT cancels it. Throws Failure.
Answer generate(engine::Engine& engine, engine::Request request, const std::function<void(const std::string&)>& on_text);

// The request that the options of run and chat describe, without its prompt. Throws Failure.
engine::Request request_of(const Arguments& arguments, Session& session, const config::Pipeline& pipeline);
void declare_request_options(po::options_description& options);

// The prompt of a conversation by the model's template. Throws Failure, for instance when there is none.
std::vector<std::int32_t> chat_prompt(const engine::Model& model, const json::array& messages);

}  // namespace mekik::app
