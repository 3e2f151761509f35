// The multiply-accumulate that float weights, decoded panels and attention share. Bound: 2 fma of 8 lanes a cycle on AVX2.
#include "isa/float_gemm.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

void mac_any(Num n, const void* w, std::size_t ws, std::uint32_t count, const float* x, std::size_t ldx, std::uint32_t m, float* acc,
             std::size_t lda) {
  switch (n) {
    case Num::f16:
      return mac_columns<Num::f16>(w, ws, count, x, ldx, m, acc, lda);
    case Num::bf16:
      return mac_columns<Num::bf16>(w, ws, count, x, ldx, m, acc, lda);
    default:
      return mac_columns<Num::f32>(w, ws, count, x, ldx, m, acc, lda);
  }
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
