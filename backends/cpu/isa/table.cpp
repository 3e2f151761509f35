// The table of one level.
#include "isa/rows.hpp"

namespace mekik::cpu {
namespace MEKIK_CPU_LEVEL {

static IntGemm int_gemm(const Matrix& w) {
  if (!w.integer) return nullptr;
  if (const IntGemm f = pick_nibble(w)) return f;
  if (const IntGemm f = pick_wide(w)) return f;
  if (const IntGemm f = pick_table(w)) return f;
  return pick_small(w);
}

}  // namespace MEKIK_CPU_LEVEL

#define MK_TEXT2(x) #x
#define MK_TEXT(x) MK_TEXT2(x)
#define MK_JOIN2(a, b) a##b
#define MK_JOIN(a, b) MK_JOIN2(a, b)
const Kernels& MK_JOIN(MEKIK_CPU_LEVEL, _kernels)() {
  namespace l = MEKIK_CPU_LEVEL;
  static constexpr Kernels table{MK_TEXT(MEKIK_CPU_LEVEL),
                                 l::quantise,
                                 l::int_gemm,
                                 l::decode,
                                 l::mac_any,
                                 l::attention,
                                 l::latent,
                                 l::turn,
                                 l::encode_head,
                                 l::delta,
                                 l::scan,
                                 l::conv,
                                 l::rms_norm,
                                 l::layer_norm,
                                 l::l2_norm,
                                 l::mean,
                                 l::softmax,
                                 l::act,
                                 l::glu,
                                 l::softcap,
                                 l::add,
                                 l::mul,
                                 l::scale,
                                 l::clamp,
                                 l::rope,
                                 l::cast,
                                 l::f32_products,
                                 l::int8_products,
                                 l::read};
  return table;
}

}  // namespace mekik::cpu
