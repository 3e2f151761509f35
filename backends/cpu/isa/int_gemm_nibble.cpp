#include "isa/int_gemm.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

IntGemm pick_nibble(const Matrix& w) {
  switch (w.codes) {
    case Codes::b4:
      return pick<Codes::b4>(w);
    case Codes::b5:
      return pick<Codes::b5>(w);
    case Codes::b6:
      return pick<Codes::b6>(w);
    default:
      return nullptr;
  }
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
