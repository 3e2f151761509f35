// tokenize, detokenize and template: what a model does with text, without loading weights.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>

#include "app/session.hpp"
#include "app/verbs.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "server/openai/messages.hpp"
#include "text/token_view.hpp"

namespace mekik::app {

namespace {

std::unique_ptr<text::Tokenizer> tokenizer_of(const weights::ModelFile& file) {
  const json::value metadata = need(file.tokenizer());
  if (metadata.is_null()) throw Failure{kFailed, file.meta().path + ": the file has no tokenizer"};
  auto made = text::Tokenizer::create(metadata);
  if (!made) throw failed(made.status().in(file.meta().path));
  return std::move(*made);
}

// JSON is UTF-8, pieces are bytes: what is no character becomes U+FFFD.
json::string shown(std::string_view bytes) { return json::string{utf8_replace_invalid(bytes)}; }

// https://no-color.org
bool colour_wanted() {
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && (refused == nullptr || *refused == 0) &&
         (terminal == nullptr || std::string_view{terminal} != "dumb");
}

int run_tokenize(const Arguments& arguments) {
  Session session;
  if (arguments.flag("pieces") && arguments.flag("json")) throw misused("mekik tokenize takes --pieces or --json, not both");
  std::string input;
  if (arguments.has("text") && arguments.has("file")) throw misused("mekik tokenize takes --text or --file, not both");
  if (arguments.has("text")) input = arguments.text("text");
  else if (arguments.has("file")) input = read_operand_file(arguments.text("file"));
  else input = read_standard_input();
  if (!is_utf8(input)) throw misused("the text is not valid UTF-8");
  const auto file = session.open_file(arguments, arguments.operands[0]);
  const auto tokenizer = tokenizer_of(*file);
  const std::vector<std::int32_t> ids = tokenizer->encode(input, arguments.flag("add-special"), arguments.flag("special"));
  if (arguments.flag("json")) {
    json::array tokens(ids.begin(), ids.end()), pieces;
    for (const std::int32_t id : ids) pieces.push_back(shown(tokenizer->piece(id)));
    std::puts(json::serialize(json::object{{"tokens", std::move(tokens)}, {"pieces", std::move(pieces)}}).c_str());
    return kSuccess;
  }
  if (arguments.flag("pieces")) {
    const std::string view = text::token_view(*tokenizer, ids, colour_wanted());
    std::fwrite(view.data(), 1, view.size(), stdout);
    return kSuccess;
  }
  for (const std::int32_t id : ids) std::printf("%8d  %s\n", id, mekik::quoted(tokenizer->piece(id)).c_str());
  return kSuccess;
}

int run_detokenize(const Arguments& arguments) {
  Session session;
  const std::vector<std::int32_t> ids = parse_tokens(arguments.text("tokens"));
  const auto file = session.open_file(arguments, arguments.operands[0]);
  const auto tokenizer = tokenizer_of(*file);
  for (const std::int32_t id : ids)
    if (id < 0 || static_cast<std::uint32_t>(id) >= tokenizer->size())
      throw Failure{kFailed,
                    "token " + std::to_string(id) + " is outside the vocabulary (0 to " + std::to_string(tokenizer->size() - 1) + ")"};
  const std::string text = tokenizer->decode(ids, arguments.flag("special"));
  if (arguments.flag("json")) std::puts(json::serialize(json::object{{"text", shown(text)}}).c_str());
  else std::puts(text.c_str());
  return kSuccess;
}

json::value parse_file(const std::string& path) {
  auto parsed = json::parse(read_operand_file(path));
  if (!parsed) throw Failure{kFailed, path + ": " + parsed.status().text};
  return std::move(*parsed);
}

// "template:2:12: ..." with the name of its file.
Failure in_template(const std::string& named, const Status& status) {
  constexpr std::string_view kPlace = "template:";
  return {kFailed, named + (status.text.starts_with(kPlace) ? status.text.substr(kPlace.size() - 1) : ": " + status.text), true};
}

text::ChatTemplate template_of(const Arguments& arguments, const weights::ModelFile& file, const std::string& named) {
  const bool given = arguments.has("template");
  auto source = given ? Result<std::string>{read_operand_file(arguments.text("template"))} : file.chat_template();
  if (!source) throw Failure{kFailed, file.meta().path + ": the model has no chat template; give one with --template FILE"};
  auto compiled = text::ChatTemplate::compile(*source);
  if (!compiled) throw in_template(named, compiled.status());
  return std::move(*compiled);
}

json::object template_body(const Arguments& arguments) {
  json::value messages = parse_file(arguments.text("messages"));
  if (const json::value* inside = json::find(messages, "messages")) messages = json::value(*inside);
  if (!messages.is_array())
    throw Failure{kFailed, arguments.text("messages") + ": expected an array of messages, or an object with one under \"messages\""};
  json::object body{{"messages", std::move(messages)}, {"add_generation_prompt", !arguments.flag("no-generation-prompt")}};
  if (!arguments.has("tools")) return body;
  json::value tools = parse_file(arguments.text("tools"));
  if (!tools.is_array()) throw Failure{kFailed, arguments.text("tools") + ": expected an array of tools"};
  body["tools"] = std::move(tools);
  body["tool_choice"] = "none";  // the prompt is shown also where it is not known how the model answers
  return body;
}

// What the API refuses is refused here, too, in its words.
Failure refused(const Arguments& arguments, const std::string& named, const server::ApiError& error) {
  constexpr std::string_view kTemplate = server::openai::kTemplateRefused;
  if (error.message.starts_with(kTemplate)) return in_template(named, invalid(error.message.substr(kTemplate.size())));
  const std::string& file = arguments.text(error.param == "tools" ? "tools" : "messages");
  return {kFailed, file + ": " + error.message};
}

int run_template(const Arguments& arguments) {
  Session session;
  const json::object body = template_body(arguments);
  server::openai::Fields fields{body};
  std::vector<std::string> warnings;
  server::openai::ChatFields chat = server::openai::read_chat_fields(fields, warnings);
  if (fields.error()) throw refused(arguments, {}, *fields.error());
  chat.calls = false;
  chat.looks = true;
  const auto file = session.open_file(arguments, arguments.operands[0]);
  const std::string named = arguments.has("template") ? arguments.text("template") : file->meta().path;
  const text::ChatTemplate compiled = template_of(arguments, *file, named);
  const text::AnswerFormat format = session.answer_format(compiled);
  const auto tokenizer = tokenizer_of(*file);
  server::Served served;
  served.tokenizer = tokenizer.get();
  served.chat_template = &compiled;
  served.format = &format;
  std::vector<text::TextPart> parts;
  if (const auto error = server::openai::render_parts(chat, served, parts, warnings)) throw refused(arguments, named, *error);
  for (const std::string& warning : warnings) log::warning("template", warning);
  const std::string prompt = text::plain_text(parts);
  std::fwrite(prompt.data(), 1, prompt.size(), stdout);
  return kSuccess;
}

}  // namespace

const Verb kTokenize{"tokenize",
                     "MODEL",
                     "Token ids and pieces of a text.",
                     "mekik tokenize model.gguf --text \"Hello\" --json",
                     [](po::options_description& o) {
                       o.add_options()                                                                                                //
                           ("text", po::value<std::string>(), "the text; without --text and --file it is read from standard input")   //
                           ("file", po::value<std::string>(), "a file with the text")                                                 //
                           ("special", po::bool_switch(), "recognise special tokens in the text")                                     //
                           ("add-special", po::bool_switch(), "add BOS and EOS as the model asks for")                                //
                           ("pieces", po::bool_switch(), "show what happened to the text: its pieces with spaces and bytes visible")  //
                           ("json", po::bool_switch(), "{\"tokens\":[...],\"pieces\":[...]}");
                     },
                     1,
                     1,
                     true,
                     run_tokenize};

const Verb kDetokenize{"detokenize",
                       "MODEL",
                       "The text of token ids.",
                       "mekik detokenize model.gguf --tokens 1,2,3",
                       [](po::options_description& o) {
                         o.add_options()                                                                   //
                             ("tokens", po::value<std::string>()->required(), "ids, separated by commas")  //
                             ("special", po::bool_switch(), "show special tokens")                         //
                             ("json", po::bool_switch(), "{\"text\":\"...\"}");
                       },
                       1,
                       1,
                       true,
                       run_detokenize};

const Verb kTemplate{"template",
                     "MODEL",
                     "The prompt that the model's chat template makes of messages.",
                     "mekik template model.gguf --messages messages.json",
                     [](po::options_description& o) {
                       o.add_options()                                                                                             //
                           ("messages", po::value<std::string>()->required(), "a JSON file: an array of messages, as in the API")  //
                           ("tools", po::value<std::string>(), "a JSON file: an array of tools")                                   //
                           ("template", po::value<std::string>(), "a template file in place of the model's own")                   //
                           ("no-generation-prompt", po::bool_switch(), "do not open the assistant's turn");
                     },
                     1,
                     1,
                     true,
                     run_template};

}  // namespace mekik::app
