#include "small_page.hpp"

using namespace mekik;
using namespace mekik::program;

TEST_CASE("pages: the llama page builds from metadata alone") {
  const Program p = test::build(test::load_model("gguf/llama"));
  CHECK(p.layers == 2);
  CHECK(p.width == 576);
  CHECK(p.vocab == 49152);
  CHECK(p.context == 8192);
  CHECK(p.groups.size() == 1);
  CHECK(p.assumed == std::vector<std::string>{"kind = silu (gguf does not store it)"});
  for (const Tensor& tensor : p.tensors)
    if (tensor.name == "L1.wq") CHECK(p.weights[static_cast<std::size_t>(tensor.weight)].rows.size() == 18);
}

TEST_CASE("pages: every page is read, and every one that matches models builds one") {
  std::vector<std::string> built;
  for (const std::string& name : test::all_fixtures()) {
    const json::value fixture = test::load_fixture(name);
    built.push_back(test::build(test::make_model(fixture), test::fixture_options(fixture)).page);
  }
  for (const std::string& name : test::all_folders()) {
    INFO(name);
    const Result<Program> program = test::build_folder(test::all_pages(), name);
    INFO(program.status().text);
    CHECK(program.ok());
    if (program.ok()) built.push_back(program->page);
  }
  for (const auto& entry : std::filesystem::directory_iterator{test::source_directory() / "configs/architectures"}) {
    const std::string text = test::read_text(entry.path()), page = entry.path().stem().string();
    INFO(page);
    const bool a_base = text.find("\nmatches = ") == std::string::npos;  // others extend it
    CHECK((a_base || std::find(built.begin(), built.end(), page) != built.end()));
  }
}

TEST_CASE("pages: what is left out is said") {
  const Program p = test::build(test::load_model("hf/llama4"));
  CHECK(std::any_of(p.notes.begin(), p.notes.end(),
                    [](const std::string& note) { return note.find("tensors that match \"vision_model.*\"") != std::string::npos; }));
}

TEST_CASE("pages: a key that means nothing to the family is not mentioned") {
  const std::string model = test::replaced(test::kSmallModel, "\"tiny.context\"", "\"tiny.noise\": 3, \"tiny.context\"");
  const auto mentioned = [&](const std::string& page) {
    const auto program = test::build_with({{"small.toml", page}}, model);
    INFO(program.status().text);
    REQUIRE(program.ok());
    return std::any_of(program->notes.begin(), program->notes.end(),
                       [](const std::string& note) { return note.find("\"tiny.noise\"") != std::string::npos; });
  };
  CHECK(mentioned(test::kSmallPage));
  CHECK(!mentioned(test::replaced(test::kSmallPage, "[architecture]\n", "[architecture]\nignore = [\"{arch}.noi*\"]\n")));
}

TEST_CASE("pages: every decoder gives the rows under its head") {
  for (const char* name : {"gguf/llama", "gguf/gemma3", "hf/cohere", "hf/granite", "hf/phi"}) {
    INFO(name);
    BuildOptions options;
    options.outputs = {"hidden"};
    const Program alone = test::build(test::load_model(name), options);
    CHECK(verify(alone).text == "");
    options.outputs = {"logits", "hidden"};
    const Program both = test::build(test::load_model(name), options);
    CHECK(verify(both).text == "");
    CHECK(alone.ops.size() < both.ops.size());
  }
}

TEST_CASE("pages: a page of one's own overrides a page of the same name") {
  const test::TemporaryDirectory mine;
  std::ofstream{mine.path() / "llama.toml"} << test::replaced(
      test::read_text(test::source_directory() / "configs/architectures/llama.toml"), "[hparams]", "[hparams]\nkind = \"'gelu'\"");
  config::Diagnostics diagnostics;
  const auto pages = Pages::load({test::source_directory() / "configs/architectures", mine.path()}, diagnostics);
  REQUIRE(diagnostics.ok());
  const Result<Program> p = pages->build(test::load_model("gguf/llama"), {});
  REQUIRE(p.ok());
  for (const Op& op : p->ops)
    if (op.code == op_glu) CHECK(op.ints[0] == 2);
}

TEST_CASE("pages: prefixes are settled once") {
  // Both spellings of a prefix: the text half of a larger model, and the model alone.
  const Program p = test::build(test::load_model("hf/qwen2_5_vl"));
  CHECK(p.width == 64);
  CHECK(std::any_of(p.notes.begin(), p.notes.end(),
                    [](const std::string& note) { return note.find("program vision of page qwen2_5_vl is not built") == 0; }));
}

TEST_CASE("pages: a window as long as the context keeps all positions") {
  const Program p = test::build(test::load_model("gguf/phi3"));
  REQUIRE(p.groups.size() == 1);
  CHECK(p.groups[0].window == 0);
}

TEST_CASE("pages: the ABI's view has all of a program") {
  const Program p = test::build(test::load_model("gguf/gemma3"));
  const ProgramView view{p, {}};
  CHECK(view.get()->n_tensors == p.tensors.size());
  CHECK(view.get()->n_ops == p.ops.size());
  CHECK(view.get()->n_groups == 2);
  CHECK(std::string{view.get()->tensors[0].name} == p.tensors[0].name);
}
