// run: one answer. chat: a conversation.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <iterator>

#include "app/generate.hpp"
#include "app/verbs.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace mekik::app {

namespace {

void print_now(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::vector<std::int32_t> prompt_of(const Arguments& arguments, const engine::Model& model) {
  if (arguments.has("tokens")) {
    if (arguments.has("prompt")) throw misused("mekik run takes --prompt or --tokens, not both");
    if (arguments.text("tokens").empty()) throw misused("--tokens is empty; give at least one id");
    return parse_tokens(arguments.text("tokens"));
  }
  std::string prompt;
  if (arguments.has("prompt")) prompt = arguments.text("prompt");
  else if (isatty(STDIN_FILENO) == 0) prompt.assign(std::istreambuf_iterator<char>{std::cin}, {});
  else throw misused("mekik run needs a prompt: -p TEXT, --tokens, or text on standard input");
  if (!is_utf8(prompt)) throw Failure{kFailed, "the prompt is not valid UTF-8"};
  if (!arguments.flag("raw")) {
    if (prompt.empty()) throw Failure{kFailed, "the prompt is empty"};
    return chat_prompt(model, {json::object{{"role", "user"}, {"content", prompt}}});
  }
  if (model.tokenizer() == nullptr) throw failed(model.tokenizer_status());
  std::vector<std::int32_t> tokens = model.tokenizer()->encode(prompt, true, false);
  if (tokens.empty() && model.tokenizer()->bos() >= 0) tokens.push_back(model.tokenizer()->bos());
  if (tokens.empty()) throw Failure{kFailed, "the prompt is empty, and this model has no BOS token to start from"};
  return tokens;
}

double milliseconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e6; }

json::object timings_json(const Answer& answer) {
  const double decode_s = static_cast<double>(answer.timings.decode) / 1e9;
  const std::uint32_t n = answer.usage.completion_tokens;
  json::object out{{"prompt_tokens", answer.usage.prompt_tokens},
                   {"completion_tokens", n},
                   {"queue_ms", milliseconds(answer.timings.queued)},
                   {"ttft_ms", milliseconds(answer.timings.ttft)},
                   {"total_ms", milliseconds(answer.timings.total)}};
  if (n > 1) {
    out["tpot_ms"] = milliseconds(answer.timings.decode) / (n - 1);
    out["tokens_per_second"] = decode_s > 0 ? (n - 1) / decode_s : 0.0;
  }
  return out;
}

int run_run(const Arguments& arguments) {
  Session session;
  const auto pipeline = session.pipeline(arguments, arguments.operands[0]);
  if (!pipeline) return kSuccess;
  const auto model = session.load(*pipeline);
  engine::Request request = request_of(arguments, session, *model);
  request.prompt = prompt_of(arguments, *model);
  const auto engine = session.start(*model);
  const bool as_json = arguments.flag("json");
  const Answer answer = generate(*engine, std::move(request), [&](const std::string& text) {
    if (!as_json) print_now(text);
  });
  if (as_json) {
    json::array tokens(answer.tokens.begin(), answer.tokens.end());
    std::puts(json::serialize(json::object{{"tokens", std::move(tokens)},
                                           {"text", utf8_replace_invalid(answer.text)},
                                           {"finish_reason", engine::finish_name(answer.finish)},
                                           {"timings", timings_json(answer)}})
                  .c_str());
  } else {
    print_now("\n");
  }
  return answer.finish == engine::Finish::cancelled ? 130 : kSuccess;
}

int run_chat(const Arguments& arguments) {
  Session session;
  const auto pipeline = session.pipeline(arguments, arguments.operands[0]);
  if (!pipeline) return kSuccess;
  const auto model = session.load(*pipeline);
  if (model->chat_template() == nullptr) throw failed(model->template_status());
  const engine::Request settings = request_of(arguments, session, *model);
  const auto engine = session.start(*model);
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal) print_now("Write to " + model->name() + "; an empty line or Ctrl-D ends.\n");
  json::array messages;
  if (arguments.has("system")) messages.push_back(json::object{{"role", "system"}, {"content", arguments.text("system")}});
  for (std::string line;;) {
    if (terminal) print_now("> ");
    if (!std::getline(std::cin, line) || line.empty()) break;
    if (!is_utf8(line)) throw Failure{kFailed, "the line is not valid UTF-8"};
    messages.push_back(json::object{{"role", "user"}, {"content", line}});
    engine::Request request = settings;
    request.prompt = chat_prompt(*model, messages);
    const Answer answer = generate(*engine, std::move(request), print_now);
    print_now("\n");
    messages.push_back(json::object{{"role", "assistant"}, {"content", utf8_replace_invalid(answer.text)}});
  }
  return kSuccess;
}

}  // namespace

const Verb kRun{"run",
                "MODEL-OR-PIPELINE",
                "One answer, streamed.",
                "mekik run model.gguf -p \"Why is the sky blue?\"",
                [](po::options_description& o) {
                  o.add_options()                                                                                  //
                      ("prompt,p", po::value<std::string>(), "the question; without it standard input is read")    //
                      ("tokens", po::value<std::string>(), "token ids in place of a prompt, separated by commas")  //
                      ("raw", po::bool_switch(), "no chat template: the model continues the text")                 //
                      ("json", po::bool_switch(), "{\"tokens\":[...],\"text\":\"...\",\"finish_reason\":\"...\",\"timings\":{...}}");
                  declare_request_options(o);
                },
                1,
                1,
                true,
                run_run};

const Verb kChat{"chat",
                 "MODEL-OR-PIPELINE",
                 "A conversation in the terminal.",
                 "mekik chat pipelines/chat.toml",
                 [](po::options_description& o) {
                   o.add_options()("system", po::value<std::string>(), "a system message");
                   declare_request_options(o);
                 },
                 1,
                 1,
                 true,
                 run_chat};

}  // namespace mekik::app
