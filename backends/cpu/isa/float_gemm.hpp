// acc [m][16] += x [m][n] times w [n][16]: w's rows at stride ws elements of N.
#pragma once
#include "isa/level.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

MK_INLINE void store_bf16(std::uint16_t* p, V::F x) {  // to nearest even; NaN stays NaN
  alignas(64) std::int32_t bits[16];
  const V::I b = V::as_int(x);
  const V::I odd = V::andi(V::shr<16>(b), V::set1i(1));
  V::storei(bits, V::shr<16>(V::addi(b, V::addi(odd, V::set1i(0x7FFF)))));
  alignas(64) std::int32_t raw[16];
  V::storei(raw, b);
  for (int i = 0; i < 16; ++i)
    p[i] = (raw[i] & 0x7FFFFFFF) > 0x7F800000 ? static_cast<std::uint16_t>((static_cast<std::uint32_t>(raw[i]) >> 16) | 0x40u)
                                              : static_cast<std::uint16_t>(bits[i]);
}

template <Num N, int NC>
MK_INLINE void mac(const void* w, std::size_t ws, std::uint32_t n, const float* x, std::size_t ldx, float* acc, std::size_t lda) {
  V::F r[NC];
#pragma GCC unroll 16
  for (int c = 0; c < NC; ++c) r[c] = V::load(acc + static_cast<std::size_t>(c) * lda);
  const auto* p = static_cast<const std::uint8_t*>(w);
  for (std::uint32_t i = 0; i < n; ++i, p += ws * num_bytes(N)) {
    const V::F v = load_num<N>(p);
#pragma GCC unroll 16
    for (int c = 0; c < NC; ++c) r[c] = V::fma(v, V::set1(x[static_cast<std::size_t>(c) * ldx + i]), r[c]);
  }
#pragma GCC unroll 16
  for (int c = 0; c < NC; ++c) V::store(acc + static_cast<std::size_t>(c) * lda, r[c]);
}

template <Num N, int NC = V::kFloatColumns>
void mac_columns(const void* w, std::size_t ws, std::uint32_t n, const float* x, std::size_t ldx, std::uint32_t m, float* acc,
                 std::size_t lda) {
  for (; m >= NC; m -= NC, x += NC * ldx, acc += NC * lda) mac<N, NC>(w, ws, n, x, ldx, acc, lda);
  if constexpr (NC > 1)
    if (m > 0) mac_columns<N, (NC > 6 ? NC / 2 : NC - 1)>(w, ws, n, x, ldx, m, acc, lda);
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
