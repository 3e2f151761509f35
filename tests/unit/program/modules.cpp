// Folders of sentence-transformers: what is computed as it says, what is refused, and of what a load warns.
#include <map>

#include "fixtures.hpp"

using namespace mekik;
using namespace mekik::program;

namespace {

using Files = std::map<std::string, std::string>;
const std::string kModules = R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
  {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}, {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])";
const std::string kPooling = "1_Pooling/config.json";

Result<Program> built(const Files& files, const std::string& model = "tiny/bert-plain", Task task = Task::embed,
                      const std::string& pooling = {}) {
  ModelMeta meta = test::load_folder(model);
  meta.file = [files](const std::string& name) {
    const auto found = files.find(name);
    return found == files.end() ? json::value{} : test::parse_json(found->second);
  };
  BuildOptions options;
  options.outputs.clear();
  options.task = task;
  options.pooling = pooling;
  return test::all_pages().build(meta, options);
}
std::string message(const Result<Program>& program) {
  if (program.ok()) return {};
  const std::string text = program.status().text;
  const std::size_t at = text.find("error: ");
  return at == std::string::npos ? text : text.substr(at + 7, text.find('\n') - at - 7);
}
std::string of_pooling(const std::string& pooling) { return message(built({{"modules.json", kModules}, {kPooling, pooling}})); }
std::string of_module(const std::string& module) {
  return message(built({{"modules.json", kModules.substr(0, kModules.size() - 1) + ", " + module + "]"},
                        {kPooling, R"({"pooling_mode_cls_token": true})"}}));
}

}  // namespace

TEST_CASE("modules: one way of pooling that is computed") {
  CHECK(of_pooling(R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})") == "");
  CHECK(of_pooling(R"({"pooling_mode_mean_tokens": true, "word_embedding_dimension": 32})") == "");
  CHECK(of_pooling(R"({"pooling_mode_lasttoken": true})") == "");
  CHECK(of_pooling(R"({"pooling_mode": "mean"})") == "");
  CHECK(of_pooling("{}") == "");
  CHECK(message(built({})) == "");
  for (const char* mode : {"max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens"})
    CHECK(of_pooling(std::string{R"({"pooling_mode_mean_tokens": false, "pooling_mode_)"} + mode + "\": true}") == "");
  for (const char* mode : {"max", "mean_sqrt_len_tokens", "weightedmean"})
    CHECK(of_pooling(std::string{R"({"pooling_mode": ")"} + mode + "\"}") == "");
  const std::string known = " is not computed; cls, mean, lasttoken, max, weightedmean and mean_sqrt_len_tokens are";
  CHECK(of_pooling(R"({"pooling_mode_foo": true})") == "1_Pooling/config.json: pooling_mode_foo" + known);
  CHECK(of_pooling(R"({"pooling_mode": "zzz"})") == "1_Pooling/config.json: pooling_mode \"zzz\"" + known);
  CHECK(of_pooling(R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})") ==
        "1_Pooling/config.json: pooling_mode_cls_token and pooling_mode_mean_tokens are both set, and would stand one behind the other; "
        "one is computed");
  CHECK(of_pooling(R"({"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": false})") == "1_Pooling/config.json: no mode is set");
  CHECK(of_pooling(R"({"pooling_mode_cls_token": "yes"})") == "1_Pooling/config.json: pooling_mode_cls_token must be true or false");
  CHECK(of_pooling("[]") == "modules.json names 1_Pooling, but 1_Pooling/config.json is missing or damaged; fetch it");
  CHECK(message(built({{"modules.json", kModules}})) ==
        "modules.json names 1_Pooling, but 1_Pooling/config.json is missing or damaged; fetch it");
}

TEST_CASE("modules: others are refused by name") {
  CHECK(of_module(R"({"path": "3_Dropout", "type": "sentence_transformers.models.Dropout"})") == "");
  CHECK(of_module(R"({"path": "3_X", "type": "foo.Bar"})") == "modules.json names a module of type \"foo.Bar\", which is not computed");
  CHECK(of_module(R"({"path": "../keep", "type": "sentence_transformers.models.Pooling"})") ==
        "modules.json has the module Pooling in \"../keep\"; it is read from \"1_Pooling\"");
  CHECK(message(built({{"modules.json", R"([{"path": "", "type": "sentence_transformers.models.Transformer"}])"}})) ==
        "modules.json names no module Pooling; say how to pool, model.pooling = \"mean\" or another");
}

TEST_CASE("modules: only embeddings mind, and who chooses how to pool does not") {
  const Files files{{"modules.json", kModules}, {kPooling, R"({"pooling_mode_foo": true})"}};
  CHECK(message(built(files, "tiny/bert-plain", Task::embed, "mean")) == "");
  CHECK(message(built(files, "tiny/llama-plain", Task::generate)) == "");
  CHECK(message(built(files, "tiny/llama-plain", Task::embed)).find("pooling_mode_foo is not computed") != std::string::npos);
  const Files mean{{"modules.json", kModules}, {kPooling, R"({"pooling_mode_mean_tokens": true})"}};
  CHECK(message(built(mean, "tiny/gpt_neox-plain")).find("1_Pooling/config.json says \"mean\"") != std::string::npos);
}

TEST_CASE("modules: what is done to texts elsewhere is told") {
  const auto program = built({{"sentence_bert_config.json", R"({"max_seq_length": 2, "do_lower_case": true})"},
                              {"config_sentence_transformers.json", R"({"prompts": {"query": "q: "}, "default_prompt_name": "query"})"}});
  REQUIRE(program.ok());
  REQUIRE(program->warnings.size() == 2);
  CHECK(program->warnings[0].find("do_lower_case") != std::string::npos);
  CHECK(program->warnings[1].find("puts the prompt \"q: \" (\"query\") in front of texts") != std::string::npos);
  CHECK(std::any_of(program->notes.begin(), program->notes.end(),
                    [](const std::string& n) { return n.find("max_seq_length") != std::string::npos; }));
  const auto plain = built({{"sentence_bert_config.json", R"({"max_seq_length": 512, "do_lower_case": false})"},
                            {"config_sentence_transformers.json", R"({"prompts": {"query": "q: "}, "default_prompt_name": null})"}});
  REQUIRE(plain.ok());
  CHECK(plain->warnings.empty());
}
