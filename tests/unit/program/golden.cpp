// Programs as text against golden files. MEKIK_UPDATE_GOLDEN=1 writes them anew; read the difference before committing it.
#include <cstdlib>

#include "fixtures.hpp"

using namespace mekik;
using namespace mekik::program;

TEST_CASE("golden: programs as text") {
  for (const char* name :
       {"gguf/llama", "gguf/gemma3", "gguf/phi3", "gguf/deepseek2", "gguf/lfm2", "hf/mixtral", "hf/qwen3_next", "hf/gpt_oss", "hf/bert"}) {
    const json::value fixture = test::load_fixture(name);
    std::string text;
    {
      Result<Program> built = test::all_pages().build(test::make_model(fixture), test::fixture_options(fixture));
      INFO(built.status().text);
      REQUIRE(built.ok());
      text = to_text(fold(*built));
      for (const std::string& line : built->assumed) text += "assumed: " + line + "\n";
      for (const std::string& line : built->notes) text += "note: " + line + "\n";
    }
    std::string file{name};
    file[file.find('/')] = '_';
    const auto path = test::source_directory() / "tests/programs/golden" / (file + ".txt");
    if (std::getenv("MEKIK_UPDATE_GOLDEN") != nullptr) std::ofstream{path} << text;
    INFO(name);
    CHECK(test::read_text(path) == text);
  }
}
