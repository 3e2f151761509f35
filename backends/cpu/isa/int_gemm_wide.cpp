#include "isa/int_gemm.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

IntGemm pick_wide(const Matrix& w) {
  switch (w.codes) {
    case Codes::b8:
      return pick<Codes::b8>(w);
    case Codes::t4u:
      return pick<Codes::t4u>(w);
    case Codes::t4s:
      return pick<Codes::t4s>(w);
    default:
      return nullptr;
  }
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
