// Pages and metadata with random damage: an answer or an error, never a crash, within bounded time.
#include <random>

#include "small_page.hpp"

using namespace mekik;
using namespace mekik::program;

namespace {

std::string damaged(std::string text, std::mt19937& random) {
  const std::string alphabet = "{}[]()'\"=,.+-*/%<>0129exlnw \n";
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (std::size_t n = 1 + below(3); n > 0 && !text.empty(); --n) {
    const std::size_t at = below(text.size());
    switch (below(4)) {
      case 0:
        text[at] = alphabet[below(alphabet.size())];
        break;
      case 1:
        text.erase(at, 1 + below(8));
        break;
      case 2:
        text.insert(at, 1 + below(3), alphabet[below(alphabet.size())]);
        break;
      default:
        text.insert(at, text.substr(below(text.size()), 1 + below(20)));
        break;
    }
  }
  return text;
}

}  // namespace

TEST_CASE("mutations: damaged pages give an answer or an error") {
  std::mt19937 random{7};
  const ModelMeta model = test::make_model(test::parse_json(test::kSmallModel));
  std::size_t built = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    const test::TemporaryDirectory directory;
    std::ofstream{directory.path() / "page.toml"} << damaged(test::kSmallPage, random);
    config::Diagnostics diagnostics;
    const auto pages = Pages::load({directory.path()}, diagnostics);
    if (!diagnostics.ok()) {
      CHECK(!diagnostics.render().empty());
      continue;
    }
    const Result<Program> program = pages->build(model, {});
    if (program.ok()) {
      ++built;
      const Status status = verify(*program);
      INFO(status.text);
      CHECK(status.ok());
      CHECK(verify(fold(*program)).ok());
    } else {
      ++refused;
      CHECK(program.status().code != Code::internal);
    }
  }
  CHECK(built > 20);
  CHECK(refused > 100);
}

TEST_CASE("mutations: damaged metadata gives an answer or an error") {
  std::mt19937 random{8};
  const std::string whole = test::read_text(test::source_directory() / "tests/programs/gguf/deepseek2.json");
  std::size_t tried = 0;
  for (int i = 0; i < 1500; ++i) {
    const json::ParseLimits limits{64, 64u << 20, true, true};
    const Result<json::value> fixture = json::parse(damaged(whole, random), limits);
    const auto usable = [&] {
      for (const char* key : {"format", "config", "tensors", "layers"})
        if (!fixture.ok() || json::find(*fixture, key) == nullptr) return false;
      if (!json::find(*fixture, "format")->is_string() || !json::find(*fixture, "layers")->is_int64() ||
          !json::find(*fixture, "tensors")->is_array())
        return false;
      for (const json::value& row : json::find(*fixture, "tensors")->get_array()) {
        if (!row.is_array() || row.get_array().size() < 3 || !row.get_array()[0].is_string() || !row.get_array()[1].is_string() ||
            !row.get_array()[2].is_array())
          return false;
        for (const json::value& size : row.get_array()[2].get_array())
          if (!size.is_int64()) return false;
      }
      return json::find(*fixture, "layers")->get_int64() < 100;
    };
    if (!usable()) continue;
    ++tried;
    const Result<Program> program = test::all_pages().build(test::make_model(*fixture), {});
    if (!program.ok()) CHECK(program.status().code != Code::internal);
    else CHECK(verify(*program).ok());
  }
  CHECK(tried > 100);
}
