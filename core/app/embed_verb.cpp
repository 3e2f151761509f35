// embed: the vector of a text.
#include <algorithm>
#include <cstdio>

#include "app/generate.hpp"
#include "app/numbers.hpp"
#include "app/session.hpp"
#include "app/verbs.hpp"
#include "base/text.hpp"
#include "engine/evaluate.hpp"
#include "engine/vectors.hpp"

namespace mekik::app {

namespace {

struct Input {
  std::vector<std::int32_t> tokens;
  std::string text;
};

Input read_input(const Arguments& arguments) {
  Input input;
  if (arguments.has("tokens")) {
    if (arguments.has("text")) throw misused("mekik embed takes --text or --tokens, not both");
    input.tokens = parse_tokens(arguments.text("tokens"));
    return input;
  }
  input.text = arguments.has("text") ? arguments.text("text") : read_standard_input();
  if (!is_utf8(input.text)) throw misused("the text is not valid UTF-8");
  return input;
}

int run_embed(const Arguments& arguments) {
  Session session;
  Input input = read_input(arguments);
  auto pipeline = session.pipeline(arguments, arguments.operands[0]);
  if (!pipeline) return kSuccess;
  if (pipeline->model.task == "auto") pipeline->model.task = "embed";
  if (arguments.has("pooling")) {
    for (const std::string& text : arguments.overrides())
      if (text.starts_with("model.pooling=")) throw misused("mekik embed takes --pooling or --set model.pooling, not both");
    const std::string& pooling = arguments.text("pooling");
    if (const auto& known = program::poolings(); std::find(known.begin(), known.end(), pooling) == known.end())
      throw misused("--pooling is one of " + join(known, ", ") + ", not " + mekik::quoted(pooling));
    pipeline->model.pooling = pooling;
  }
  pipeline->model.planned = static_cast<std::uint32_t>(input.tokens.size());
  const auto model = session.open(*pipeline);
  if (model->task() != program::Task::embed)
    throw failed(unsupported("the model is run for " + program::output_of(model->program()).name + ", not for embeddings; set model.task"));
  if (input.tokens.empty()) {
    if (model->tokenizer() == nullptr) throw failed(model->tokenizer_status());
    input.tokens = tokens_of(*model, {{input.text, false}}, true);
    if (input.tokens.empty()) throw misused("the text is empty, and this model adds no tokens of its own; say something with --text");
  }
  session.load(*model);
  std::vector<float> vector;
  need(engine::evaluate(*model, input.tokens, false, [&](std::span<const float> row) { vector = engine::normalised(row); }));
  std::string out = arguments.flag("json") ? "{\"embedding\":" : "";
  append_json(vector, out);
  std::puts((out + (arguments.flag("json") ? "}" : "")).c_str());
  return kSuccess;
}

}  // namespace

const Verb kEmbed{"embed",
                  "MODEL-OR-PIPELINE",
                  "The embedding of a text, of length 1.",
                  "mekik embed model.gguf --text \"Hello\" --json",
                  [](po::options_description& o) {
                    o.add_options()                                                                                                 //
                        ("text", po::value<std::string>(), "the text; without --text and --tokens it is read from standard input")  //
                        ("tokens", po::value<std::string>(), "ids, separated by commas, taken as they are")                         //
                        ("pooling", po::value<std::string>(),
                         "mean, cls, last, max, weightedmean or mean_sqrt_len, in place of what the model says")  //
                        ("json", po::bool_switch(), "{\"embedding\":[...]}");
                  },
                  1,
                  1,
                  true,
                  run_embed};

}  // namespace mekik::app
