// Float kernels of matrices: the decoder of every form to [k][16] floats, and the multiply-accumulate that float weights, decoded panels
// and attention share. Bound: 2 fma of 8 lanes a cycle on AVX2.
#include "isa/float_gemm.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

namespace {

template <Codes C, int J>
MK_INLINE void unpack_groups(const std::uint8_t* block, std::int32_t* out) {  // out [32][16]
  if constexpr (J < 8) {
    V::I x = V::as_int(load_codes<C, J>(block));
    if constexpr (C == Codes::b8) {  // bytes are signed
      V::storei(out + (4 * J + 0) * 16, V::sar<24>(V::shl<24>(x)));
      V::storei(out + (4 * J + 1) * 16, V::sar<24>(V::shl<16>(x)));
      V::storei(out + (4 * J + 2) * 16, V::sar<24>(V::shl<8>(x)));
      V::storei(out + (4 * J + 3) * 16, V::sar<24>(x));
    } else {
      const V::I mask = V::set1i(255);
      V::storei(out + (4 * J + 0) * 16, V::andi(x, mask));
      V::storei(out + (4 * J + 1) * 16, V::andi(V::shr<8>(x), mask));
      V::storei(out + (4 * J + 2) * 16, V::andi(V::shr<16>(x), mask));
      V::storei(out + (4 * J + 3) * 16, V::shr<24>(x));
    }
    unpack_groups<C, J + 1>(block, out);
  }
}

void unpack(Codes c, const std::uint8_t* block, std::int32_t* out) {
  switch (c) {
    case Codes::b1:
      return unpack_groups<Codes::b1, 0>(block, out);
    case Codes::b2:
      return unpack_groups<Codes::b2, 0>(block, out);
    case Codes::b3:
      return unpack_groups<Codes::b3, 0>(block, out);
    case Codes::b5:
      return unpack_groups<Codes::b5, 0>(block, out);
    case Codes::b6:
      return unpack_groups<Codes::b6, 0>(block, out);
    case Codes::b8:
      return unpack_groups<Codes::b8, 0>(block, out);
    default:
      return unpack_groups<Codes::b4, 0>(block, out);
  }
}

MK_INLINE V::F round_to(Num n, V::F x) {
  alignas(64) std::uint16_t h[16];
  if (n == Num::f16) {
    V::store_f16(h, x);
    return V::load_f16(h);
  }
  if (n == Num::bf16) {
    store_bf16(h, x);
    return V::load_bf16(h);
  }
  return x;
}

void decode_floats(const Matrix& w, const std::uint8_t* stripe, std::uint32_t k0, std::uint32_t k1, float* out) {
  const std::uint32_t bytes = num_bytes(w.number) * kLanes;
  for (std::uint32_t k = k0; k < k1; ++k)
    V::store(out + static_cast<std::size_t>(k - k0) * 16, load_num(w.number, stripe + static_cast<std::size_t>(k) * bytes));
}

}  // namespace

void decode(const Matrix& w, const std::uint8_t* stripe, std::uint32_t k0, std::uint32_t k1, float* out) {
  if (w.floats) return decode_floats(w, stripe, k0, k1, out);
  alignas(64) std::int32_t codes[kBlock * 16];
  for (std::uint32_t k = k0; k < k1;) {
    unpack(w.codes, stripe + static_cast<std::size_t>(k / kBlock) * block_bytes(w.codes), codes);
    const std::uint32_t block_end = (k / kBlock + 1) * kBlock < k1 ? (k / kBlock + 1) * kBlock : k1;
    while (k < block_end) {
      const std::uint32_t g = k / w.group_k, sup = w.groups_per_super != 0 ? g / w.groups_per_super : 0;
      const std::uint32_t end = (g + 1) * w.group_k < block_end ? (g + 1) * w.group_k : block_end;
      const V::F s = load_scale(w.scale, stripe + w.off_scale, w.super, stripe + w.off_super, g, sup);
      V::F m = V::zero();
      if (w.min != Num::none) m = load_scale(w.min, stripe + w.off_min, w.super_min, stripe + w.off_super_min, g, sup);
      V::I z = V::set1i(w.zero);
      if (w.has_zero) {
        const std::uint8_t* at = stripe + w.off_zero + static_cast<std::size_t>(g) * kLanes;
        z = w.codes == Codes::b8 ? V::load_i8(at) : V::load_u8(at);
      }
      for (; k < end; ++k) {
        V::I c;
        std::memcpy(&c, codes + (k % kBlock) * 16, sizeof c);
        V::F x;
        if (w.codebook) x = V::gather(w.table, w.codes == Codes::b8 ? V::addi(c, V::set1i(128)) : c);
        else x = V::to_float(V::subi(c, z));
        x = V::mul(s, x);
        if (w.min != Num::none) x = V::sub(x, m);
        if (w.has_tensor_scale) x = V::mul(x, V::set1(w.tensor_scale));
        V::store(out + static_cast<std::size_t>(k - k0) * 16, round_to(w.round, x));
      }
    }
  }
  for (std::uint32_t j = 0; j < w.n_kept; ++j)
    if (w.kept[j] >= k0 && w.kept[j] < k1)
      V::store(out + static_cast<std::size_t>(w.kept[j] - k0) * 16,
               V::load(reinterpret_cast<const float*>(stripe + w.off_kept) + static_cast<std::size_t>(j) * 16));
}

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
