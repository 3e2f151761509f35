// Rotary recipes against numbers of other implementations (rope_vectors.json, made by tests/programs/rope_vectors.py) and of the field.
#include <cmath>

#include "program/rope_recipe.hpp"
#include "small_page.hpp"

using namespace mekik;
using namespace mekik::program;

namespace {

RopeRecipe made(const RopeRequest& request) {
  Result<RopeRecipe> out = rope_recipe(request);
  INFO(out.status().text);
  REQUIRE(out.ok());
  return std::move(*out);
}

RopeRequest llama_3(std::int64_t dim, double factor) {
  RopeRequest r;
  r.dim = dim;
  r.base = 5e5;
  r.context = 131072;
  r.scaling = {{"rope_type", Datum::of(std::string{"llama3"})},
               {"factor", Datum::of(factor)},
               {"low_freq_factor", Datum::of(1.0)},
               {"high_freq_factor", Datum::of(4.0)},
               {"original_max_position_embeddings", Datum::of(std::int64_t{8192})}};
  return r;
}

}  // namespace

TEST_CASE("rope: divisors by wavelength, case B120") {
  for (const char* spelling : {"rope_type", "type"}) {
    RopeRequest r = llama_3(64, 32), plain = r;
    r.scaling[0].first = spelling;
    plain.scaling.clear();
    const auto scaled = made(r).frequencies, original = made(plain).frequencies;
    const auto divisor = [&](std::size_t i) { return original[i] / scaled[i]; };
    for (std::size_t i = 0; i <= 14; ++i) CHECK(divisor(i) == Approx(1).epsilon(1e-12));
    CHECK(divisor(15) == Approx(1.651329).epsilon(1e-6));
    CHECK(divisor(16) == Approx(3.292262).epsilon(1e-6));
    CHECK(divisor(17) == Approx(9.666729).epsilon(1e-6));
    for (std::size_t i = 18; i <= 31; ++i) CHECK(divisor(i) == Approx(32).epsilon(1e-12));
  }
  RopeRequest r = llama_3(128, 8), plain = r;
  plain.scaling.clear();
  const auto scaled = made(r).frequencies, original = made(plain).frequencies;
  const auto divisor = [&](std::size_t i) { return original[i] / scaled[i]; };
  CHECK(divisor(28) == Approx(1).epsilon(1e-12));
  CHECK(divisor(29) == Approx(1.207484).epsilon(1e-6));
  CHECK(divisor(30) == Approx(1.553415).epsilon(1e-6));
  CHECK(divisor(34) == Approx(5.257327).epsilon(1e-6));
  CHECK(divisor(35) == Approx(8).epsilon(1e-12));
  CHECK(divisor(63) == Approx(8).epsilon(1e-12));
}

TEST_CASE("rope: recipes against transformers") {
  const json::value cases = test::parse_json(test::read_text(test::source_directory() / "tests/programs/rope_vectors.json"));
  REQUIRE(cases.get_array().size() >= 12);
  for (const json::value& one : cases.get_array()) {
    RopeRequest r;
    r.dim = json::find(one, "dim")->get_int64();
    r.base = json::find(one, "base")->to_number<double>();
    r.context = json::find(one, "context")->to_number<double>();
    r.planned = json::find(one, "planned")->to_number<double>();
    if (const json::value* original = json::find(one, "original")) r.original = original->to_number<double>();
    for (const auto& member : json::find(one, "scaling")->get_object()) {
      Datum value;
      REQUIRE(from_json(member.value(), value) == "");
      r.scaling.emplace_back(std::string{member.key()}, value);
    }
    INFO(json::serialize(*json::find(one, "scaling")) << " planned " << r.planned);
    const RopeRecipe out = made(r);
    CHECK(out.magnitude == Approx(json::find(one, "magnitude")->to_number<double>()).epsilon(1e-7));
    const auto& expected = json::find(one, "frequencies")->get_array();
    REQUIRE(expected.size() == out.frequencies.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(out.frequencies[i] == Approx(expected[i].to_number<double>()).epsilon(2e-6));
  }
}

TEST_CASE("rope: GGUF's flat keys mean the same") {
  RopeRequest hf;
  hf.dim = 32;
  hf.base = 1e6;
  hf.context = 131072;
  hf.scaling = {{"rope_type", Datum::of(std::string{"yarn"})},
                {"factor", Datum::of(4.0)},
                {"original_max_position_embeddings", Datum::of(std::int64_t{32768})},
                {"beta_fast", Datum::of(16.0)},
                {"beta_slow", Datum::of(2.0)}};
  RopeRequest gguf = hf;
  gguf.flat = true;
  gguf.scaling = {{"type", Datum::of(std::string{"yarn"})},
                  {"factor", Datum::of(4.0)},
                  {"original_context_length", Datum::of(std::int64_t{32768})},
                  {"yarn_beta_fast", Datum::of(16.0)},
                  {"yarn_beta_slow", Datum::of(2.0)},
                  {"finetuned", Datum::of(true)}};
  CHECK(made(hf).frequencies == made(gguf).frequencies);
  CHECK(made(hf).magnitude == made(gguf).magnitude);
  gguf.scaling.emplace_back("yarn_log_multiplier", Datum::of(0.1));
  CHECK(made(gguf).magnitude == 1);
  // A factor without a kind is linear there, and a mistake in config.json.
  gguf.scaling = {{"factor", Datum::of(4.0)}};
  RopeRequest plain = gguf;
  plain.scaling.clear();
  CHECK(made(gguf).frequencies[3] == made(plain).frequencies[3] / 4);
  hf.scaling = {{"factor", Datum::of(4.0)}};
  CHECK(rope_recipe(hf).status().code == Code::unsupported);
}

TEST_CASE("rope: what no recipe knows is refused") {
  RopeRequest r = llama_3(64, 8);
  r.scaling.emplace_back("smoothness", Datum::of(1.0));
  CHECK(rope_recipe(r).status().text == "the rotary scaling has a key \"smoothness\" that no recipe knows");
  r = llama_3(64, 8);
  r.scaling[0].second = Datum::of(std::string{"spiral"});
  CHECK(rope_recipe(r).status().text.find("rotary scaling of kind \"spiral\" is not known") == 0);
  r = llama_3(64, 8);
  r.scaling[1].second = Datum::of(0.0);
  CHECK(rope_recipe(r).status().text == "llama3 scaling: factor must be positive");
  r = llama_3(1, 8);
  CHECK(!rope_recipe(r).ok());
  r = llama_3(64, 8);
  r.base = std::nan("");
  CHECK(!rope_recipe(r).ok());
}

TEST_CASE("rope: a key that a hyperparameter of the page names is its own business") {
  const std::string model =
      test::replaced(test::kSmallModel, "\"tiny.width\"", "\"tiny.scaling.type\": \"none\", \"tiny.scaling.bend\": 0.1, \"tiny.width\"");
  const std::string page =
      test::replaced(test::kSmallPage, "base = \"10000.0\"", "base = \"10000.0\"\nscaling = { gguf = \"{arch}.scaling\" }");
  CHECK(test::complaint(page, model).find("the rotary scaling has a key \"bend\" that no recipe knows") != std::string::npos);
  CHECK(test::complaint(test::replaced(page, "heads = \"4\"", "heads = \"4\"\nbend = { gguf = \"{arch}.scaling.bend\" }"), model) == "");
}

TEST_CASE("rope: lists chosen by the planned length are part of the position key") {
  const program::ModelMeta model = test::load_model("gguf/phi3");
  BuildOptions options;
  options.context = 4096;
  const Program near = test::build(model, options), far = test::build(model);
  CHECK(near.position_key == "main=longrope short");
  CHECK(far.position_key == "main=longrope long");
  for (const Program* p : {&near, &far})
    for (const Tensor& tensor : p->tensors)
      if (tensor.name == "rope:main") {
        const WeightRecipe& recipe = p->weights[static_cast<std::size_t>(tensor.weight)];
        CHECK(model.tensors[recipe.host_divisors - 1].name == (p == &near ? "rope_factors_short.weight" : "rope_factors_long.weight"));
        CHECK(recipe.host.size() == 32);
      }
}

TEST_CASE("rope: LongRoPE with a magnitude for each list") {
  RopeRequest r;
  r.dim = 4;
  r.base = 1e4;
  r.context = 4096;
  r.planned = 512;
  r.original = 1024;
  const Datum ones = Datum::of(std::vector<Datum>{Datum::of(1.0), Datum::of(1.0)});
  r.scaling = {{"type", Datum::of(std::string{"longrope"})},
               {"short_factor", ones},
               {"long_factor", ones},
               {"short_mscale", Datum::of(1.2)},
               {"long_mscale", Datum::of(1.3)}};
  CHECK(made(r).magnitude == 1.2);
  r.planned = 2048;
  CHECK(made(r).magnitude == 1.3);
}

TEST_CASE("rope: stored divisors") {
  const program::ModelMeta model = test::load_model("gguf/llama3");
  const Program p = test::build(model);
  for (const Tensor& tensor : p.tensors)
    if (tensor.name == "rope:main")
      CHECK(model.tensors[p.weights[static_cast<std::size_t>(tensor.weight)].host_divisors - 1].name == "rope_freqs.weight");
}
