#include "isa/int_gemm.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

IntGemm pick_small(const Matrix& w) {
  switch (w.codes) {
    case Codes::b1:
      return pick<Codes::b1>(w);
    case Codes::b2:
      return pick<Codes::b2>(w);
    case Codes::b3:
      return pick<Codes::b3>(w);
    default:
      return nullptr;
  }
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
