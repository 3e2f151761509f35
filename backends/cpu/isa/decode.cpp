// Every form to [k][16] floats, to the bit as the form says. Data: Matrix of kernels.hpp. Bound: a vector of 16 values is a shift, a mask,
// a conversion or a lookup, a product and a store; what is rarer (minima, rounding) costs a branch that is always the same.
#include "isa/float_gemm.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

namespace {

// What a code stands for before its scale. `zero` is that of the codes as stored.
struct Affine {
  MK_INLINE explicit Affine(const Matrix&) {}
  MK_INLINE V::F operator()(V::I code, V::I zero) const { return V::to_float(V::subi(code, zero)); }
};
struct ShortTable {  // up to 16 entries: a register
  V::Table16 table;
  MK_INLINE explicit ShortTable(const Matrix& w) : table{V::load_table(w.table)} {}
  MK_INLINE V::F operator()(V::I code, V::I) const { return V::lookup(table, code); }
};
template <int kFirst>
struct LongTable {
  const float* table;
  MK_INLINE explicit LongTable(const Matrix& w) : table{w.table} {}
  MK_INLINE V::F operator()(V::I code, V::I) const { return V::gather(table, V::addi(code, V::set1i(kFirst))); }
};
// E4M3 by arithmetic, which is faster than a gather. Read as a normal number n, a subnormal one is 2 n - 2^-6.
struct E4m3 {
  MK_INLINE explicit E4m3(const Matrix&) {}
  MK_INLINE V::F operator()(V::I stored, V::I) const {
    const V::I code = V::xori(stored, V::set1i(0x80)), magnitude = V::andi(code, V::set1i(0x7F));
    const V::F n = V::as_float(V::addi(V::shl<20>(magnitude), V::set1i(120 << 23)));
    V::F x = V::select(V::less(n, V::set1(0x1p-6F)), V::fma(n, V::set1(2.0F), V::set1(-0x1p-6F)), n);
    x = V::select(V::less(V::set1(448.0F), n), V::set1(__builtin_nanf("")), x);
    return V::bit_or(x, V::as_float(V::shl<31>(V::shr<7>(code))));
  }
};

// What few forms have: a scale of the tensor, a rounding of weights.
__attribute__((noinline)) V::F finished(const Matrix& w, V::F x) {
  if (w.has_tensor_scale) x = V::mul(x, V::set1(w.tensor_scale));
  alignas(64) std::uint16_t h[16];
  if (w.round == Num::f16) {
    V::store_f16(h, x);
    return V::load_f16(h);
  }
  if (w.round == Num::bf16) {
    store_bf16(h, x);
    return V::load_bf16(h);
  }
  return x;
}

// The numbers of a group of columns; a minimum that is absent is 0, which takes nothing away.
struct Group {
  V::F s, m;
  V::I z;
};
__attribute__((noinline)) Group group_of(const Matrix& w, const std::uint8_t* stripe, std::uint32_t g) {
  const std::uint32_t sup = w.groups_per_super != 0 ? g / w.groups_per_super : 0;
  Group group{load_scale(w.scale, stripe + w.off_scale, w.super, stripe + w.off_super, g, sup), V::zero(), V::set1i(w.zero)};
  if (w.min != Num::none) group.m = load_scale(w.min, stripe + w.off_min, w.super_min, stripe + w.off_super_min, g, sup);
  if (w.has_zero) {
    const std::uint8_t* at = stripe + w.off_zero + static_cast<std::size_t>(g) * kLanes;
    group.z = w.codes == Codes::b8 ? V::load_i8(at) : V::load_u8(at);
  }
  return group;
}

// The codes of a block as numbers, [32][16]; those of b8 are signed.
template <Codes C, int J = 0>
MK_INLINE void unpack_fours(const std::uint8_t* block, std::int32_t* out) {
  if constexpr (J < 8) {
    const V::I x = V::as_int(load_codes<C, J>(block));
    if constexpr (C == Codes::b8) {
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
    unpack_fours<C, J + 1>(block, out);
  }
}
template <Codes C>
void unpack(const std::uint8_t* block, std::int32_t* out) {
  unpack_fours<C>(block, out);
}
using Unpack = void (*)(const std::uint8_t* block, std::int32_t* out);
Unpack unpack_of(Codes c) {
  switch (stored_as(c)) {
    case Codes::b1:
      return unpack<Codes::b1>;
    case Codes::b2:
      return unpack<Codes::b2>;
    case Codes::b3:
      return unpack<Codes::b3>;
    case Codes::b5:
      return unpack<Codes::b5>;
    case Codes::b6:
      return unpack<Codes::b6>;
    case Codes::b8:
      return unpack<Codes::b8>;
    default:
      return unpack<Codes::b4>;
  }
}

template <class Value>
void decode_as(const Matrix& w, const std::uint8_t* stripe, std::uint32_t k0, std::uint32_t k1, float* out) {
  const Value value{w};
  const Unpack unpack_block = unpack_of(w.codes);
  const bool more = w.has_tensor_scale || w.round != Num::none;
  alignas(64) std::int32_t codes[kBlock * 16];
  std::uint32_t g = k0 / w.group_k;
  Group group = group_of(w, stripe, g);
  for (std::uint32_t k = k0; k < k1;) {
    unpack_block(stripe + static_cast<std::size_t>(k / kBlock) * block_bytes(w.codes), codes);
    const std::uint32_t block_end = k + kBlock < k1 ? k + kBlock : k1;
    while (k < block_end) {
      if (k == (g + 1) * w.group_k) group = group_of(w, stripe, ++g);
      const std::uint32_t group_end = (g + 1) * w.group_k, end = group_end < block_end ? group_end : block_end;
      for (; k < end; ++k, out += 16) {
        V::I code;
        std::memcpy(&code, codes + k % kBlock * 16, sizeof code);
        V::F x = V::sub(V::mul(group.s, value(code, group.z)), group.m);
        if (more) x = finished(w, x);
        V::store(out, x);
      }
    }
  }
}

void decode_floats(const Matrix& w, const std::uint8_t* stripe, std::uint32_t k0, std::uint32_t k1, float* out) {
  const std::uint32_t bytes = num_bytes(w.number) * kLanes;
  for (std::uint32_t k = k0; k < k1; ++k)
    V::store(out + static_cast<std::size_t>(k - k0) * 16, load_num(w.number, stripe + static_cast<std::size_t>(k) * bytes));
}

void decode_coded(const Matrix& w, const std::uint8_t* stripe, std::uint32_t k0, std::uint32_t k1, float* out) {
  if (!w.codebook) return decode_as<Affine>(w, stripe, k0, k1, out);
  if (w.e4m3) return decode_as<E4m3>(w, stripe, k0, k1, out);
  if (w.codes == Codes::b8) return decode_as<LongTable<128>>(w, stripe, k0, k1, out);
  if (w.codes == Codes::b5 || w.codes == Codes::b6) return decode_as<LongTable<0>>(w, stripe, k0, k1, out);
  decode_as<ShortTable>(w, stripe, k0, k1, out);
}

}  // namespace

void decode(const Matrix& w, const std::uint8_t* stripe, std::uint32_t k0, std::uint32_t k1, float* out) {
  if (w.floats) return decode_floats(w, stripe, k0, k1, out);
  decode_coded(w, stripe, k0, k1, out);
  for (std::uint32_t j = 0; j < w.n_kept; ++j)
    if (w.kept[j] >= k0 && w.kept[j] < k1)
      V::store(out + static_cast<std::size_t>(w.kept[j] - k0) * 16,
               V::load(reinterpret_cast<const float*>(stripe + w.off_kept) + static_cast<std::size_t>(j) * 16));
}

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
