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

// Stores number `from` of an array of the form's type. Exponents stay the bytes that they are.
void put_stored(Num n, std::uint8_t* at, std::uint64_t index, std::uint32_t num, const void* array, std::uint64_t from) {
  if (is_exponent(n)) at[index] = static_cast<const std::uint8_t*>(array)[from];
  else put_number(n, at, index, load_num(num, array, from));
}

void put_code(Codes c, std::uint8_t* block, std::uint32_t lane, std::uint32_t k, std::uint32_t code) {  // k 0 .. 31 of the block
  const std::uint32_t g = k / 4, byte = 4 * lane + k % 4;
  const auto two = [&](std::uint8_t* p, std::uint32_t v) {
    p[64 * (g / 4) + byte] = static_cast<std::uint8_t>(p[64 * (g / 4) + byte] | (v << (2 * (g & 3))));
  };
  const auto one = [&](std::uint8_t* p, std::uint32_t v) { p[byte] = static_cast<std::uint8_t>(p[byte] | (v << g)); };
  const auto four = [&](std::uint8_t* p, std::uint32_t v) {
    p[64 * (g / 2) + byte] = static_cast<std::uint8_t>(p[64 * (g / 2) + byte] | (v << (4 * (g & 1))));
  };
  switch (stored_as(c)) {
    case Codes::b1:
      return one(block, code & 1);
    case Codes::b2:
      return two(block, code & 3);
    case Codes::b3:
      two(block, code & 3);
      return one(block + 128, (code >> 2) & 1);
    case Codes::b5:
      four(block, code & 15);
      return one(block + 256, (code >> 4) & 1);
    case Codes::b6:
      four(block, code & 15);
      return two(block + 256, (code >> 4) & 3);
    case Codes::b8:
      block[64 * g + byte] = static_cast<std::uint8_t>(code ^ 0x80u);
      return;
    default:
      return four(block, code & 15);
  }
}

// A whole row of codes into its lane.
void put_codes(Codes c, std::uint8_t* stripe, std::uint32_t lane, const std::uint8_t* codes, std::uint32_t k) {
  if (stored_as(c) != Codes::b4 && c != Codes::b8) {
    for (std::uint32_t j = 0; j < k; ++j)
      put_code(c, stripe + static_cast<std::size_t>(j / kBlock) * block_bytes(c), lane, j % kBlock, codes[j]);
    return;
  }
  std::uint32_t j = 0;
  for (; j + kBlock <= k; j += kBlock) {
    std::uint8_t* p = stripe + static_cast<std::size_t>(j / kBlock) * block_bytes(c) + 4 * lane;
    for (std::uint32_t g = 0; g < 8; ++g) {
      std::uint32_t quad;
      std::memcpy(&quad, codes + j + 4 * g, 4);
      std::uint32_t old = 0;
      if (c == Codes::b8) {
        quad ^= 0x80808080u;
        std::memcpy(p + 64 * g, &quad, 4);
      } else {
        quad &= 0x0F0F0F0Fu;
        if ((g & 1) != 0) {
          std::memcpy(&old, p + 64 * (g / 2), 4);
          quad = old | (quad << 4);
        }
        std::memcpy(p + 64 * (g / 2), &quad, 4);
      }
    }
  }
  for (; j < k; ++j) put_code(c, stripe + static_cast<std::size_t>(j / kBlock) * block_bytes(c), lane, j % kBlock, codes[j]);
}

struct Source {  // where a row's numbers are
  std::uint64_t group_row, groups, super_row, supers;
};

void put_scales(const mekik_form& f, const Matrix& m, const mekik_form_rows& r, const Source& s, std::uint32_t lane, std::uint8_t* stripe) {
  for (std::uint64_t g = 0; g < s.groups; ++g) {
    const std::uint64_t from = s.group_row * s.groups + g, to = g * kLanes + lane;
    const std::uint64_t sup = f.super_k != 0 ? s.super_row * s.supers + g * f.group_k / f.super_k : 0;
    if (f.super_k != 0 && f.super_num != 0 && m.super == Num::none)
      put_number(m.scale, stripe + m.off_scale, to, load_num(f.super_num, r.super, sup) * load_num(f.scale_num, r.scale, from));
    else put_stored(m.scale, stripe + m.off_scale, to, f.scale_num, r.scale, from);
    if (m.min != Num::none && f.super_k != 0 && f.super_min_num != 0 && m.super_min == Num::none)
      put_number(m.min, stripe + m.off_min, to, load_num(f.super_min_num, r.super_min, sup) * load_num(f.min_num, r.min, from));
    else if (m.min != Num::none) put_stored(m.min, stripe + m.off_min, to, f.min_num, r.min, from);
    if (m.has_zero)
      stripe[m.off_zero + to] =
          static_cast<std::uint8_t>(static_cast<const std::uint8_t*>(r.zero)[from] ^ (m.codes == Codes::b8 ? 0x80u : 0u));
  }
  for (std::uint64_t j = 0; j < m.supers; ++j) {
    const std::uint64_t from = s.super_row * s.supers + j, to = j * kLanes + lane;
    if (m.super != Num::none) put_stored(m.super, stripe + m.off_super, to, f.super_num, r.super, from);
    if (m.super_min != Num::none) put_stored(m.super_min, stripe + m.off_super_min, to, f.super_min_num, r.super_min, from);
  }
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
  for (std::uint64_t n = n0; n < n1; ++n) {
    std::uint8_t* stripe = data + n / kLanes * m.stripe_bytes;
    const auto lane = static_cast<std::uint32_t>(n % kLanes);
    if (lane == 0) std::memset(stripe, 0, m.stripe_bytes);
    if (m.floats) {
      const std::uint32_t bytes = num_bytes(m.number);
      const auto* row = static_cast<const std::uint8_t*>(r.kept) + (n - n0) * m.k * bytes;
      for (std::uint32_t k = 0; k < m.k; ++k)
        std::memcpy(stripe + (static_cast<std::size_t>(k) * kLanes + lane) * bytes, row + static_cast<std::size_t>(k) * bytes, bytes);
      continue;
    }
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
