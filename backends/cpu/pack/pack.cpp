#include "pack/pack.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace mekik::cpu {

namespace {

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

struct RowShape {  // of one panel of `rows` rows
  std::uint64_t codes, groups, supers, kept;
};
RowShape shape_of(const mekik_form& f, std::uint64_t rows) {
  if (f.kind == MEKIK_FORM_FLOAT) return {0, 0, 0, rows * f.k};
  const std::uint64_t tall = ceil_div(rows, f.group_n);
  return {rows * f.k, tall * ceil_div(f.k, f.group_k), f.super_k != 0 ? tall * ceil_div(f.k, f.super_k) : 0, rows * f.n_kept};
}

// Stores a value that the type holds exactly.
void put_number(Num n, std::uint8_t* at, std::uint64_t index, float x) {
  switch (n) {
    case Num::i8:
    case Num::u8:
      at[index] = static_cast<std::uint8_t>(static_cast<int>(x));
      break;
    case Num::f32:
      return store_num(MEKIK_F32, at, index, x);
    case Num::f16:
      return store_num(MEKIK_F16, at, index, x);
    case Num::bf16:
      return store_num(MEKIK_BF16, at, index, x);
    case Num::none:
    case Num::e8m0:
    case Num::e8m0_half:
      break;
  }
}

bool is_exponent(Num n) { return n == Num::e8m0 || n == Num::e8m0_half; }

// Bits from .. from + kBits of 32 codes, which come as 8 quads, into the lane's words: 8 / kBits quads in each, from the low bits up.
template <unsigned kBits>
void put_bits(std::uint8_t* at, std::uint32_t lane, const std::uint32_t* quads, unsigned from) {
  constexpr std::uint32_t kMask = 0x01010101u * ((1u << kBits) - 1), kEach = 8 / kBits;
  for (std::uint32_t w = 0; w < kBits; ++w) {
    std::uint32_t word = 0;
    for (std::uint32_t i = 0; i < kEach; ++i) word |= ((quads[w * kEach + i] >> from) & kMask) << (kBits * i);
    std::memcpy(at + 64 * w + 4 * lane, &word, 4);
  }
}

void put_block(Codes c, std::uint8_t* block, std::uint32_t lane, const std::uint8_t* codes) {
  std::uint32_t quads[kBlock / 4];
  std::memcpy(quads, codes, sizeof quads);
  switch (stored_as(c)) {
    case Codes::b1:
      return put_bits<1>(block, lane, quads, 0);
    case Codes::b2:
      return put_bits<2>(block, lane, quads, 0);
    case Codes::b3:
      put_bits<2>(block, lane, quads, 0);
      return put_bits<1>(block + 128, lane, quads, 2);
    case Codes::b5:
      put_bits<4>(block, lane, quads, 0);
      return put_bits<1>(block + 256, lane, quads, 4);
    case Codes::b6:
      put_bits<4>(block, lane, quads, 0);
      return put_bits<2>(block + 256, lane, quads, 4);
    case Codes::b8:
      for (std::uint32_t& quad : quads) quad ^= 0x80808080u;
      return put_bits<8>(block, lane, quads, 0);
    default:
      return put_bits<4>(block, lane, quads, 0);
  }
}

// A whole row of codes into its lane. Behind the last one are codes that count as 0.
void put_codes(Codes c, std::uint8_t* stripe, std::uint32_t lane, const std::uint8_t* codes, std::uint32_t k) {
  const std::uint32_t whole = k / kBlock, left = k % kBlock;
  for (std::uint32_t i = 0; i < whole; ++i) put_block(c, stripe + std::size_t{i} * block_bytes(c), lane, codes + std::size_t{i} * kBlock);
  if (left == 0) return;
  std::uint8_t last[kBlock];
  std::memset(last, c == Codes::b8 ? 0x80 : 0, sizeof last);
  std::memcpy(last, codes + std::size_t{whole} * kBlock, left);
  put_block(c, stripe + std::size_t{whole} * block_bytes(c), lane, last);
}

// `count` rows of k numbers into the lanes of a stripe. In pieces, so that the lines that all rows write to stay near.
template <class T>
void put_floats(std::uint8_t* stripe, const void* kept, std::uint64_t count, std::uint64_t k) {
  auto* to = reinterpret_cast<T*>(stripe);
  const auto* rows = static_cast<const T*>(kept);
  for (std::uint64_t j0 = 0; j0 < k; j0 += kBlock)
    for (std::uint64_t lane = 0; lane < count; ++lane)
      for (std::uint64_t j = j0; j < std::min(j0 + kBlock, k); ++j) to[j * kLanes + lane] = rows[lane * k + j];
}

bool same_type(Num n, std::uint32_t num) {
  switch (n) {
    case Num::f32:
      return num == MEKIK_F32;
    case Num::f16:
      return num == MEKIK_F16;
    case Num::bf16:
      return num == MEKIK_BF16;
    case Num::i8:
      return num == MEKIK_I8;
    case Num::u8:
      return num == MEKIK_U8;
    default:
      return is_exponent(n);
  }
}

template <class T>
void copy_column(std::uint8_t* at, std::uint32_t lane, const void* array, std::uint64_t from, std::uint64_t count) {
  const T* numbers = static_cast<const T*>(array) + from;
  auto* to = reinterpret_cast<T*>(at) + lane;
  for (std::uint64_t i = 0; i < count; ++i) to[i * kLanes] = numbers[i];
}

// Numbers from .. from + count of an array of the form's type into a lane, one below the other.
void put_column(Num n, std::uint8_t* at, std::uint32_t lane, std::uint32_t num, const void* array, std::uint64_t from,
                std::uint64_t count) {
  if (same_type(n, num)) {
    if (num_bytes(n) == 4) return copy_column<std::uint32_t>(at, lane, array, from, count);
    if (num_bytes(n) == 2) return copy_column<std::uint16_t>(at, lane, array, from, count);
    return copy_column<std::uint8_t>(at, lane, array, from, count);
  }
  for (std::uint64_t i = 0; i < count; ++i) put_number(n, at, i * kLanes + lane, load_num(num, array, from + i));
}

struct Source {  // where a row's numbers are
  std::uint64_t group_row, groups, super_row, supers;
};

// Scales (or mins) that one number holds with their super-group's.
void put_products(const mekik_form& f, Num n, std::uint8_t* at, std::uint32_t lane, std::uint32_t num, const void* array,
                  std::uint32_t super_num, const void* supers, const Source& s) {
  for (std::uint64_t g = 0; g < s.groups; ++g)
    put_number(
        n, at, g * kLanes + lane,
        load_num(super_num, supers, s.super_row * s.supers + g * f.group_k / f.super_k) * load_num(num, array, s.group_row * s.groups + g));
}

void put_scales(const mekik_form& f, const Matrix& m, const mekik_form_rows& r, const Source& s, std::uint32_t lane, std::uint8_t* stripe) {
  const std::uint64_t first = s.group_row * s.groups;
  if (f.super_k != 0 && f.super_num != 0 && m.super == Num::none)
    put_products(f, m.scale, stripe + m.off_scale, lane, f.scale_num, r.scale, f.super_num, r.super, s);
  else put_column(m.scale, stripe + m.off_scale, lane, f.scale_num, r.scale, first, s.groups);
  if (m.min != Num::none && f.super_k != 0 && f.super_min_num != 0 && m.super_min == Num::none)
    put_products(f, m.min, stripe + m.off_min, lane, f.min_num, r.min, f.super_min_num, r.super_min, s);
  else if (m.min != Num::none) put_column(m.min, stripe + m.off_min, lane, f.min_num, r.min, first, s.groups);
  for (std::uint64_t g = 0; m.has_zero && g < s.groups; ++g)
    stripe[m.off_zero + g * kLanes + lane] =
        static_cast<std::uint8_t>(static_cast<const std::uint8_t*>(r.zero)[first + g] ^ (m.codes == Codes::b8 ? 0x80u : 0u));
  const std::uint64_t first_super = s.super_row * s.supers;
  if (m.super != Num::none) put_column(m.super, stripe + m.off_super, lane, f.super_num, r.super, first_super, m.supers);
  if (m.super_min != Num::none)
    put_column(m.super_min, stripe + m.off_super_min, lane, f.super_min_num, r.super_min, first_super, m.supers);
}

}  // namespace

std::uint64_t panel_rows(const mekik_form& f) {
  const std::uint64_t step = std::max<std::uint64_t>(f.row_step, 1);
  std::uint64_t rows = std::lcm(step, static_cast<std::uint64_t>(kLanes));
  if (f.kind != MEKIK_FORM_FLOAT && f.group_n != 0) rows = std::lcm(rows, static_cast<std::uint64_t>(f.group_n));
  while (rows < 64) rows *= 2;
  return rows;
}

std::uint64_t staging_bytes(const mekik_form& f) {
  const RowShape s = shape_of(f, std::min(panel_rows(f), f.n));
  return s.codes + s.groups * (num_size(f.scale_num) + num_size(f.min_num) + num_size(f.zero_num)) +
         s.supers * (num_size(f.super_num) + num_size(f.super_min_num)) + s.kept * num_size(f.kept_num) + 7 * 64;
}

Staging::Staging(const mekik_form& f, std::uint64_t rows) {
  const RowShape s = shape_of(f, rows);
  const std::uint64_t sizes[] = {s.codes,
                                 s.groups * num_size(f.scale_num),
                                 s.supers * num_size(f.super_num),
                                 s.groups * num_size(f.min_num),
                                 s.supers * num_size(f.super_min_num),
                                 s.groups * num_size(f.zero_num),
                                 s.kept * num_size(f.kept_num)};
  std::uint64_t total = 64;
  for (const std::uint64_t size : sizes) total += (size + 63) / 64 * 64;
  bytes_.resize(total);
  std::uint8_t* p = bytes_.data() + (64 - reinterpret_cast<std::uintptr_t>(bytes_.data()) % 64) % 64;
  void* members[7];
  for (int i = 0; i < 7; ++i) {
    members[i] = sizes[i] != 0 ? p : nullptr;
    p += (sizes[i] + 63) / 64 * 64;
  }
  rows_ = {sizeof rows_, 0, static_cast<std::uint8_t*>(members[0]), members[1], members[2], members[3], members[4], members[5], members[6]};
}

void pack_rows(const mekik_form& f, const Layout& layout, const mekik_form_rows& r, std::uint64_t n0, std::uint64_t n1,
               std::uint8_t* data) {
  const Matrix& m = layout.matrix;
  for (std::uint64_t n = n0; m.floats && n < n1; n += kLanes) {
    const std::uint64_t count = std::min<std::uint64_t>(kLanes, n1 - n);
    std::uint8_t* stripe = data + n / kLanes * m.stripe_bytes;
    const auto* rows = static_cast<const std::uint8_t*>(r.kept) + (n - n0) * m.k * num_bytes(m.number);
    if (count < kLanes) std::memset(stripe, 0, m.stripe_bytes);
    if (m.number == Num::f32) put_floats<std::uint32_t>(stripe, rows, count, m.k);
    else put_floats<std::uint16_t>(stripe, rows, count, m.k);
  }
  for (std::uint64_t n = n0; !m.floats && n < n1; ++n) {
    std::uint8_t* stripe = data + n / kLanes * m.stripe_bytes;
    const auto lane = static_cast<std::uint32_t>(n % kLanes);
    if (lane == 0) std::memset(stripe, 0, m.stripe_bytes);
    put_codes(m.codes, stripe, lane, r.codes + (n - n0) * m.k, m.k);
    const std::uint64_t tall = (n - n0) / f.group_n;
    put_scales(f, m, r, {tall, ceil_div(m.k, f.group_k), tall, f.super_k != 0 ? ceil_div(m.k, f.super_k) : 0}, lane, stripe);
    for (std::uint32_t j = 0; j < m.n_kept; ++j)
      put_number(Num::f32, stripe + m.off_kept, static_cast<std::uint64_t>(j) * kLanes + lane,
                 load_num(f.kept_num, r.kept, (n - n0) * m.n_kept + j));
  }
}

void decode_rows(const mekik_form& f, const mekik_form_rows& r, std::uint64_t n0, std::uint64_t n1, float* out) {
  const std::uint64_t k = f.k, groups = f.group_k != 0 ? ceil_div(k, f.group_k) : 0, supers = f.super_k != 0 ? ceil_div(k, f.super_k) : 0;
  for (std::uint64_t n = 0; n < n1 - n0; ++n) {
    float* row = out + n * k;
    if (f.kind == MEKIK_FORM_FLOAT) {
      for (std::uint64_t j = 0; j < k; ++j) row[j] = load_num(f.kept_num, r.kept, n * k + j);
      continue;
    }
    for (std::uint64_t j = 0; j < k; ++j) {
      const std::uint64_t g = n / f.group_n * groups + j / f.group_k, sup = supers != 0 ? n / f.group_n * supers + j / f.super_k : 0;
      float s = load_num(f.scale_num, r.scale, g);
      if (supers != 0 && f.super_num != 0) s = load_num(f.super_num, r.super, sup) * s;
      const std::uint8_t code = r.codes[n * k + j];
      const std::int32_t zero = f.zero_num != 0 ? static_cast<const std::uint8_t*>(r.zero)[g] : f.zero;
      const float c = f.kind == MEKIK_FORM_CODEBOOK ? (code < f.n_table ? f.table[code] : 0.0F) : static_cast<float>(code - zero);
      float w = s * c;
      if (f.min_num != 0) {
        float m = load_num(f.min_num, r.min, g);
        if (supers != 0 && f.super_min_num != 0) m = load_num(f.super_min_num, r.super_min, sup) * m;
        w -= m;
      }
      if (f.tensor_scale != nullptr) w *= f.tensor_scale[0];
      row[f.k_perm != nullptr ? f.k_perm[j] : j] = round_num(f.round_num, w);
    }
    for (std::uint32_t j = 0; j < f.n_kept; ++j) row[f.kept_k[j]] = load_num(f.kept_num, r.kept, n * f.n_kept + j);
  }
}

}  // namespace mekik::cpu
