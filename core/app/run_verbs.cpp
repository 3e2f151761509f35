// run: one answer. chat: a conversation.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>

#include "app/generate.hpp"
#include "app/verbs.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "engine/said.hpp"
#include "text/answer/reader.hpp"

namespace mekik::app {

namespace {

void print_now(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

struct Prompt {
  std::vector<std::int32_t> tokens;  // of --tokens
  std::string text;
};

// What the command line and standard input say, before anything is opened.
Prompt read_prompt(const Arguments& arguments) {
  Prompt prompt;
  if (arguments.has("tokens")) {
    if (arguments.has("prompt")) throw misused("mekik run takes --prompt or --tokens, not both");
    if (arguments.text("tokens").empty()) throw misused("--tokens is empty; give at least one id");
    prompt.tokens = parse_tokens(arguments.text("tokens"));
    return prompt;
  }
  if (arguments.has("prompt")) prompt.text = arguments.text("prompt");
  else if (isatty(STDIN_FILENO) == 0) prompt.text = read_standard_input();
  else throw misused("mekik run needs a prompt: -p TEXT, --tokens, or text on standard input");
  if (!is_utf8(prompt.text)) throw misused("the prompt is not valid UTF-8");
  if (prompt.text.empty() && !arguments.flag("raw"))
    throw misused("the prompt is empty; say something with -p TEXT, or let the model begin with --raw -p \"\"");
  return prompt;
}

std::vector<std::int32_t> prompt_tokens(const Arguments& arguments, const Prompt& prompt, const engine::Model& model) {
  if (!prompt.tokens.empty()) {
    if (model.tokenizer() == nullptr && !arguments.flag("json"))
      throw failed(unsupported("the model file has no tokenizer, so its answer has no text; add --json to get its tokens"));
    return prompt.tokens;
  }
  if (!arguments.flag("raw")) return chat_prompt(model, {json::object{{"role", "user"}, {"content", prompt.text}}});
  if (model.tokenizer() == nullptr) throw failed(model.tokenizer_status());
  std::vector<std::int32_t> tokens = tokens_of(model, {{prompt.text, false}}, true);
  if (tokens.empty() && model.tokenizer()->bos() >= 0) tokens.push_back(model.tokenizer()->bos());
  if (tokens.empty()) throw misused("the prompt is empty, and this model has no BOS token to start from; say something with -p TEXT");
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
  std::optional<config::Pipeline> pipeline;
  engine::Request request;
  Prompt prompt;
  Mistakes mistakes;
  mistakes.in([&] { pipeline = session.pipeline(arguments, arguments.operands[0]); });
  if (!pipeline && !mistakes.any()) return kSuccess;
  mistakes.in([&] { request = request_of(arguments, session, pipeline ? &*pipeline : nullptr); });
  // Nobody should have to type a prompt to be told what is wrong besides.
  if (!mistakes.any() || arguments.has("prompt") || arguments.has("tokens")) mistakes.in([&] { prompt = read_prompt(arguments); });
  mistakes.tell();
  auto model = session.open(*pipeline);
  request.prompt = prompt_tokens(arguments, prompt, *model);
  if (!model->program().position_key.empty()) {  // rotary tables chosen by length: now it is known
    pipeline->model.planned =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(model->program().reach, request.prompt.size() + request.max_tokens));
    model.reset();
    model = session.open(*pipeline);
  }
  session.load(*model);
  const auto engine = session.start(*model);
  const bool as_json = arguments.flag("json");
  const Answer answer = generate(*engine, std::move(request), [&](const engine::Event& event) {
    if (!as_json && !event.text.empty()) print_now(event.text);
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

// An answer of `chat` as it comes: reasoning dimmed where it is a terminal, and taken apart for the next turn.
class Spoken {
 public:
  Spoken(const text::Tokenizer& tokenizer, const text::AnswerFormat& format, text::AnswerStart start)
      : reader_{tokenizer, format, no_tools_, options(start)}, colours_{isatty(STDOUT_FILENO) != 0} {}

  void take(const engine::Event& event) {
    visible_ += event.text.size();
    const std::vector<engine::TokenInfo> tokens = said_.take(event);
    const bool over = event.finish != engine::Finish::none;
    std::vector<text::AnswerPiece> pieces;
    for (const engine::TokenInfo& token : tokens) reader_.push(token.id, over && &token == &tokens.back(), visible_, pieces);
    if (over) reader_.finish(pieces);
    for (const text::AnswerPiece& piece : pieces) show(piece);
    if (over && dim_) print_now("\033[0m");
  }
  json::object message() const {
    json::object out{{"role", "assistant"}, {"content", content_}};
    if (!reasoning_.empty()) out["reasoning_content"] = reasoning_;
    return out;
  }

 private:
  static text::AnswerOptions options(text::AnswerStart start) {
    text::AnswerOptions out;
    out.start = start;
    return out;
  }
  void show(const text::AnswerPiece& piece) {
    const bool reasoning = piece.kind == text::AnswerPiece::reasoning;
    (reasoning ? reasoning_ : content_) += piece.text;
    if (piece.text.empty()) return;
    std::string shown = piece.text;
    if (!reasoning && content_.size() == piece.text.size() && !reasoning_.empty()) shown.insert(0, "\n\n");
    if (colours_ && reasoning != dim_) shown.insert(0, reasoning ? "\033[2m" : "\033[0m");
    dim_ = colours_ && reasoning;
    print_now(shown);
  }

  const text::KnownTools no_tools_;
  text::AnswerReader reader_;
  engine::SaidTokens said_;
  std::size_t visible_ = 0;
  std::string content_, reasoning_;
  const bool colours_;
  bool dim_ = false;
};

int run_chat(const Arguments& arguments) {
  Session session;
  std::optional<config::Pipeline> pipeline;
  engine::Request settings;
  Mistakes mistakes;
  mistakes.in([&] { pipeline = session.pipeline(arguments, arguments.operands[0]); });
  if (!pipeline && !mistakes.any()) return kSuccess;
  mistakes.in([&] { settings = request_of(arguments, session, pipeline ? &*pipeline : nullptr); });
  mistakes.tell();
  const auto model = session.open(*pipeline);
  if (model->tokenizer() == nullptr) throw failed(model->tokenizer_status());
  if (model->chat_template() == nullptr) throw failed(model->template_status());
  session.load(*model);
  const auto engine = session.start(*model);
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal) print_now("Write to " + model->name() + "; an empty line or Ctrl-D ends.\n");
  const text::AnswerFormat format = session.answer_format(*model->chat_template());
  json::array messages;
  if (arguments.has("system")) messages.push_back(json::object{{"role", "system"}, {"content", arguments.text("system")}});
  for (std::string line;;) {
    if (terminal) print_now("> ");
    if (!std::getline(std::cin, line) || line.empty()) break;
    if (!is_utf8(line)) throw misused("the line is not valid UTF-8");
    messages.push_back(json::object{{"role", "user"}, {"content", line}});
    engine::Request request = settings;
    text::AnswerStart start;
    request.prompt = chat_prompt(*model, messages, &format, &start);
    Spoken spoken{*model->tokenizer(), format, start};
    generate(*engine, std::move(request), [&](const engine::Event& event) { spoken.take(event); });
    print_now("\n");
    messages.push_back(spoken.message());
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
