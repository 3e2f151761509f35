// What all schemes of one tensor share: checks of what the host passes, and reading rows in panels of bounded size.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <mekik/plugin.hpp>
#include <memory>
#include <string>

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {  // guard() and report() are this plugin's own, so this must be, too
#endif
namespace blocks {

// The host could not read; it has said why already.
struct ReadFailed {
  mekik_status code;
};

// guard(), but a failure of the host's keeps the host's text.
template <class F>
mekik_status serve(F&& f) noexcept {
  mekik_status read = MEKIK_OK;
  const mekik_status status = guard([&] {
    try {
      f();
    } catch (const ReadFailed& failed) {
      read = failed.code;
    }
  });
  return read != MEKIK_OK ? read : status;
}

inline const mekik_part& only_part(const mekik_parts& parts) {
  if (parts.n_parts != 1 || parts.parts == nullptr) throw Error{MEKIK_E_INVALID, "this scheme stores a weight as one tensor"};
  return parts.parts[0];
}

inline std::string label(const mekik_part& part) { return part.name != nullptr ? std::string{part.name} : std::string{"(no name)"}; }

// Fails unless the part holds experts x n rows of row_bytes.
inline void check_size(const mekik_parts& parts, std::uint64_t row_bytes) {
  const mekik_part& part = only_part(parts);
  std::uint64_t rows = 0, bytes = 0;
  if (__builtin_mul_overflow(parts.experts, parts.n, &rows) || __builtin_mul_overflow(rows, row_bytes, &bytes) || bytes != part.bytes)
    throw Error{MEKIK_E_INVALID, label(part) + ": " + std::to_string(part.bytes) + " bytes do not hold " + std::to_string(parts.experts) +
                                     " x " + std::to_string(parts.n) + " rows of " + std::to_string(parts.k) + " values"};
}

inline void check_rows(const mekik_parts& parts, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1) {
  if (expert >= parts.experts || n0 > n1 || n1 > parts.n)
    throw Error{MEKIK_E_INVALID, label(only_part(parts)) + ": rows " + std::to_string(n0) + " to " + std::to_string(n1) + " of expert " +
                                     std::to_string(expert) + " do not exist"};
}

// Calls f(row - n0, bytes of the row) for rows n0 .. n1 of an expert. Reads at most about 256 KiB at a time.
template <class F>
void each_row(const mekik_parts& parts, std::uint64_t row_bytes, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, F&& f) {
  check_size(parts, row_bytes);
  check_rows(parts, expert, n0, n1);
  if (n0 == n1 || row_bytes == 0) return;
  const mekik_part& part = only_part(parts);
  const std::uint64_t begin = (expert * parts.n + n0) * row_bytes;
  if (part.data != nullptr) {
    const auto* data = static_cast<const std::uint8_t*>(part.data) + begin;
    for (std::uint64_t row = 0; row < n1 - n0; ++row) f(row, data + row * row_bytes);
    return;
  }
  const std::uint64_t panel = std::min(n1 - n0, std::max<std::uint64_t>(1, (std::uint64_t{256} << 10) / row_bytes));
  const std::unique_ptr<std::uint8_t[]> buffer{new std::uint8_t[panel * row_bytes]};
  for (std::uint64_t row = 0; row < n1 - n0; row += panel) {
    const std::uint64_t count = std::min(panel, n1 - n0 - row);
    const mekik_status status = parts.read(parts.self, 0, begin + row * row_bytes, buffer.get(), count * row_bytes);
    if (status != MEKIK_OK) throw ReadFailed{status};
    for (std::uint64_t i = 0; i < count; ++i) f(row + i, buffer.get() + i * row_bytes);
  }
}

inline mekik_form empty_form(const mekik_parts& parts) {
  mekik_form form{};
  form.struct_size = sizeof(mekik_form);
  form.experts = parts.experts;
  form.n = parts.n;
  form.k = parts.k;
  form.group_n = 1;
  form.row_step = 1;
  form.exact = 1;
  return form;
}

}  // namespace blocks
#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
