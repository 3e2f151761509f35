// Plain numbers: F32, F16 and BF16 are their own form; 8-bit floats without scales are decoded.
#include <mekik/files.hpp>
#include "../common/numbers.hpp"

namespace mekik_float {

namespace {

std::uint64_t value_bytes(const mekik_part& part) {
  if (part.scheme == nullptr && part.num == MEKIK_F32) return 4;
  if (part.scheme == nullptr && (part.num == MEKIK_F16 || part.num == MEKIK_BF16)) return 2;
  if (part.scheme == nullptr && (part.num == MEKIK_E4M3 || part.num == MEKIK_E5M2)) return 1;
  throw mekik::Error{MEKIK_E_UNSUPPORTED, mekik::blocks::label(part) + ": holds neither F32, F16 nor BF16 numbers; weights must"};
}

std::uint64_t row_bytes(const mekik_parts& parts) {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(parts.k, value_bytes(mekik::blocks::only_part(parts)), &bytes))
    throw mekik::Error{MEKIK_E_INVALID, mekik::blocks::label(parts.parts[0]) + ": a row is too long"};
  return bytes;
}

int claims(const mekik_parts* parts) {
  if (parts->n_parts != 1 || parts->parts[0].scheme != nullptr) return 0;
  const std::uint32_t num = parts->parts[0].num;
  return num == MEKIK_F32 || num == MEKIK_F16 || num == MEKIK_BF16 ? 100 : 0;
}

mekik_status describe(const mekik_parts* parts, mekik_form* out) {
  return mekik::guard([&] {
    const std::uint64_t bytes = row_bytes(*parts);
    mekik::blocks::check_size(*parts, bytes);
    if (bytes == parts->k) throw mekik::Error{MEKIK_E_UNSUPPORTED, "8-bit floats without scales"};
    *out = mekik::blocks::empty_form(*parts);
    out->kind = MEKIK_FORM_FLOAT;
    out->kept_num = parts->parts[0].num;
  });
}

void release(mekik_form*) {}

mekik_status rows(const mekik_parts* parts, const mekik_form*, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1,
                  const mekik_form_rows* out) {
  return mekik::guard([&] {
    const std::uint64_t bytes = row_bytes(*parts);
    auto* to = static_cast<std::uint8_t*>(out->kept);
    mekik::blocks::each_row(*parts, bytes, expert, n0, n1,
                            [&](std::uint64_t row, const std::uint8_t* from) { std::memcpy(to + row * bytes, from, bytes); });
  });
}

mekik_status decode(const mekik_parts* parts, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, float* out) {
  return mekik::guard([&] {
    const std::uint64_t bytes = row_bytes(*parts), k = parts->k;
    const std::uint32_t num = parts->parts[0].num;
    mekik::blocks::each_row(*parts, bytes, expert, n0, n1, [&](std::uint64_t row, const std::uint8_t* from) {
      float* to = out + row * k;
      if (num == MEKIK_F32) std::memcpy(to, from, bytes);
      else if (bytes == k)
        for (std::uint64_t i = 0; i < k; ++i) to[i] = mekik::load_num(num, from, i);
      else if (num == MEKIK_F16)
        for (std::uint64_t i = 0; i < k; ++i) to[i] = mekik_blocks::load_f16(from + 2 * i);
      else
        for (std::uint64_t i = 0; i < k; ++i) to[i] = mekik::from_bf16(mekik_blocks::load_u16(from + 2 * i));
    });
  });
}

// No encode: which of the three numbers is meant would not be known here; the host rounds floats itself.
constexpr mekik_scheme kTable{sizeof(mekik_scheme), 0, 0, 0, nullptr, claims, describe, release, rows, decode, nullptr, nullptr, nullptr};
constexpr std::array<mekik_option, 0> kOptions{};

}  // namespace

}  // namespace mekik_float

MEKIK_PLUGIN("mekik.scheme.float", "1.0",
             mekik::component(MEKIK_KIND_SCHEME, "float", "1.0", "Plain F32, F16 and BF16 numbers, and 8-bit floats without scales.",
                              mekik_float::kOptions, &mekik_float::kTable));
