#include "isa/int_gemm.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

IntGemm pick_table(const Matrix& w) {
  switch (w.codes) {
    case Codes::t1u:
      return pick<Codes::t1u>(w);
    case Codes::t3u:
      return pick<Codes::t3u>(w);
    case Codes::t3s:
      return pick<Codes::t3s>(w);
    case Codes::t4u:
      return pick<Codes::t4u>(w);
    case Codes::t4s:
      return pick<Codes::t4s>(w);
    default:
      return nullptr;
  }
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
