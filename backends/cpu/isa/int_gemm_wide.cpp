#include "isa/int_gemm.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

IntGemm pick_wide(const Matrix& w) { return w.codes == Codes::b8 ? pick<Codes::b8>(w) : nullptr; }

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
