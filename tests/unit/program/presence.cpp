// Tensors that a model may have or lack: in all layers of a kind or in none, and as the configuration says.
#include <map>
#include <regex>
#include <set>

#include "small_page.hpp"

using namespace mekik;
using namespace mekik::program;
using test::complaint;
using test::replaced;

namespace {

std::string normed() {
  return replaced(test::kSmallPage, "\"q = rope(linear(n, wq), main)\"", "\"q = rope(rms_norm(linear(n, wq), q_norm, eps), main)\"");
}

std::string page(const std::string& present) {
  return replaced(replaced(normed(), "optional = true", "present = \"" + present + "\""), "heads = \"4\"",
                  "heads = \"4\"\nnormed = { gguf = \"{arch}.normed\", optional = true }");
}
// The small model with norms in these layers, and with a key that tells of them.
std::string model(const std::string& layers, const std::string& key = {}) {
  std::string tensors;
  for (const char layer : layers) tensors += std::string{"[\""} + layer + ".q_norm\", \"f32\", [16]], ";
  const std::string out = replaced(test::kSmallModel, "[\"embed\"", tensors + "[\"embed\"");
  return key.empty() ? out : replaced(out, "\"tiny.width\"", "\"tiny.normed\": " + key + ", \"tiny.width\"");
}
std::string message(const std::string& text) {
  const std::size_t at = text.find("error: ");
  return at == std::string::npos ? text : text.substr(at + 7, text.find('\n') - at - 7);
}
std::string lacks(int layer, const std::string& why) {
  return "weight \"q_norm\", layer " + std::to_string(layer) + ": \"" + std::to_string(layer) + ".q_norm\" is not in the file, " + why;
}

}  // namespace

TEST_CASE("presence: an optional weight is in all layers or in none") {
  CHECK(complaint(normed(), model("")) == "");
  CHECK(complaint(normed(), model("01")) == "");
  CHECK(message(complaint(normed(), model("0"))) == lacks(1, "though layer 0 has it"));
  CHECK(message(complaint(normed(), model("1"))) == lacks(0, "though layer 1 has it"));
  const std::string asked =
      replaced(normed(), "\"q = rope(rms", "{ when = \"has(q_norm)\", do = [\"q = linear(n, wq)\"] },\n  \"q = rope(rms");
  CHECK(message(complaint(asked, model("0"))) == lacks(1, "though layer 0 has it"));
  const std::string of_some =
      replaced(normed(), "\"q = rope(rms_norm(linear(n, wq), q_norm, eps), main)\"",
               "\"q = rope(linear(n, wq), main)\",\n  { when = \"l == 1\", do = [\"q = rms_norm(q, q_norm, eps)\"] }");
  CHECK(complaint(of_some, model("1")) == "");
}

TEST_CASE("presence: what the page says must hold") {
  CHECK(complaint(page("normed"), model("01")) == "");
  CHECK(complaint(page("normed"), model("")) == "");
  CHECK(message(complaint(page("normed"), model("0"))) == lacks(1, "though layer 0 has it"));
  CHECK(complaint(page("normed"), model("01", "true")) == "");
  CHECK(message(complaint(page("normed"), model("", "true"))) == lacks(0, "which contradicts tiny.normed = true"));
  CHECK(complaint(page("normed"), model("", "false")) == "");
  CHECK(message(complaint(page("normed"), model("01", "false"))) ==
        "weight \"q_norm\", layer 0: \"0.q_norm\" is in the file, which contradicts tiny.normed = false");
  CHECK(complaint(page("l == 1"), model("1")) == "");
  CHECK(message(complaint(page("l == 1"), model(""))) == lacks(1, "which page small needs"));
  CHECK(message(complaint(page("has(q_norm)"), model(""))) == "weight \"q_norm\": whether it is present depends on itself");
  CHECK(complaint(page("'x'"), model("")).find("a condition needs a boolean, not a text") != std::string::npos);
}

TEST_CASE("presence: a head that is missing is told to who asks for it") {
  const auto build = [](const std::string& name, const std::string& classes, Task task) {
    ModelMeta meta = test::load_folder(name);
    meta.config.as_object()["architectures"] = json::array{json::value(classes)};
    meta.config.as_object()["tie_word_embeddings"] = false;
    meta.tensors.erase(
        std::remove_if(meta.tensors.begin(), meta.tensors.end(), [](const TensorInfo& t) { return t.name == "lm_head.weight"; }),
        meta.tensors.end());
    BuildOptions options;
    options.outputs.clear();
    options.task = task;
    return test::all_pages().build(meta, options);
  };
  const std::string says = "is in the file, which contradicts tie_word_embeddings = false";
  for (const Task task : {Task::automatic, Task::generate}) {
    const auto lost = build("tiny/llama-plain", "LlamaForCausalLM", task);
    REQUIRE(!lost.ok());
    CHECK(lost.status().text.find("\"lm_head.weight\"") != std::string::npos);
    CHECK(lost.status().text.find(says) != std::string::npos);
  }
  CHECK(build("tiny/llama-plain", "LlamaForCausalLM", Task::embed).ok());
  CHECK(build("tiny/llama-plain", "LlamaModel", Task::automatic).ok());
  CHECK(!build("tiny/llama-plain", "LlamaModel", Task::generate).ok());
}

// One variant of each family, one tensor of one layer gone that other layers have: nobody may take it for optional.
TEST_CASE("presence: no tensor of a layer may be missing") {
  const std::regex of_layer{R"((.*\.)(\d+)(\..*))"}, expert{R"(experts\.\d+\.)"};
  std::set<std::string> families;
  std::size_t tried = 0;
  for (const std::string& name : test::all_folders()) {
    if (!families.insert(name.substr(0, name.find('-'))).second) continue;
    const ModelMeta whole = test::load_folder(name);
    BuildOptions options;
    options.outputs.clear();
    const auto program = test::all_pages().build(whole, options);
    INFO(name << ": " << program.status().text);
    REQUIRE(program.ok());
    std::set<std::uint32_t> used;
    for (const WeightRecipe& recipe : program->weights) {
      for (const RowRun& run : recipe.rows) used.insert(run.source);
      for (const WeightRecipe::Part& part : recipe.parts) used.insert(part.source);
    }
    std::map<std::string, std::vector<std::uint32_t>> alike;
    std::smatch match;
    for (const std::uint32_t i : used)
      if (std::regex_match(whole.tensors[i].name, match, of_layer) && !std::regex_search(whole.tensors[i].name, expert))
        alike[match[1].str() + match[3].str()].push_back(i);
    for (const auto& [pattern, indices] : alike) {
      if (indices.size() < 2) continue;
      ModelMeta damaged = whole;
      damaged.tensors.erase(damaged.tensors.begin() + indices.back());
      ++tried;
      INFO(whole.tensors[indices.back()].name);
      CHECK(!test::all_pages().build(damaged, options).ok());
    }
  }
  CHECK(tried > 1000);
}

// The same of what stands outside of the layers: an answer without it would be another model's. A head may be that of a model that is tied.
TEST_CASE("presence: no tensor outside of the layers may be missing") {
  std::size_t tried = 0;
  for (const std::string& name : test::all_folders()) {
    const ModelMeta whole = test::load_folder(name);
    BuildOptions options;
    options.outputs.clear();
    const auto program = test::all_pages().build(whole, options);
    INFO(name << ": " << program.status().text);
    REQUIRE(program.ok());
    std::set<std::uint32_t> used;
    for (const WeightRecipe& recipe : program->weights) {
      for (const RowRun& run : recipe.rows) used.insert(run.source);
      for (const WeightRecipe::Part& part : recipe.parts) used.insert(part.source);
    }
    for (const std::uint32_t i : used) {
      const std::string& lost = whole.tensors[i].name;
      const json::value* tied = json::find(whole.config, "tie_word_embeddings");
      const bool may_go = lost == "lm_head.weight" && tied != nullptr && *tied == json::value(true);
      if (may_go || std::regex_search(lost, std::regex{R"(\.\d+\.)"})) continue;
      ModelMeta damaged = whole;
      damaged.tensors.erase(damaged.tensors.begin() + i);
      ++tried;
      INFO(lost);
      CHECK(!test::all_pages().build(damaged, options).ok());
    }
  }
  CHECK(tried > 600);
}
