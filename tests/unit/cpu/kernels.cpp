// Kernels of every level that this machine runs: equal to the bit between levels and for every number of columns.
#include <cmath>
#include <memory>

#include "levels.hpp"
#include "random_form.hpp"
#include "support/catch.hpp"

namespace mekik::test {

namespace {

using cpu::Kernels;

std::vector<float> product(const Kernels& k, const cpu::Matrix& w, const cpu::Acts& a, std::uint32_t m0, std::uint32_t m1,
                           std::uint32_t step) {
  std::vector<float> acc((m1 - m0) * 16, 0.0f);
  for (std::uint32_t b = 0; b < w.blocks; b += step) k.int_gemm(w)(w, w.data, a, m0, m1, b, std::min(b + step, w.blocks), acc.data());
  return acc;
}

constexpr std::uint32_t kRows = 11;

}  // namespace

TEST_CASE("integer kernels give the same bits at every level, for every number of columns and cut of k") {
  for (const FormCase& c : form_cases()) {
    for (const std::uint64_t k : {std::uint64_t{512}, std::uint64_t{528}}) {
      if (k % 32 != 0 && c.super == 0 && c.group != 16) continue;
      CAPTURE(c.name, k);
      RandomForm form{c, 16, k, 3};
      const Packed w{form};
      REQUIRE(w.matrix().integer);
      auto x = random_floats(kRows * k, 9);
      for (std::size_t i = 3 * k; i < kRows * k; i += 53) x[i] *= 300.0f;  // outliers: some blocks of some rows have two digits
      for (std::size_t i = 0; i < 2 * k; ++i) x[i] = i % 2 == 0 ? 1.0f : (i / k != 0 ? 1.0f : -1.0f);  // all of them +-127
      std::vector<float> truth;
      for (const Kernels* level : levels()) {
        CAPTURE(level->name);
        const Activations a{kRows, static_cast<std::uint32_t>(k)};
        for (std::uint32_t m = 0; m < kRows; ++m) level->quantise(x.data() + m * k, static_cast<std::uint32_t>(k), a.row(m));
        const auto all = product(*level, w.matrix(), a.all, 0, kRows, w.matrix().blocks);
        if (truth.empty()) truth = all;
        CHECK(same_bits(all, truth));
        CHECK(same_bits(product(*level, w.matrix(), a.all, 0, kRows, 3), truth));
        for (std::uint32_t m = 0; m < kRows; ++m) {
          const auto one = product(*level, w.matrix(), a.all, m, m + 1, w.matrix().blocks);
          CHECK(same_bits(one, {truth.begin() + m * 16, truth.begin() + (m + 1) * 16}));
        }
      }
    }
  }
}

TEST_CASE("integer kernels are close to the decoded weights times the activations") {
  for (const FormCase& c : form_cases()) {
    CAPTURE(c.name);
    constexpr std::uint64_t k = 512;
    RandomForm form{c, 16, k, 4};
    const Packed w{form};
    auto x = random_floats(k, 10);
    x[70] = 300.0f;
    const Activations a{1, k};
    std::vector<float> decoded(16 * k);
    cpu::decode_rows(form.form(), form.rows(), 0, 16, decoded.data());
    for (const Kernels* level : levels()) {
      level->quantise(x.data(), k, a.all);
      const auto got = product(*level, w.matrix(), a.all, 0, 1, w.matrix().blocks);
      for (std::size_t r = 0; r < 16; ++r) {
        double sum = 0, size = 0;
        for (std::size_t j = 0; j < k; ++j) {
          const double term = decoded[r * k + j] * a.value(static_cast<std::uint32_t>(j));
          sum += term;
          size += std::fabs(term);
        }
        CHECK(std::fabs(got[r] * w.matrix().post - sum) <= 1e-5 * size);
      }
    }
  }
}

TEST_CASE("decoding a stripe equals the form's decoder to the bit") {
  auto cases = form_cases();
  for (FormCase& c : float_form_cases()) cases.push_back(std::move(c));
  for (const FormCase& c : cases) {
    CAPTURE(c.name);
    const std::uint64_t k = 288;
    RandomForm form{c, 19, k, 5};
    const Packed w{form};
    std::vector<float> truth(19 * k), panel(16 * k);
    cpu::decode_rows(form.form(), form.rows(), 0, 19, truth.data());
    for (const Kernels* level : levels())
      for (std::uint64_t stripe = 0; stripe < 2; ++stripe) {
        level->decode(w.matrix(), w.matrix().data + stripe * w.matrix().stripe_bytes, 0, static_cast<std::uint32_t>(k), panel.data());
        for (std::uint64_t r = 16 * stripe; r < std::min<std::uint64_t>(19, 16 * stripe + 16); ++r)
          for (std::uint64_t j = 0; j < k; ++j)
            if (!same_bits({panel[j * 16 + r % 16]}, {truth[r * k + j]})) FAIL(level->name << " row " << r << " column " << j);
      }
  }
}

TEST_CASE("every exponent that a scale may be is held in its byte") {
  for (const std::uint32_t num : {MEKIK_E8M0, MEKIK_E8M0_HALF}) {
    FormCase c{"exponents", MEKIK_FORM_CODEBOOK, 4, 32, 0, num, 0, 0, 0, 0, 0, {-1, 1, 2}, 1};
    RandomForm form{c, 16, 32 * 16, 6};
    for (std::size_t i = 0; i < 256; ++i) static_cast<std::uint8_t*>(form.rows().scale)[i] = static_cast<std::uint8_t>(i);
    const Packed w{form};
    CHECK(w.layout.bytes() == 16 * 32 * 16 / 2 + 256);
    std::vector<float> truth(16 * 512), panel(16 * 512);
    cpu::decode_rows(form.form(), form.rows(), 0, 16, truth.data());
    for (const Kernels* level : levels()) {
      CAPTURE(level->name, num);
      level->decode(w.matrix(), w.matrix().data, 0, 512, panel.data());
      for (std::size_t r = 0; r < 16; ++r)
        for (std::size_t j = 0; j < 512; ++j)
          if (!same_bits({panel[j * 16 + r]}, {truth[r * 512 + j]})) FAIL("row " << r << " column " << j);
    }
  }
}

TEST_CASE("packed weights are about as large as in the file") {
  for (const auto& [name, bits] : {std::pair{"q4_1", 5.0},
                                   {"q8_0", 8.5},
                                   {"q4_0", 4.5},
                                   {"q6_k", 6.5625},
                                   {"q4_k", 4.625},
                                   {"q5_k", 5.625},
                                   {"iq4_xs", 4.3125},
                                   {"mxfp4", 4.25},
                                   {"iq2_xxs", 3.3125},
                                   {"q1_0", 1.125}})
    for (const FormCase& c : form_cases()) {
      if (std::string{c.name} != name) continue;
      RandomForm form{c, 64, 2048, 1};
      CAPTURE(name);
      CHECK(static_cast<double>(cpu::make_layout(form.form()).bytes()) * 8 / (64 * 2048) == Approx(bits).epsilon(0.01));
    }
}

TEST_CASE("row kernels give the same bits at every level") {
  for (const std::uint32_t n : {1u, 15u, 16u, 33u, 576u}) {
    CAPTURE(n);
    auto x = random_floats(n, n, 5), w = random_floats(n, n + 1);
    x[0] = 89;
    if (n > 20) x[17] = -104, x[18] = INFINITY, x[19] = NAN, x[16] = 1e-30f;
    std::vector<std::vector<float>> truth;
    for (const Kernels* level : levels()) {
      CAPTURE(level->name);
      std::vector<std::vector<float>> got;
      const auto add = [&](auto run) {
        got.emplace_back(n);
        run(got.back().data());
      };
      for (int kind = 0; kind <= 9; ++kind) add([&](float* y) { level->act(kind, x.data(), n, y); });
      for (int kind : {1, 3, 16}) add([&](float* y) { level->glu(kind, x.data(), w.data(), n, 7, 1.702f, y); });
      add([&](float* y) { level->rms_norm(w.data(), x.data(), n, 1e-5f, y); });
      add([&](float* y) { level->layer_norm(w.data(), x.data(), w.data(), n, 1e-5f, y); });
      add([&](float* y) { level->softmax(w.data(), n, y); });
      add([&](float* y) { level->softcap(x.data(), n, 30, y); });
      if (truth.empty()) truth = got;
      for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK(same_bits(got[i], truth[i]));
      }
    }
  }
}

TEST_CASE("activations are those of double precision") {
  std::vector<float> x;
  for (float v = -30; v <= 30; v += 0.0137f) x.push_back(v);
  const auto n = static_cast<std::uint32_t>(x.size());
  std::vector<float> y(n);
  const auto worst = [&](int kind, auto f) {
    cpu::portable_kernels().act(kind, x.data(), n, y.data());
    double w = 0;
    for (std::uint32_t i = 0; i < n; ++i) w = std::max(w, std::fabs(y[i] - f(double{x[i]})) / std::max(1e-3, std::fabs(f(double{x[i]}))));
    return w;
  };
  CHECK(worst(1, [](double v) { return v / (1 + std::exp(-v)); }) < 1e-6);
  CHECK(worst(2, [](double v) { return 0.5 * v * (1 + std::erf(v * std::sqrt(0.5))); }) < 2e-4);  // cancellation on the left
  CHECK(worst(3, [](double v) { return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))); }) < 2e-4);
  CHECK(worst(7, [](double v) { return 1 / (1 + std::exp(-v)); }) < 1e-6);
  CHECK(worst(8, [](double v) { return std::tanh(v); }) < 1e-6);
  CHECK(worst(9, [](double v) { return std::log1p(std::exp(v)); }) < 1e-6);
}

TEST_CASE("activations are rounded to 8 bits in a smooth row, and to 15 around an outlier") {
  constexpr std::uint32_t k = 512;
  auto x = random_floats(k, 2);
  for (const float outlier : {1.0f, 100.0f})
    for (const Kernels* level : levels()) {
      CAPTURE(level->name, outlier);
      x[70] = outlier;
      const Activations a{1, k};
      level->quantise(x.data(), k, a.all);
      for (std::uint32_t b = 0; b < k / 32; ++b) {
        const bool two = outlier > 1 && b == 70 / 32;
        CHECK(a.all.two[b] == two);
        float amax = 0, worst = 0;
        for (std::uint32_t j = 32 * b; j < 32 * b + 32; ++j) {
          amax = std::max(amax, std::fabs(x[j]));
          worst = std::max(worst, static_cast<float>(std::fabs(a.value(j) - static_cast<double>(x[j]))));
        }
        CHECK(worst <= amax / 127 * (two ? 1.0f / 128 : 1.0f) * 0.501f);
      }
    }
}

TEST_CASE("activations that reach a weight's threshold take two digits, row by row") {
  constexpr std::uint32_t k = 256;
  std::vector<float> x(k, 5.9f);
  x[40] = -6.0f;
  x[100] = 5.99f;
  for (const Kernels* level : levels())
    for (const float threshold : {6.0f, INFINITY}) {
      const Activations a{1, k};
      auto row = a.all;
      row.outlier = threshold;
      level->quantise(x.data(), k, row);
      for (std::uint32_t b = 0; b < k / 32; ++b) CHECK(a.all.two[b] == (threshold == 6.0f && b == 40 / 32));
      const double error = std::fabs(a.value(40) + 6.0);
      CHECK(error <= 6.0 / 127 / (threshold == 6.0f ? 128 : 1) * 0.501);
    }
}

TEST_CASE("a NaN or an infinity in a block of activations cannot pass for a number") {
  for (const float bad : {NAN, INFINITY, -INFINITY})
    for (const Kernels* level : levels()) {
      auto x = random_floats(64, 1);
      x[40] = bad;
      const Activations a{1, 64};
      level->quantise(x.data(), 64, a.all);
      CHECK(std::isfinite(a.all.d[0]));
      CHECK(std::isnan(a.all.d[1]));
    }
}

TEST_CASE("half precision is the same at every level") {
  std::vector<float> x;
  for (std::uint32_t bits = 0; bits < 0xFFFFFFFFu - 9973; bits += 9973 * 7) {
    float f;
    std::memcpy(&f, &bits, 4);
    x.push_back(f);
  }
  const auto n = static_cast<std::uint32_t>(x.size());
  for (const cpu::Num num : {cpu::Num::f16, cpu::Num::bf16}) {
    std::vector<std::uint16_t> truth(n), got(n);
    cpu::portable_kernels().cast(num, x.data(), n, truth.data());
    for (const Kernels* level : levels()) {
      level->cast(num, x.data(), n, got.data());
      CHECK(got == truth);
    }
  }
}

}  // namespace mekik::test
