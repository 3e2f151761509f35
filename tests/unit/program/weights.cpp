// Weight rows: a recipe names the very numbers that view, take, order, join and stack name.
#include <algorithm>
#include <numeric>

#include "small_page.hpp"

using namespace mekik;
using namespace mekik::program;

namespace {

using Sizes = std::vector<std::int64_t>;

// A plain N-dimensional array of (tensor, element) numbers: tensor * 10000 + element.
struct Array {
  Sizes sizes;
  std::vector<std::int64_t> items;
};

std::int64_t total(const Sizes& sizes) { return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>()); }

Array stored(std::uint32_t tensor, const Sizes& sizes) {
  Array out{sizes, std::vector<std::int64_t>(static_cast<std::size_t>(total(sizes)))};
  std::iota(out.items.begin(), out.items.end(), std::int64_t{tensor} * 10000);
  return out;
}

// Element (index permuted or shifted) by element, with no cleverness.
Array moved(const Array& a, const Sizes& to, const std::function<Sizes(const Sizes&)>& from) {
  Array out{to, {}};
  Sizes at(to.size(), 0);
  for (std::int64_t i = 0; i < total(to); ++i) {
    const Sizes source = from(at);
    std::int64_t flat = 0;
    for (std::size_t d = 0; d < source.size(); ++d) flat = flat * a.sizes[d] + source[d];
    out.items.push_back(a.items[static_cast<std::size_t>(flat)]);
    for (std::size_t d = to.size(); d-- > 0;)
      if (++at[d] < to[d]) break;
      else at[d] = 0;
  }
  return out;
}

Array step(const Array& a, const AxisStep& s) {
  if (s.what == AxisStep::What::view) return {s.numbers, a.items};
  Sizes to = a.sizes;
  if (s.what == AxisStep::What::take) {
    const auto axis = static_cast<std::size_t>(s.numbers[0]);
    to[axis] = s.numbers[2];
    return moved(a, to, [&](Sizes at) {
      at[axis] += s.numbers[1];
      return at;
    });
  }
  for (std::size_t d = 0; d < to.size(); ++d) to[d] = a.sizes[static_cast<std::size_t>(s.numbers[d])];
  return moved(a, to, [&](const Sizes& at) {
    Sizes from(at.size());
    for (std::size_t d = 0; d < at.size(); ++d) from[static_cast<std::size_t>(s.numbers[d])] = at[d];
    return from;
  });
}

// The numbers that a recipe names, in order.
std::vector<std::int64_t> named(const WeightRecipe& recipe, const ModelMeta& model) {
  std::vector<std::int64_t> out;
  for (const RowRun& run : recipe.rows) {
    const std::int64_t columns = model.tensors[run.source].shape.back();
    for (std::uint64_t r = 0; r < run.count; ++r)
      for (std::uint64_t c = 0; c < recipe.k; ++c)
        out.push_back(std::int64_t{run.source} * 10000 +
                      (static_cast<std::int64_t>(run.first) + static_cast<std::int64_t>(r) * run.step) * columns +
                      static_cast<std::int64_t>(recipe.column0 + c));
  }
  REQUIRE(recipe.join_axis == 0);  // the cases below join along the first axis only
  for (const WeightRecipe::Part& part : recipe.parts) {
    Array a = stored(part.source, model.tensors[part.source].shape);
    for (const AxisStep& s : part.steps) a = step(a, s);
    out.insert(out.end(), a.items.begin(), a.items.end());
  }
  return out;
}

struct Made {
  WeightRecipe recipe;
  std::vector<std::int64_t> numbers;
  std::string scheme;
};

// The weight "w" of a page with this row, used as the matrix of a product.
Made make(const std::string& row, const std::string& tensors, std::int64_t inputs) {
  const std::string page = R"page([architecture]
name = "one"
matches = { gguf = ["tiny"] }
[hparams]
layers = "1"
h = "3"
[weights]
embed = { gguf = "embed", shape = [5, )page" +
                           std::to_string(inputs) + R"page(] }
[weights.w]
)page" + row + R"page(
[program]
begin = ["x = embedding(tokens, embed)"]
layer = ["x = x"]
end = ["logits = linear(take_rows(x), w)"]
)page";
  const std::string model = R"({"format": "gguf", "config": {"general.architecture": "tiny"}, "tensors": [["embed", "f32", [5, )" +
                            std::to_string(inputs) + "]], " + tensors + "]}";
  const Result<Program> built = test::build_with({{"one.toml", page}}, model);
  INFO(built.status().text);
  REQUIRE(built.ok());
  REQUIRE(verify(*built).text == "");
  for (const Tensor& tensor : built->tensors)
    if (tensor.name == "w") {
      const WeightRecipe& recipe = built->weights[static_cast<std::size_t>(tensor.weight)];
      return {recipe, named(recipe, test::make_model(test::parse_json(model))), tensor.scheme};
    }
  FAIL("no weight");
  return {};
}

Array view(const Array& a, const Sizes& sizes) { return step(a, {AxisStep::What::view, sizes}); }
Array take(const Array& a, std::int64_t axis, std::int64_t start, std::int64_t count) {
  return step(a, {AxisStep::What::take, {axis, start, count}});
}
Array order(const Array& a, const Sizes& axes) { return step(a, {AxisStep::What::order, axes}); }

}  // namespace

TEST_CASE("weights: rows move without being decoded") {
  const Array w = stored(1, {12, 4});
  const std::string q = R"(["w", "q4_0", [12, 4]])";
  Made m = make("shape = [12, 4]\ngguf = \"w\"", q, 4);
  CHECK(m.numbers == w.items);
  CHECK(m.recipe.rows.size() == 1);
  CHECK(m.scheme == "q4_0");
  m = make("shape = [\"h\", 4, 4]\ngguf = { from = \"w\", view = [\"h\", 2, 2, 4], order = [0, 2, 1, 3] }", q, 4);
  CHECK(m.numbers == order(view(w, {3, 2, 2, 4}), {0, 2, 1, 3}).items);
  CHECK(m.recipe.rows.size() == 6);
  CHECK(m.scheme == "q4_0");
  m = make("shape = [\"h\", 2, 4]\ngguf = { from = \"w\", view = [\"h\", 4, 4], take = [1, 1, 2] }", q, 4);
  CHECK(m.numbers == take(view(w, {3, 4, 4}), 1, 1, 2).items);
  CHECK(m.recipe.rows.size() == 3);
  m = make("shape = [6, 4]\ngguf = { from = \"w\", view = [6, 2, 4], take = [1, 1, 1] }", q, 4);
  CHECK(m.numbers == take(view(w, {6, 2, 4}), 1, 1, 1).items);
  CHECK(m.recipe.rows.size() == 1);  // every other row is one run
  CHECK(m.recipe.rows[0].step == 2);
  m = make("shape = [5, 4]\ngguf = { from = \"w\", take = [0, 7, 5] }", q, 4);
  CHECK(m.numbers == take(w, 0, 7, 5).items);
}

TEST_CASE("weights: columns of rows") {
  const Array w = stored(1, {6, 8});
  const Made m = make("shape = [6, 4]\ngguf = { from = \"w\", take = [1, 4, 4] }", R"(["w", "q4_0", [6, 8]])", 4);
  CHECK(m.numbers == take(w, 1, 4, 4).items);
  CHECK(m.recipe.column0 == 4);
  CHECK(m.scheme == "q4_0");
}

TEST_CASE("weights: a moved last axis is decoded") {
  const Array w = stored(1, {4, 6});
  Made m = make("shape = [6, 4]\ngguf = { from = \"w\", order = [1, 0] }", R"(["w", "q4_0", [4, 6]])", 4);
  CHECK(m.numbers == order(w, {1, 0}).items);
  CHECK(m.recipe.rows.empty());
  CHECK(m.scheme == "f32");
  m = make("shape = [3, 4]\ngguf = { from = \"w\", view = [4, 3, 2], take = [2, 1, 1], order = [1, 0, 2] }", R"(["w", "f16", [4, 6]])", 4);
  CHECK(m.numbers == order(take(view(w, {4, 3, 2}), 2, 1, 1), {1, 0, 2}).items);
}

TEST_CASE("weights: joined and stacked") {
  const Array a = stored(1, {4, 4}), b = stored(2, {6, 4});
  std::vector<std::int64_t> both = a.items;
  both.insert(both.end(), b.items.begin(), b.items.end());
  const std::string two = R"(["a", "q4_0", [4, 4]], ["b", "q4_0", [6, 4]])";
  Made m = make("shape = [10, 4]\ngguf = { join = [\"a\", \"b\"] }", two, 4);
  CHECK(m.numbers == both);
  CHECK(m.recipe.rows.size() == 2);
  m = make("shape = [10, 4]\ngguf = { join = [\"a\", \"b\"] }", R"(["a", "q4_0", [4, 4]], ["b", "q8_0", [6, 4]])", 4);
  CHECK(m.numbers == both);
  CHECK(m.recipe.parts.size() == 2);  // of different schemes, so decoded
  CHECK(m.scheme == "f32");
  const std::string three = R"(["e0", "q4_0", [2, 4]], ["e1", "q4_0", [2, 4]], ["e2", "q4_0", [2, 4]])";
  m = make("shape = [3, 2, 4]\ngguf = { from = \"e{e}\", stack = \"h\" }", three, 4);
  CHECK(m.numbers.size() == 24);
  CHECK(m.numbers[8] == 20000);
  CHECK(m.recipe.rows.size() == 3);
  m = make("shape = [3, 4]\ngguf = { from = \"e{e}\", stack = \"h\", take = [1, 1, 1] }", three, 4);
  CHECK(m.numbers == std::vector<std::int64_t>{10004, 10005, 10006, 10007, 20004, 20005, 20006, 20007, 30004, 30005, 30006, 30007});
}

TEST_CASE("weights: alternatives by name and by scheme") {
  const std::string row = "shape = [4, 4]\ngguf = [{ from = \"w\", scheme = \"mxfp4\" }, { from = \"w\", order = [1, 0] }]";
  CHECK(make(row, R"(["w", "mxfp4", [4, 4]])", 4).scheme == "mxfp4");
  CHECK(make(row, R"(["w", "bf16", [4, 4]])", 4).recipe.rows.empty());
  CHECK(make("shape = [4, 4]\ngguf = [\"new\", \"old\"]", R"(["old", "f32", [4, 4]])", 4).scheme == "f32");
}

TEST_CASE("weights: values are computed in F32, of float tensors") {
  const Made m = make("shape = [4, 4]\ngguf = \"w\"\nvalue = \"-exp(w * 2) + 1\"", R"(["w", "bf16", [4, 4]])", 4);
  CHECK(m.scheme == "f32");
  using What = ValueStep::What;
  std::vector<What> steps;
  for (const ValueStep& s : m.recipe.value) steps.push_back(s.what);
  CHECK(steps ==
        std::vector<What>{What::weight, What::constant, What::multiply, What::exponential, What::negate, What::constant, What::add});
  const std::string page = test::replaced(test::kSmallPage, "norm = { gguf = \"{l}.norm\", shape = [\"width\"] }",
                                          "norm = { gguf = \"{l}.norm\", shape = [\"width\"], value = \"1 + w\" }");
  const std::string model = test::replaced(test::kSmallModel, "[\"{l}.norm\", \"f32\"", "[\"{l}.norm\", \"q8_0\"");
  CHECK(test::complaint(page, model).find("a value is computed from float tensors only, \"0.norm\" is q8_0") != std::string::npos);
}

TEST_CASE("weights: a tied weight is one tensor") {
  const Program p = test::build(test::load_model("gguf/llama"));
  std::size_t big = 0;
  for (const Tensor& tensor : p.tensors)
    if (tensor.role == MEKIK_ROLE_WEIGHT && tensor.shape == Sizes{49152, 576}) ++big;
  CHECK(big == 1);
}

TEST_CASE("weights: layers that name the same tensors have one weight") {
  const std::string page = test::replaced(test::replaced(test::kSmallPage, "wq = { gguf = \"{l}.q\"", "wq = { gguf = \"{l - l % 2}.q\""),
                                          "[architecture]\n", "[architecture]\nignore = [\"1.q\"]\n");
  const auto program = test::build_with({{"small.toml", page}}, test::kSmallModel);
  INFO(program.status().text);
  REQUIRE(program.ok());
  CHECK(std::count_if(program->weights.begin(), program->weights.end(), [](const WeightRecipe& recipe) { return recipe.symbol == "wq"; }) ==
        1);
  CHECK(std::count_if(program->weights.begin(), program->weights.end(), [](const WeightRecipe& recipe) { return recipe.symbol == "wo"; }) ==
        2);
}

TEST_CASE("weights: numbers of the page are computed place by place") {
  const std::string page = test::replaced(test::replaced(test::kSmallPage, "[program]",
                                                         "slope = { shape = [\"heads\", 1], numbers = \"-pow(2, -i) * (l + 1)\" }\nflat = "
                                                         "{ shape = [\"heads\"], numbers = \"0.5\" }\n[program]"),
                                          "attention(q, q, q)", "attention(q, q, q, sinks = flat) * slope");
  const auto program = test::build_with({{"small.toml", page}}, test::kSmallModel);
  INFO(program.status().text);
  REQUIRE(program.ok());
  const auto made = [&](const std::string& symbol, std::int32_t layer) {
    for (const WeightRecipe& recipe : program->weights)
      if (recipe.symbol == symbol && recipe.layer == layer) return recipe.host;
    return std::vector<float>{};
  };
  CHECK(made("slope", 0) == std::vector<float>{-1, -0.5f, -0.25f, -0.125f});
  CHECK(made("slope", 1) == std::vector<float>{-2, -1, -0.5f, -0.25f});
  CHECK(made("flat", -1) == std::vector<float>{0.5f, 0.5f, 0.5f, 0.5f});
  CHECK(verify(*program).text == "");
}
