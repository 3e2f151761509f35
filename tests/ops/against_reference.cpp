// Every operation of the backend under test against the reference, over forms, shapes, chunks and ragged batches.
#include <cmath>

#include "programs.hpp"
#include "subject.hpp"
#include "support/catch.hpp"

namespace mekik::test {

namespace {

Part part(const std::vector<std::int32_t>& all, std::int32_t from, std::int32_t to, std::vector<std::int32_t> blocks, std::int32_t slot) {
  return {{all.begin() + from, all.begin() + to}, from, std::move(blocks), from == 0 ? -1 : slot, slot};
}
std::vector<std::int32_t> up_from(std::int32_t first, std::int32_t n) {
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(n));
  for (std::int32_t i = 0; i < n; ++i) blocks[static_cast<std::size_t>(i)] = first + i;
  return blocks;
}

using Rows = std::vector<float>;
void add_step(Session& session, const std::vector<Part>& parts, Rows& all) {
  const auto rows = session.step(parts);
  all.insert(all.end(), rows.begin(), rows.end());
}

// Two sequences, a ragged prefill, a mixed step and a decode; every row of every step. `whole`: sequences come in one step each.
Rows run_few(Backend& backend, ProgramBuilder& b, bool whole) {
  Session session{backend, b};
  const auto first = random_tokens(12, 7), second = random_tokens(12, 8);
  Rows all;
  add_step(session, {part(first, 0, 7, {5, 2, 9}, 3), part(second, 0, 3, {1, 0, 7}, 0)}, all);
  if (whole) return all;
  add_step(session, {part(second, 3, 10, {1, 0, 7}, 0), part(first, 7, 8, {5, 2, 9}, 3)}, all);
  add_step(session, {part(first, 8, 9, {5, 2, 9}, 3), part(second, 10, 11, {1, 0, 7}, 0)}, all);
  return all;
}

// Steps of many rows, over several tiles of attention, in blocks that are multiples of 16.
Rows run_many(Backend& backend, ProgramBuilder& b, bool whole) {
  Session session{backend, b, {.max_tokens = 256, .max_seqs = 4, .block_tokens = 16, .n_blocks = 32, .n_slots = 4}};
  const auto first = random_tokens(160, 7), second = random_tokens(100, 8);
  const auto here = up_from(0, 10), there = up_from(20, 7);
  Rows all;
  if (whole) {
    add_step(session, {part(first, 0, 150, here, 1), part(second, 0, 65, there, 2)}, all);
    add_step(session, {part(second, 0, 1, there, 2)}, all);
    return all;
  }
  add_step(session, {part(first, 0, 130, here, 1)}, all);
  add_step(session, {part(first, 130, 131, here, 1), part(second, 0, 90, there, 2)}, all);
  add_step(session, {part(second, 90, 91, there, 2), part(first, 131, 160, here, 1)}, all);
  return all;
}

// Largest difference, in units of the largest value of the reference's row, or of the typical value of all rows where that is more (a
// row may be a single sum whose terms cancel); and the relative error of the whole.
struct Difference {
  double worst = 0, relative = 0;
};
Difference compare(const std::vector<float>& got, const std::vector<float>& truth, std::size_t width) {
  Difference d;
  double wrong = 0, all = 0, squares = 1e-12, numbers = 1;
  for (const float x : truth)
    if (std::isfinite(x)) squares += static_cast<double>(x) * x, ++numbers;
  const double typical = std::sqrt(squares / numbers);
  for (std::size_t row = 0; row < truth.size() / width; ++row) {
    double largest = typical;
    for (std::size_t j = 0; j < width; ++j) largest = std::fmax(largest, std::fabs(truth[row * width + j]));
    for (std::size_t j = 0; j < width; ++j) {
      const double a = got[row * width + j], b = truth[row * width + j];
      if (std::isnan(a) != std::isnan(b)) d.worst = INFINITY;
      if (a == b || std::isnan(a)) continue;
      d.worst = std::fmax(d.worst, std::fabs(a - b) / largest);
      wrong += (a - b) * (a - b);
      all += b * b;
    }
  }
  d.relative = all > 0 ? std::sqrt(wrong / all) : 0;
  return d;
}

void check_case(const OpCase& c) {
  INFO(c.name);
  ProgramBuilder b{11};
  const auto [rows, size] = c.build(b);
  finish(b, rows, size);
  std::string why;
  REQUIRE(supports_all(oracle(), b, &why));
  if (!supports_all(subject(), b, &why)) {
    INFO(why);
    CHECK_FALSE(c.every_backend);
    CHECK_FALSE(why.empty());
    WARN(subject().name() << " does not offer: " << c.name << " (" << why << ")");
    return;
  }
  for (const auto& run : {run_few, run_many}) {
    const Difference d = compare(run(subject(), b, c.whole), run(oracle(), b, c.whole), static_cast<std::size_t>(size));
    CAPTURE(d.worst, d.relative);
    // Activations rounded to eight bits in groups: an error of about 1 / 254 of a group's largest value, some 0.5% of a sum.
    if (quantized()) CHECK(d.relative < 0.02);
    else CHECK(d.worst <= c.exact_bound);
  }
}

}  // namespace

TEST_CASE("operations that every backend has meet the reference") {
  for (const OpCase& c : basic_cases()) check_case(c);
}
TEST_CASE("composites meet the reference") {
  for (const OpCase& c : composite_cases()) check_case(c);
}
TEST_CASE("families of operations meet the reference") {
  for (const OpCase& c : family_cases()) check_case(c);
}
TEST_CASE("mixtures of experts meet the reference") {
  for (const OpCase& c : expert_cases()) check_case(c);
}
TEST_CASE("recurrences meet the reference") {
  for (const OpCase& c : recurrent_cases()) check_case(c);
}
TEST_CASE("latent attention meets the reference") {
  for (const OpCase& c : latent_cases()) check_case(c);
}
TEST_CASE("encoders meet the reference") {
  for (const OpCase& c : encoder_cases()) check_case(c);
}
TEST_CASE("linear meets the reference in every form and shape") {
  for (const std::string& form : form_names()) {
    const std::uint64_t step = form_multiple(form);
    // The smallest row, odd counts of outputs, the edges of panels of 8, 16 and 64, and a few blocks more than one.
    for (const auto& [n, blocks] : {std::pair<std::uint64_t, std::uint64_t>{1, 1}, {7, 3}, {16, 2}, {17, 5}, {65, 4}})
      check_case(linear_case(form, n, step == 1 ? blocks * 37 : blocks * step));
  }
  check_case(linear_case("q4_k", 130, 2048));
  check_case(linear_case("f32", 33, 1000));
}
TEST_CASE("whole models meet the reference") {
  for (const std::string form : {"f32", "bf16", "q4_0", "q4_1", "q8_0", "q6_k"}) {
    INFO(form);
    ProgramBuilder b{5};
    // Not with q4_1: the large mean of its random weights makes attention choose between near ties, which rounding decides.
    build_llama(b, form, "f16", form == "q4_0" ? 5 : 0);
    const Difference d = compare(run_few(subject(), b, false), run_few(oracle(), b, false), kVocab);
    CAPTURE(d.worst, d.relative);
    // KV is stored in half precision: a last bit that differs before it may step by 2^-11 of one stored number.
    if (quantized()) CHECK(d.relative < 0.06);
    else CHECK(d.worst < 2e-3);
  }
}

}  // namespace mekik::test
