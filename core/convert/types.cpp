#include "convert/types.hpp"

#include <mekik/numbers.hpp>

#include "weights/form_layout.hpp"

namespace mekik::convert {

namespace {

// Numbers: ggml.h; file types: llama.h.
constexpr Type kTypes[] = {
    {"f32", 0, 0, "F32", MEKIK_F32}, {"f16", 1, 1, "F16", MEKIK_F16}, {"bf16", 30, 32, "BF16", MEKIK_BF16}, {"q4_0", 2, 2, nullptr, 0},
    {"q4_1", 3, 3, nullptr, 0},      {"q5_0", 6, 8, nullptr, 0},      {"q5_1", 7, 9, nullptr, 0},           {"q8_0", 8, 7, nullptr, 0},
    {"q2_k", 10, 10, nullptr, 0},    {"q3_k", 11, 12, nullptr, 0},    {"q4_k", 12, 14, nullptr, 0},         {"q5_k", 13, 16, nullptr, 0},
    {"q6_k", 14, 18, nullptr, 0},    {"iq4_nl", 20, 25, nullptr, 0},  {"iq4_xs", 23, 30, nullptr, 0},       {"tq1_0", 34, 36, nullptr, 0},
    {"tq2_0", 35, 37, nullptr, 0},   {"mxfp4", 39, 38, nullptr, 0},   {"nvfp4", 40, 39, nullptr, 0},        {"q1_0", 41, 40, nullptr, 0},
    {"q2_0", 42, 41, nullptr, 0},
};

}  // namespace

const Type* find_type(const std::string& name) {
  for (const Type& type : kTypes)
    if (name == type.name) return &type;
  return nullptr;
}

const Type& type_of(std::uint32_t num) {
  for (const Type& type : kTypes)
    if (type.num == num) return type;
  return kTypes[0];
}

std::string type_names(bool blocks) {
  std::string out;
  for (const Type& type : kTypes)
    if (blocks || type.num != 0) out += (out.empty() ? "" : ", ") + std::string{type.name};
  return out;
}

Result<Encoder> Encoder::open(plugin::Registry& registry, const Type& type) {
  Encoder out;
  out.type_ = &type;
  out.bytes_ = num_size(type.num);
  if (type.num != 0) return out;
  MEKIK_TRY(component, registry.find("scheme", type.name));
  out.component_ = component;
  out.scheme_ = &out.component_.table<mekik_scheme>();
  if (!MEKIK_HAS(mekik_scheme, out.scheme_, encode) || out.scheme_->encode == nullptr || out.scheme_->block_elems == 0)
    return unsupported("scheme " + std::string{type.name} + " can be read, but not written");
  out.elems_ = out.scheme_->block_elems;
  out.bytes_ = out.scheme_->block_bytes;
  return out;
}

Status Encoder::encode(const float* values, std::uint64_t rows, std::uint64_t columns, std::uint8_t* out) const {
  if (scheme_ == nullptr) {
    weights::convert_floats(values, rows * columns, type_->num, out);
    return {};
  }
  return plugin::to_status(scheme_->encode(values, nullptr, rows, columns, out, rows * row_bytes(columns)),
                           std::string{"scheme "} + type_->name);
}

}  // namespace mekik::convert
