#include <thread>

#include "stored.hpp"

using namespace mekik;
using namespace mekik::test;

namespace {

// What a recipe of row runs means, by plain indexing.
std::vector<float> expected_rows(Stored& stored, const program::WeightRecipe& recipe, std::uint64_t tensor_rows, std::uint64_t tensor_k) {
  std::vector<float> out;
  for (const program::RowRun& run : recipe.rows) {
    const std::vector<float> source = stored.tensor(run.source, tensor_rows, tensor_k);
    for (std::uint64_t i = 0; i < run.count; ++i) {
      const auto row = static_cast<std::size_t>(static_cast<std::int64_t>(run.first) + static_cast<std::int64_t>(i) * run.step);
      const float* from = source.data() + row * tensor_k + recipe.column0;
      out.insert(out.end(), from, from + recipe.k);
    }
  }
  return out;
}

// Decoded and factored, whole and in panels, must give `want`.
void check_all_ways(Stored& stored, const program::WeightRecipe& made, const std::vector<float>& want) {
  REQUIRE(stored.open(made).text == "");
  CHECK(stored.decoded() == want);
  for (const std::uint64_t panel : {std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{16}, made.n}) CHECK(stored.factored(panel) == want);
}

}  // namespace

TEST_CASE_METHOD(Stored, "a quantised tensor moves as it is") {
  add("t", kQ4_K, {512, 40}, 256, 144);
  program::WeightRecipe whole = recipe(1, 40, 512);
  whole.rows = {{0, 0, 40, 1}};
  check_all_ways(*this, whole, tensor(0, 40, 512));
  REQUIRE(open(whole).ok());
  CHECK(store->scheme(0) == "q4_k");
  CHECK(store->forms()[0]->super_k == 256);
  CHECK(store->notes().empty());
}

TEST_CASE_METHOD(Stored, "rows in pairs become halves without being decoded") {
  constexpr std::uint64_t kHeads = 6, kDim = 32, kWidth = 64;
  add("q", kQ4_1, {kWidth, kHeads * kDim}, 32, 20);
  program::WeightRecipe halves = recipe(1, kHeads * kDim, kWidth);
  for (std::uint64_t head = 0; head < kHeads; ++head)
    for (std::uint64_t half = 0; half < 2; ++half) halves.rows.push_back({0, head * kDim + half, kDim / 2, 2});
  check_all_ways(*this, halves, expected_rows(*this, halves, kHeads * kDim, kWidth));
  REQUIRE(open(halves).ok());
  CHECK(store->scheme(0) == "q4_1");
}

TEST_CASE_METHOD(Stored, "runs may go backwards, far apart, and over several tensors") {
  add("a", kQ8_0, {96, 300}, 32, 34);
  add("b", kQ8_0, {96, 300}, 32, 34);
  program::WeightRecipe mixed = recipe(1, 53, 96);
  mixed.rows = {{0, 299, 20, -1}, {1, 0, 4, 90}, {0, 5, 1, 1}, {0, 6, 1, 1}, {1, 100, 26, 1}, {1, 126, 1, 1}};
  check_all_ways(*this, mixed, expected_rows(*this, mixed, 300, 96));
}

TEST_CASE_METHOD(Stored, "columns are cut on the edges of groups") {
  add("t", kQ4_0, {256, 20}, 32, 18);
  add("s", kQ6_K, {768, 20}, 256, 210);
  program::WeightRecipe cut = recipe(1, 20, 96);
  cut.column0 = 64;
  cut.rows = {{0, 0, 20, 1}};
  check_all_ways(*this, cut, expected_rows(*this, cut, 20, 256));
  REQUIRE(open(cut).ok());
  CHECK(store->scheme(0) == "q4_0");
  program::WeightRecipe supers = recipe(1, 10, 256);
  supers.column0 = 512;
  supers.rows = {{1, 1, 10, 2}};
  check_all_ways(*this, supers, expected_rows(*this, supers, 20, 768));
  REQUIRE(open(supers).ok());
  CHECK(store->scheme(0) == "q6_k");
}

TEST_CASE_METHOD(Stored, "columns cut inside a group are decoded, and that is said") {
  add("t", kQ4_0, {256, 20}, 32, 18);
  program::WeightRecipe cut = recipe(1, 20, 40);
  cut.column0 = 8;
  cut.rows = {{0, 0, 20, 1}};
  check_all_ways(*this, cut, expected_rows(*this, cut, 20, 256));
  REQUIRE(open(cut, "bf16").ok());
  CHECK(store->scheme(0) == "bf16");
  CHECK(store->forms()[0]->kept_num == MEKIK_BF16);
  REQUIRE(store->notes().size() == 1);
  CHECK(store->notes()[0].find("decoded to bf16") != std::string::npos);
}

TEST_CASE_METHOD(Stored, "tensors of different forms are decoded together") {
  add("a", kQ8_0, {64, 8}, 32, 34);
  add("b", kQ4_0, {64, 8}, 32, 18);
  program::WeightRecipe joined = recipe(1, 16, 64);
  joined.rows = {{0, 0, 8, 1}, {1, 0, 8, 1}};
  check_all_ways(*this, joined, expected_rows(*this, joined, 8, 64));
  REQUIRE(open(joined).ok());
  CHECK(store->scheme(0) == "f32");
  CHECK(store->notes()[0].find("forms differ") != std::string::npos);
}

TEST_CASE_METHOD(Stored, "experts are served one by one") {
  add("e", kQ8_0, {64, 10, 4}, 32, 34);
  program::WeightRecipe stack = recipe(4, 10, 64);
  stack.rows = {{0, 0, 40, 1}};
  check_all_ways(*this, stack, tensor(0, 40, 64));
  program::WeightRecipe every_other = recipe(4, 5, 64);
  for (std::uint64_t expert = 0; expert < 4; ++expert) every_other.rows.push_back({0, expert * 10 + 1, 5, 2});
  check_all_ways(*this, every_other, expected_rows(*this, every_other, 40, 64));
}

TEST_CASE_METHOD(Stored, "floats stay what they are, and are cut anywhere") {
  add("t", kF16, {30, 9}, 1, 2);
  program::WeightRecipe cut = recipe(1, 4, 7);
  cut.column0 = 5;
  cut.rows = {{0, 8, 4, -2}};
  check_all_ways(*this, cut, expected_rows(*this, cut, 9, 30));
  REQUIRE(open(cut).ok());
  CHECK(store->scheme(0) == "f16");
  CHECK(store->forms()[0]->kept_num == MEKIK_F16);
}

TEST_CASE_METHOD(Stored, "values are computed in F32") {
  builder.tensor("n", kF32, {4}, float_bytes({0, 0.5f, -2, 1e-3f}));
  using What = program::ValueStep::What;
  program::WeightRecipe one_plus = recipe(1, 1, 4);
  one_plus.rows = {{0, 0, 1, 1}};
  one_plus.value = {{What::constant, 1}, {What::weight, 0}, {What::add, 0}};
  check_all_ways(*this, one_plus, {1, 1.5f, -1, 1.001f});
  one_plus.value = {{What::weight, 0}, {What::exponential, 0}, {What::negate, 0}};
  REQUIRE(open(one_plus).ok());
  CHECK(decoded()[0] == -1);
  CHECK(decoded()[2] == Approx(-0.1353353));
  one_plus.value = {{What::weight, 0}, {What::add, 0}};
  CHECK(open(one_plus).code == Code::internal);
}

TEST_CASE_METHOD(Stored, "host values are divided by what the file holds") {
  builder.tensor("f", kF32, {2}, float_bytes({2, 4}));
  builder.tensor("zero", kF32, {1}, float_bytes({0}));
  program::WeightRecipe table = recipe(1, 2, 2);
  table.host = {1, 1, 0, 3};
  check_all_ways(*this, table, {1, 1, 0, 3});
  table.host_divisors = 1;
  check_all_ways(*this, table, {0.5f, 0.25f, 0, 3});
  table.host_divisors = 2;
  CHECK(open(table).code == Code::invalid);
}

TEST_CASE_METHOD(Stored, "a scheme that is not installed is named with its tensor") {
  add("blk.0.x", kQ8K, {256, 2}, 256, 292);
  add("ints", kI32, {8, 2}, 1, 4);
  program::WeightRecipe weight = recipe(1, 2, 256);
  weight.rows = {{0, 0, 2, 1}};
  const Status missing = open(weight);
  CHECK(missing.text.find("blk.0.x") != std::string::npos);
  CHECK(missing.text.find("q8_k") != std::string::npos);
  program::WeightRecipe integers = recipe(1, 2, 8);
  integers.rows = {{1, 0, 2, 1}};
  CHECK(open(integers).text.find("neither F32, F16 nor BF16") != std::string::npos);
}

TEST_CASE_METHOD(Stored, "recipes that leave their tensors are refused, not followed") {
  add("t", kQ8_0, {64, 8}, 32, 34);
  const auto refused = [&](program::RowRun run, std::uint64_t n, std::uint64_t k, std::uint64_t column0) {
    program::WeightRecipe wrong = recipe(1, n, k);
    wrong.rows = {run};
    wrong.column0 = column0;
    return open(wrong).code == Code::internal;
  };
  CHECK(refused({0, 0, 9, 1}, 9, 64, 0));
  CHECK(refused({0, 8, 1, 1}, 1, 64, 0));
  CHECK(refused({0, 0, 4, 3}, 4, 64, 0));
  CHECK(refused({0, 2, 4, -1}, 4, 64, 0));
  CHECK(refused({0, 0, 4, INT64_MAX}, 4, 64, 0));
  CHECK(refused({0, 0, 4, 1}, 5, 64, 0));
  CHECK(refused({0, 0, 4, 1}, 4, 64, 32));
  CHECK(refused({0, 0, 4, 1}, 4, 32, UINT64_MAX));
  CHECK(refused({7, 0, 4, 1}, 4, 64, 0));
  program::WeightRecipe whole = recipe(1, 8, 64);
  whole.rows = {{0, 0, 8, 1}};
  REQUIRE(open(whole).ok());
  float out[64];
  CHECK(store->decode(0, 0, 8, 9, out).code == Code::internal);
  CHECK(store->decode(0, 1, 0, 1, out).code == Code::internal);
  CHECK(open(whole, "q4_0").code == Code::invalid);
}

TEST_CASE_METHOD(Stored, "rows come from many threads at once") {
  constexpr std::uint64_t kRows = 256, kWidth = 256;
  add("t", kQ4_K, {kWidth, kRows}, 256, 144);
  program::WeightRecipe strided = recipe(1, kRows, kWidth);
  strided.rows = {{0, 0, kRows / 2, 2}, {0, 1, kRows / 2, 2}};
  const std::vector<float> want = expected_rows(*this, strided, kRows, kWidth);
  REQUIRE(open(strided).ok());
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      std::vector<float> out(16 * kWidth);
      for (std::uint64_t n0 = 0; n0 < kRows; n0 += 16)
        if (!store->decode(0, 0, n0, n0 + 16, out.data()).ok() ||
            !std::equal(out.begin(), out.end(), want.begin() + static_cast<std::ptrdiff_t>(n0 * kWidth)))
          ++wrong[t];
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
}

TEST_CASE_METHOD(Stored, "a file that shrinks after load gives an error that names the weight") {
  add("t", kQ8_0, {64, 8}, 32, 34);
  program::WeightRecipe whole = recipe(1, 8, 64);
  whole.rows = {{0, 0, 8, 1}};
  REQUIRE(open(whole).ok());
  std::filesystem::resize_file(path(), 64);
  float out[64];
  const Status shrunk = store->decode(0, 0, 0, 1, out);
  CHECK(shrunk.code == Code::io);
  CHECK(shrunk.text.find("\"w\" of layer 3") != std::string::npos);
  CHECK(shrunk.text.find("shrank while it was open") != std::string::npos);
}
