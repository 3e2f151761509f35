#include "dtypes.hpp"

#include <mekik/plugin.h>

namespace mekik_safetensors {

namespace {

// The ABI has no unsigned numbers of more than a byte; no weight is made of them. They go by the number of the same layout.
constexpr Dtype kDtypes[] = {
    {"F64", MEKIK_F64, 8},      {"F32", MEKIK_F32, 4},      {"F16", MEKIK_F16, 2},      {"BF16", MEKIK_BF16, 2},
    {"F8_E4M3", MEKIK_E4M3, 1}, {"F8_E5M2", MEKIK_E5M2, 1}, {"F8_E8M0", MEKIK_E8M0, 1}, {"I8", MEKIK_I8, 1},
    {"U8", MEKIK_U8, 1},        {"I16", MEKIK_I16, 2},      {"U16", MEKIK_I16, 2},      {"I32", MEKIK_I32, 4},
    {"U32", MEKIK_I32, 4},      {"I64", MEKIK_I64, 8},      {"U64", MEKIK_I64, 8},      {"BOOL", MEKIK_U8, 1},
};

}  // namespace

const Dtype* find_dtype(std::string_view name) {
  for (const Dtype& dtype : kDtypes)
    if (dtype.name == name) return &dtype;
  return nullptr;
}

std::string dtype_names() {
  std::string out;
  for (const Dtype& dtype : kDtypes) out += (out.empty() ? "" : " ") + std::string{dtype.name};
  return out;
}

}  // namespace mekik_safetensors
