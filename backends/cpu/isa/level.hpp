// Chooses the vectors of the level this file is compiled for (MEKIK_CPU_LEVEL: portable, avx2 or avx512).
#pragma once
#include "isa/kernels.hpp"
#if defined(MEKIK_CPU_IS_AVX512)
#include "isa/simd_avx512.hpp"
#elif defined(MEKIK_CPU_IS_AVX2)
#include "isa/simd_avx2.hpp"
#else
#include "isa/simd_portable.hpp"
#endif

namespace mekik::cpu::MEKIK_CPU_LEVEL {

template <Num N>
MK_INLINE V::F load_num(const void* p) {
  if constexpr (N == Num::f32) return V::load(static_cast<const float*>(p));
  if constexpr (N == Num::f16) return V::load_f16(static_cast<const std::uint16_t*>(p));
  if constexpr (N == Num::bf16) return V::load_bf16(static_cast<const std::uint16_t*>(p));
  if constexpr (N == Num::i8) return V::to_float(V::load_i8(static_cast<const std::uint8_t*>(p)));
  if constexpr (N == Num::u8) return V::to_float(V::load_u8(static_cast<const std::uint8_t*>(p)));
  if constexpr (N == Num::e8m0) {  // 0 is subnormal, 255 NaN: both are exponents 0 and 255 with the upper bit of the fraction
    const V::I x = V::load_u8(static_cast<const std::uint8_t*>(p));
    const V::I ends = V::sar<31>(V::subi(V::andi(V::addi(x, V::set1i(1)), V::set1i(0xFE)), V::set1i(1)));
    return V::as_float(V::addi(V::shl<23>(x), V::andi(ends, V::set1i(0x00400000))));
  }
  if constexpr (N == Num::e8m0_half) {  // 0 and 1 are subnormal
    const V::I x = V::load_u8(static_cast<const std::uint8_t*>(p));
    const V::I low = V::sar<31>(V::subi(x, V::set1i(2)));
    const V::I subnormal = V::addi(V::shl<21>(x), V::set1i(0x00200000)), normal = V::shl<23>(V::subi(x, V::set1i(1)));
    return V::as_float(V::xori(normal, V::andi(low, V::xori(normal, subnormal))));
  }
}
MK_INLINE V::F load_num(Num n, const void* p) {
  switch (n) {
    case Num::f16:
      return load_num<Num::f16>(p);
    case Num::bf16:
      return load_num<Num::bf16>(p);
    case Num::i8:
      return load_num<Num::i8>(p);
    case Num::u8:
      return load_num<Num::u8>(p);
    case Num::e8m0:
      return load_num<Num::e8m0>(p);
    case Num::e8m0_half:
      return load_num<Num::e8m0_half>(p);
    default:
      return load_num<Num::f32>(p);
  }
}
// Sixteen scales of a group: super * small number (one rounding), or the number itself.
MK_INLINE V::F load_scale(Num n, const std::uint8_t* at, Num super, const std::uint8_t* super_at, std::uint32_t group, std::uint32_t sup) {
  const V::F s = load_num(n, at + static_cast<std::size_t>(group) * kLanes * num_bytes(n));
  if (super == Num::none) return s;
  return V::mul(load_num(super, super_at + static_cast<std::size_t>(sup) * kLanes * num_bytes(super)), s);
}

// Group J (0..7, four k each) of a block of codes; see Codes.
template <Codes Coded, int J>
MK_INLINE V::Bytes load_codes(const std::uint8_t* p) {
  constexpr Codes C = stored_as(Coded);
  constexpr bool nibbles = C == Codes::b4 || C == Codes::b5 || C == Codes::b6;
  if constexpr (C == Codes::b8) {
    return V::load_bytes(p + 64 * J);
  } else if constexpr (nibbles) {
    const V::Bytes w = V::and_bytes(V::shift_bytes<4 * (J & 1)>(V::load_bytes(p + 64 * (J / 2))), V::set_bytes(0x0F));
    if constexpr (C == Codes::b5) return V::or_bytes(w, V::and_bytes(V::shift_bytes<J - 4>(V::load_bytes(p + 256)), V::set_bytes(0x10)));
    else if constexpr (C == Codes::b6)
      return V::or_bytes(w, V::and_bytes(V::shift_bytes<2 * (J & 3) - 4>(V::load_bytes(p + 256 + 64 * (J / 4))), V::set_bytes(0x30)));
    else return w;
  } else if constexpr (C == Codes::b1) {
    return V::and_bytes(V::shift_bytes<J>(V::load_bytes(p)), V::set_bytes(1));
  } else {
    const V::Bytes w = V::and_bytes(V::shift_bytes<2 * (J & 3)>(V::load_bytes(p + 64 * (J / 4))), V::set_bytes(3));
    if constexpr (C == Codes::b3) return V::or_bytes(w, V::and_bytes(V::shift_bytes<J - 2>(V::load_bytes(p + 128)), V::set_bytes(4)));
    else return w;
  }
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
