// What a core can do at most: kernels that do nothing else. Their results mean nothing and are kept from being optimized away.
#include "isa/level.hpp"
#include "isa/rows.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

namespace {

constexpr int kChains = kProductsARound / 16;  // as many as hide what one product takes

// The compiler must take `memory` for read and written here.
MK_INLINE void anything_may_happen(void* memory) { __asm__ volatile("" : : "r"(memory) : "memory"); }

}  // namespace

void int8_products(std::uint64_t rounds) {
  alignas(64) std::uint8_t codes[64];
  std::int8_t activations[4] = {1, 2, 3, 4};
  for (std::uint8_t& c : codes) c = 7;
  V::Dot<4> dot[kChains];
#pragma GCC unroll 16
  for (int c = 0; c < kChains; ++c) dot[c].template add<0, false>(V::load_bytes(codes), V::quad(activations));
  for (; rounds != 0; --rounds) {
    anything_may_happen(codes);
    anything_may_happen(activations);
    const V::Bytes w = V::load_bytes(codes);
    const V::Quad q = V::quad(activations);
#pragma GCC unroll 16
    for (int c = 0; c < kChains; ++c) dot[c].template add<1, false>(w, q);
  }
  anything_may_happen(dot);
}

void f32_products(std::uint64_t rounds) {
  alignas(64) float numbers[16] = {1.0F, 0.5F};
  V::F sum[kChains];
  for (V::F& s : sum) s = V::load(numbers);
  for (; rounds != 0; --rounds) {
    anything_may_happen(numbers);
    const V::F x = V::load(numbers);
#pragma GCC unroll 16
    for (int c = 0; c < kChains; ++c) sum[c] = V::fma(x, x, sum[c]);
  }
  anything_may_happen(sum);
}

void read(const std::uint8_t* data, std::uint64_t bytes) {
  V::I sum[4] = {V::set1i(0), V::set1i(0), V::set1i(0), V::set1i(0)};
  for (std::uint64_t i = 0; i < bytes; i += 256) {
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) sum[c] = V::addi(sum[c], V::as_int(V::load_bytes(data + i + 64 * c)));
  }
  anything_may_happen(sum);
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
