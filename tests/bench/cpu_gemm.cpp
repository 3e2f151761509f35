// Multiply-accumulates per cycle of the matrix kernels, by form and number of columns: bench_cpu [k] [level]. One thread, in thread CPU
// time (a busy machine only makes caches colder), best of several runs; a cycle is a third of a dependent multiplication measured
// alongside.
#include <ctime>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "random_form.hpp"

namespace {

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double cycles_per_second() {
  double best = 0;
  for (int run = 0; run < 10; ++run) {
    std::uint64_t x = 1;
    const double start = thread_seconds();
    for (int i = 0; i < 1'000'000; ++i) {
      for (int j = 0; j < 16; ++j) {
        x *= 0x9E3779B97F4A7C15u;  // three cycles; an addition of a constant can cost none
        asm volatile("" : "+r"(x));
      }
    }
    best = std::max(best, 48e6 / (thread_seconds() - start));
  }
  return best;
}

template <class Run>
double rate(double macs, Run run) {
  double best = 1e9;
  for (double spent = 0; spent < 0.05;) {
    const double start = thread_seconds();
    run();
    const double took = thread_seconds() - start;
    best = std::min(best, took);
    spent += took;
  }
  return macs / best;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace mekik;
  const auto k = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 576);
  const std::string level = argc > 2 ? argv[2] : "avx2";
  const cpu::Kernels& kernels = level == "portable" ? cpu::portable_kernels()
                                : level == "avx512" ? cpu::avx512_kernels()
                                                    : cpu::avx2_kernels();
  const double hz = cycles_per_second();
  constexpr std::uint32_t kColumns[] = {1, 2, 3, 4, 8, 16, 64};
  std::printf("%s, k = %u, %.2f GHz; multiply-accumulates per cycle\n%-8s", kernels.name, k, hz * 1e-9, "columns");
  for (const std::uint32_t m : kColumns) std::printf("%8u", m);
  constexpr std::uint32_t kStripes = 8;
  for (const auto& c : test::form_cases()) {
    if (c.super != 0 && k % c.super != 0) continue;
    test::RandomForm form{c, 16 * kStripes, k, 1};
    const test::Packed w{form};
    const test::Activations a{64, k};
    const std::vector<float> x(k, 0.5f);
    for (std::uint32_t m = 0; m < 64; ++m) kernels.quantise(x.data(), k, a.row(m));
    std::vector<float> acc(64 * 16);
    const cpu::IntGemm gemm = kernels.int_gemm(w.matrix());
    std::printf("\n%-8s", c.name);
    for (const std::uint32_t m : kColumns) {
      const double macs = 16.0 * kStripes * k * m;
      std::printf("%8.1f", rate(macs, [&] {
                             for (std::uint32_t s = 0; s < kStripes; ++s)
                               gemm(w.matrix(), w.matrix().data + s * w.matrix().stripe_bytes, a.all, 0, m, 0, w.matrix().blocks,
                                    acc.data());
                           }) / hz);
    }
  }
  std::vector<float> x(64 * k, 0.5f), acc(64 * 16);
  std::vector<std::uint8_t> w(kStripes * 16 * 4 * k);
  for (const auto& [name, num] : {std::pair{"f32", cpu::Num::f32}, {"f16", cpu::Num::f16}, {"bf16", cpu::Num::bf16}}) {
    std::printf("\n%-8s", name);
    for (const std::uint32_t m : kColumns)
      std::printf("%8.1f", rate(16.0 * kStripes * k * m, [&] {
                             for (std::uint32_t s = 0; s < kStripes; ++s)
                               kernels.mac(num, w.data() + s * 16 * k * cpu::num_bytes(num), 16, k, x.data(), k, m, acc.data(), 16);
                           }) / hz);
  }
  std::printf("\ndecoding to floats, numbers per cycle:");
  auto cases = test::float_form_cases();
  for (auto& c : test::form_cases()) cases.push_back(std::move(c));
  std::vector<float> panel(256 * 16);
  for (const auto& c : cases) {
    if (c.super != 0 && k % c.super != 0) continue;
    test::RandomForm form{c, 16, k, 1};
    const test::Packed packed{form};
    const double each = rate(16.0 * k, [&] {
      for (std::uint32_t at = 0; at < k; at += 256)
        kernels.decode(packed.matrix(), packed.matrix().data, at, std::min(at + 256, k), panel.data());
    });
    std::printf(" %s %.1f", c.name, each / hz);
  }
  std::printf("\n%-8s", "quantise");
  const test::Activations a{1, k};
  std::printf("%8.2f numbers per cycle\n", rate(k, [&] { kernels.quantise(x.data(), k, a.all); }) / hz);
  return 0;
}
