// Blocks of 32 numbers: an F32 scale and a byte each; wrong in one way.
#include <cmath>
#include <cstdlib>

#include "faulty.hpp"

namespace {

constexpr std::uint64_t kElems = 32, kBytes = 36;

const mekik_part& part(const mekik_parts* p) { return p->parts[0]; }
// Row `row` of all experts; false: it cannot be read.
mekik_status read_row(const mekik_parts* p, std::uint64_t row, char* to) {
  const std::uint64_t bytes = p->k / kElems * kBytes;
  if (part(p).data != nullptr) return std::memcpy(to, static_cast<const char*>(part(p).data) + row * bytes, bytes), MEKIK_OK;
  const mekik_status status = p->read(p->self, 0, row * bytes, to, bytes + (is("reads_past_part") && row + 1 == p->n * p->experts ? 4 : 0));
  return is("ignores_read_error") ? MEKIK_OK : status;
}
mekik_status check(const mekik_parts* p) {
  if (p->k % kElems != 0) return fail(MEKIK_E_INVALID, "rows are no whole number of blocks");
  if (!is("trusts_size") && part(p).bytes != p->experts * p->n * p->k / kElems * kBytes)
    return fail(MEKIK_E_INVALID, "the tensor has another size");
  return MEKIK_OK;
}
int claims(const mekik_parts* p) {
  if (is("claims_more")) return 1000;
  return part(p).scheme != nullptr && std::strcmp(part(p).scheme, "faulty") == 0 ? 100 : 0;
}
mekik_status describe(const mekik_parts* p, mekik_form* out) {
  if (const mekik_status s = check(p); s != MEKIK_OK) return s;
  *out = {};
  out->struct_size = sizeof *out;
  out->kind = MEKIK_FORM_AFFINE;
  out->bits = is("bits_too_many") ? 9 : 8;
  out->group_k = is("wrong_group") ? 16 : 32;
  out->group_n = 1;
  out->scale_num = MEKIK_F32;
  out->zero = is("wrong_zero") ? 127 : 128;
  out->exact = 1;
  out->row_step = 1;
  out->experts = p->experts, out->n = p->n, out->k = p->k;
  return MEKIK_OK;
}
mekik_status each(const mekik_parts* p, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, auto&& f) {
  if (const mekik_status s = check(p); s != MEKIK_OK) return s;
  auto* row = static_cast<char*>(std::malloc(p->k / kElems * kBytes + 8));
  if (row == nullptr) return fail(MEKIK_E_NO_MEMORY, "out of memory");
  mekik_status status = MEKIK_OK;
  for (std::uint64_t n = n0; n < n1 && status == MEKIK_OK; ++n) {
    status = read_row(p, (is("one_expert") ? 0 : expert) * p->n + n, row);
    if (status == MEKIK_OK) f(n - n0, row);
  }
  std::free(row);
  return status;
}
mekik_status rows(const mekik_parts* p, const mekik_form*, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1,
                  const mekik_form_rows* out) {
  return each(p, expert, n0, n1, [&](std::uint64_t n, const char* row) {
    for (std::uint64_t b = 0; b < p->k / kElems; ++b, row += kBytes) {
      std::memcpy(static_cast<char*>(out->scale) + (n * p->k / kElems + b) * 4, row, 4);
      std::memcpy(out->codes + n * p->k + b * kElems, row + 4, kElems - (is("codes_unwritten") ? 1 : 0));
    }
  });
}
mekik_status decode(const mekik_parts* p, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, float* out) {
  return each(p, expert, n0, n1, [&](std::uint64_t n, const char* row) {
    if (is("ignores_first_row")) n += n0;
    for (std::uint64_t k = 0; k < p->k + (is("decodes_one_more") ? 1 : 0); ++k) {
      float scale = 0;
      std::memcpy(&scale, row + k / kElems * kBytes, 4);
      const auto code = static_cast<unsigned char>(row[k / kElems * kBytes + 4 + k % kElems]);
      out[n * p->k + k] = scale * static_cast<float>(code - 128);
      if (is("clips") && out[n * p->k + k] > 1) out[n * p->k + k] = 1;
    }
  });
}
mekik_status encode(const float* x, const float* importance, std::uint64_t n, std::uint64_t k, void* blocks, std::uint64_t bytes) {
  if (!is("encode_any_size") && (k % kElems != 0 || bytes != n * k / kElems * kBytes))
    return fail(MEKIK_E_INVALID, "the blocks have another size");
  if (is("needs_importance")) static_cast<void>(static_cast<volatile const float*>(importance)[0]);
  auto* to = static_cast<unsigned char*>(blocks);
  for (std::uint64_t b = 0; b < n * k / kElems; ++b, to += kBytes, x += kElems) {
    float most = 0;
    for (std::uint64_t i = 0; i < kElems; ++i) most = std::fmax(most, std::fabs(x[i]));
    const float scale = most / 127;
    std::memcpy(to, &scale, 4);
    for (std::uint64_t i = 0; i < kElems; ++i) {
      const float code = scale > 0 ? std::round(x[i] / scale) : is("zeros_divide") ? x[i] / scale : 0;
      to[4 + i] =
          static_cast<unsigned char>(128 + static_cast<int>(is("encodes_badly") ? code / 2 : std::fmin(127, std::fmax(-128, code))));
    }
  }
  return MEKIK_OK;
}

const mekik_scheme kTable{
    sizeof(mekik_scheme), kElems, kBytes, 0, nullptr, claims, describe, nullptr, rows, decode, encode, nullptr, nullptr};
const mekik_component kComponent = one_component<mekik_scheme>(MEKIK_KIND_SCHEME, &kTable, nullptr, 0);
void at_init() {}

}  // namespace

FAULTY_PLUGIN(kComponent, at_init);
