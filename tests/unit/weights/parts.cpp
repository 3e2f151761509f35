#include "stored.hpp"

using namespace mekik;
using namespace mekik::test;
using What = program::AxisStep::What;

namespace {

std::vector<float> counted(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i);
  return values;
}

void check_panels(Stored& stored, const std::vector<float>& want) {
  CHECK(stored.decoded() == want);
  CHECK(stored.factored(1) == want);
  CHECK(stored.factored(3) == want);
  CHECK(stored.decoded() == want);
}

}  // namespace

TEST_CASE_METHOD(Stored, "a matrix is turned") {
  builder.tensor("t", kF32, {5, 7}, float_bytes(counted(35)));  // [7][5]
  program::WeightRecipe turned = recipe(1, 5, 7);
  turned.parts = {{0, {{What::order, {1, 0}}}}};
  REQUIRE(open(turned).text == "");
  std::vector<float> want;
  for (std::size_t row = 0; row < 5; ++row)
    for (std::size_t column = 0; column < 7; ++column) want.push_back(static_cast<float>(column * 5 + row));
  check_panels(*this, want);
  CHECK(store->scheme(0) == "f32");
  CHECK(store->notes().empty());
}

TEST_CASE_METHOD(Stored, "experts are turned one by one, halves taken apart and joined again") {
  builder.tensor("t", kF32, {6, 4, 3}, float_bytes(counted(72)));  // [3 experts][4 in][6 = 3 x 2 out]
  program::WeightRecipe joined = recipe(3, 6, 4);
  const auto half = [](std::int64_t which) {
    return program::WeightRecipe::Part{0, {{What::view, {3, 4, 3, 2}}, {What::take, {3, which, 1}}, {What::view, {}}, {What::order, {}}}};
  };
  program::WeightRecipe::Part even = half(0), odd = half(1);
  for (auto* part : {&even, &odd}) {
    part->steps.erase(part->steps.begin() + 2);
    part->steps[2].numbers = {0, 2, 3, 1};  // [3][3 out][1][4 in]
  }
  joined.parts = {even, odd};
  joined.join_axis = 1;
  REQUIRE(open(joined).text == "");
  std::vector<float> want;
  for (std::size_t expert = 0; expert < 3; ++expert)
    for (std::size_t part = 0; part < 2; ++part)
      for (std::size_t out = 0; out < 3; ++out)
        for (std::size_t in = 0; in < 4; ++in) want.push_back(static_cast<float>(expert * 24 + in * 6 + out * 2 + part));
  check_panels(*this, want);
}

TEST_CASE_METHOD(Stored, "tensors are joined along the last axis, and computed") {
  builder.tensor("a", kF32, {2, 3}, float_bytes(counted(6)));
  builder.tensor("b", kF32, {3, 3}, float_bytes(counted(9)));
  program::WeightRecipe joined = recipe(1, 5, 3);  // [3][5] read as [5][3]
  joined.parts = {{0, {}}, {1, {}}};
  joined.join_axis = 1;
  joined.value = {{program::ValueStep::What::weight, 0}, {program::ValueStep::What::constant, 10}, {program::ValueStep::What::add, 0}};
  REQUIRE(open(joined).text == "");
  check_panels(*this, {10, 11, 10, 11, 12, 12, 13, 13, 14, 15, 14, 15, 16, 17, 18});
}

TEST_CASE_METHOD(Stored, "a quantised tensor whose last axis moves is decoded, and that is said") {
  add("t", kQ8_0, {64, 32}, 32, 34);
  const std::vector<float> source = tensor(0, 32, 64);
  program::WeightRecipe turned = recipe(1, 64, 32);
  turned.parts = {{0, {{What::order, {1, 0}}}}};
  REQUIRE(open(turned).text == "");
  std::vector<float> want;
  for (std::size_t row = 0; row < 64; ++row)
    for (std::size_t column = 0; column < 32; ++column) want.push_back(source[column * 64 + row]);
  check_panels(*this, want);
  REQUIRE(store->notes().size() == 1);
  CHECK(store->notes()[0].find("last axis") != std::string::npos);
}

TEST_CASE_METHOD(Stored, "steps that do not fit are refused") {
  builder.tensor("t", kF32, {6, 4}, float_bytes(counted(24)));
  const auto refused = [&](std::vector<program::AxisStep> steps, std::int64_t axis = 0) {
    program::WeightRecipe wrong = recipe(1, 4, 6);
    wrong.parts = {{0, std::move(steps)}};
    wrong.join_axis = axis;
    return open(wrong).code == Code::internal;
  };
  CHECK_FALSE(refused({}));
  CHECK(refused({{What::view, {5, 5}}}));
  CHECK(refused({{What::view, {-4, -6}}}));
  CHECK(refused({{What::take, {0, 1, 4}}}));
  CHECK(refused({{What::take, {0, -1, 4}}}));
  CHECK(refused({{What::take, {2, 0, 1}}}));
  CHECK(refused({{What::take, {0, 0}}}));
  CHECK(refused({{What::take, {0, INT64_MAX, 4}}}));
  CHECK(refused({{What::order, {0, 0}}}));
  CHECK(refused({{What::order, {1}}}));
  program::WeightRecipe moved = recipe(1, 4, 6);
  moved.parts = {{0, {{What::order, {1, 0}}, {What::view, {24}}}}};
  CHECK(open(moved).code == Code::unsupported);
  CHECK(refused({{What::take, {0, 0, 2}}}));
  CHECK(refused({}, 2));
  CHECK(refused({}, -1));
}
