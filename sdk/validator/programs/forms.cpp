#include "forms.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <mekik/numbers.hpp>

namespace mekik::test {

namespace {

struct Spec {
  const char* name;
  std::uint32_t kind, bits, group, super, scale, super_num, min, super_min, zero_num;
  std::int32_t zero;
  std::uint32_t round;
};
constexpr std::uint32_t A = MEKIK_FORM_AFFINE, C = MEKIK_FORM_CODEBOOK;
constexpr Spec kSpecs[] = {
    {"q4_0", A, 4, 32, 0, MEKIK_F16, 0, 0, 0, 0, 8, 0},
    {"q4_1", A, 4, 32, 0, MEKIK_F16, 0, MEKIK_F16, 0, 0, 0, 0},
    {"q5_0", A, 5, 32, 0, MEKIK_F16, 0, 0, 0, 0, 16, 0},
    {"q5_1", A, 5, 32, 0, MEKIK_F16, 0, MEKIK_F16, 0, 0, 0, 0},
    {"q8_0", A, 8, 32, 0, MEKIK_F16, 0, 0, 0, 0, 128, 0},
    {"q2_k", A, 2, 16, 256, MEKIK_U8, MEKIK_F16, MEKIK_U8, MEKIK_F16, 0, 0, 0},
    {"q3_k", A, 3, 16, 256, MEKIK_I8, MEKIK_F16, 0, 0, 0, 4, 0},
    {"q4_k", A, 4, 32, 256, MEKIK_U8, MEKIK_F16, MEKIK_U8, MEKIK_F16, 0, 0, 0},
    {"q5_k", A, 5, 32, 256, MEKIK_U8, MEKIK_F16, MEKIK_U8, MEKIK_F16, 0, 0, 0},
    {"q6_k", A, 6, 16, 256, MEKIK_I8, MEKIK_F16, 0, 0, 0, 32, 0},
    {"tq2_0", A, 2, 256, 0, MEKIK_F16, 0, 0, 0, 0, 1, 0},
    {"int8_row", A, 8, 0, 0, MEKIK_F32, 0, 0, 0, 0, 128, MEKIK_BF16},
    {"awq", A, 4, 128, 0, MEKIK_F16, 0, 0, 0, MEKIK_U8, 0, MEKIK_F16},
    {"gptq", A, 4, 128, 0, MEKIK_F16, 0, 0, 0, MEKIK_U8, 0, MEKIK_F16},
    {"kept", A, 4, 32, 0, MEKIK_F32, 0, 0, 0, 0, 8, 0},
    {"iq4_nl", C, 4, 32, 0, MEKIK_F16, 0, 0, 0, 0, 0, 0},
    {"mxfp4", C, 4, 32, 0, MEKIK_E8M0, 0, 0, 0, 0, 0, 0},
    {"nvfp4", C, 4, 16, 0, MEKIK_UE4M3, 0, 0, 0, 0, 0, 0},
    {"nf4", C, 4, 64, 0, MEKIK_F32, 0, 0, 0, 0, 0, 0},
    {"fp8_128", C, 8, 128, 0, MEKIK_F32, 0, 0, 0, 0, 0, 0},
    {"fp8_e5m2", C, 8, 0, 0, MEKIK_F32, 0, 0, 0, 0, 0, MEKIK_BF16},
    {"iq4_xs", C, 4, 32, 256, MEKIK_I8, MEKIK_F16, 0, 0, 0, 0, 0},
    {"mxfp4_half", C, 4, 32, 0, MEKIK_E8M0_HALF, 0, 0, 0, 0, 0, 0},
    {"q1_0", C, 1, 128, 0, MEKIK_F16, 0, 0, 0, 0, 0, 0},
    {"iq1_m", C, 3, 16, 256, MEKIK_U8, MEKIK_F16, 0, 0, 0, 0, 0},
    {"iq2_xxs", C, 3, 32, 256, MEKIK_U8, MEKIK_F16, 0, 0, 0, 0, 0},
    {"iq3_xxs", C, 4, 32, 256, MEKIK_U8, MEKIK_F16, 0, 0, 0, 0, 0},
    {"codebook5", C, 5, 32, 0, MEKIK_BF16, 0, 0, 0, 0, 0, 0},
    {"gptq2", A, 2, 64, 0, MEKIK_F16, 0, 0, 0, MEKIK_U8, 0, MEKIK_F16},
    {"gptq3", A, 3, 32, 0, MEKIK_BF16, 0, 0, 0, MEKIK_U8, 0, MEKIK_BF16},
    {"gptq8", A, 8, 0, 0, MEKIK_F16, 0, 0, 0, MEKIK_U8, 0, MEKIK_F16},
    {"odd_groups", A, 4, 12, 0, MEKIK_F32, 0, MEKIK_F32, 0, 0, 3, 0},
};

const std::vector<float> kIq4{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
const std::vector<float> kFp4{0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

std::vector<float> table_of(const std::string& name) {
  if (name == "iq4_nl" || name == "iq4_xs") return kIq4;
  if (name == "mxfp4" || name == "mxfp4_half" || name == "nvfp4") return kFp4;
  if (name == "q1_0") return {-1, 1};
  if (name == "iq1_m") return {-1.125f, -0.875f, -0.125f, 0.125f, 0.875f, 1.125f};
  if (name == "iq2_xxs") return {-5.375f, -3.125f, -1, 1, 3.125f, 5.375f};
  if (name == "iq3_xxs") return {-15.5f, -13, -11, -9, -7, -5, -3, -1, 1, 3, 5, 7, 9, 11, 13, 15.5f};
  std::vector<float> table;
  const int entries = name == "nf4" ? 16 : name == "codebook5" ? 29 : name.starts_with("fp8") ? 256 : 0;
  for (int i = 0; i < entries; ++i) {
    const auto bits = static_cast<std::uint8_t>(i);
    if (name == "fp8_128") table.push_back(from_e4m3(bits));
    else if (name == "fp8_e5m2") table.push_back(from_e5m2(bits));
    else table.push_back(std::sin(0.2f * static_cast<float>(i - entries / 2)));
  }
  return table;
}
float unit_of(const std::string& name) {
  if (name == "iq4_nl" || name == "iq4_xs" || name == "q1_0") return 1;
  if (name == "mxfp4" || name == "mxfp4_half" || name == "nvfp4") return 0.5f;
  if (name == "iq3_xxs") return 0.25f;
  return name == "iq1_m" || name == "iq2_xxs" ? 0.125f : 0.0f;
}

// A number of type `num` near `value` (which is positive).
void put(std::uint32_t num, void* array, std::size_t i, float value) {
  auto* bytes = static_cast<std::uint8_t*>(array);
  if (num == MEKIK_E8M0 || num == MEKIK_E8M0_HALF)
    bytes[i] = static_cast<std::uint8_t>((num == MEKIK_E8M0 ? 127 : 128) + std::lround(std::log2(value)));
  else if (num == MEKIK_UE4M3) bytes[i] = static_cast<std::uint8_t>(std::clamp(std::lround(8 * (std::log2(value) + 7)), 0l, 125l));
  else if (num == MEKIK_U8 || num == MEKIK_I8) bytes[i] = static_cast<std::uint8_t>(value);
  else store_num(num, array, i, value);
}

}  // namespace

TestWeight::TestWeight(const std::string& name, std::uint64_t experts, std::uint64_t n, std::uint64_t k, Random& random) {
  form_.struct_size = sizeof form_;
  form_.experts = experts, form_.n = n, form_.k = k;
  form_.row_step = 1;
  form_.exact = 1;
  const auto* spec = std::find_if(std::begin(kSpecs), std::end(kSpecs), [&](const Spec& s) { return name == s.name; });
  if (spec == std::end(kSpecs)) {
    form_.kind = MEKIK_FORM_FLOAT;
    form_.kept_num = name == "f16" ? MEKIK_F16 : name == "bf16" ? MEKIK_BF16 : MEKIK_F32;
  } else {
    form_.kind = spec->kind, form_.bits = spec->bits, form_.super_k = spec->super;
    form_.group_k = spec->group != 0 ? spec->group : static_cast<std::uint32_t>(k), form_.group_n = name == "fp8_128" ? 128 : 1;
    form_.scale_num = spec->scale, form_.super_num = spec->super_num, form_.min_num = spec->min, form_.super_min_num = spec->super_min;
    form_.zero_num = spec->zero_num, form_.zero = spec->zero, form_.round_num = spec->round;
    table_ = table_of(name);
    form_.row_step = form_.group_n;
    form_.table_unit = unit_of(name);
    for (std::uint64_t e = 0; name == "nvfp4" && e < experts; ++e) tensor_scale_.push_back(0.37f + 0.1f * static_cast<float>(e));
    if (name.starts_with("gptq")) {
      k_perm_.resize(k);
      std::iota(k_perm_.begin(), k_perm_.end(), 0u);
      std::shuffle(k_perm_.begin(), k_perm_.end(), random);
    }
    if (name == "kept") {
      for (std::uint32_t j = 1; j < k; j += 17) kept_.push_back(j);
      form_.kept_num = MEKIK_F32;
    }
  }
  allocate();
  fill(random);
}

TestWeight::TestWeight(std::vector<float> values, std::uint64_t experts, std::uint64_t n, std::uint64_t k, std::uint32_t num) {
  form_.struct_size = sizeof form_;
  form_.kind = MEKIK_FORM_FLOAT, form_.kept_num = num, form_.row_step = 1, form_.exact = 1;
  form_.experts = experts, form_.n = n, form_.k = k;
  allocate();
  for (std::uint64_t e = 0; e < experts; ++e)
    for (std::uint64_t i = 0; i < n * k; ++i) store_num(num, weight_->expert(e).kept, i, values[e * n * k + i]);
}

void TestWeight::allocate() {
  form_.table = table_.data(), form_.n_table = static_cast<std::uint32_t>(table_.size());
  form_.tensor_scale = tensor_scale_.empty() ? nullptr : tensor_scale_.data();
  form_.k_perm = k_perm_.empty() ? nullptr : k_perm_.data();
  form_.kept_k = kept_.empty() ? nullptr : kept_.data(), form_.n_kept = static_cast<std::uint32_t>(kept_.size());
  memory_.resize(reference::Weight::bytes(form_) / 8 + 1);
  weight_ = std::make_unique<reference::Weight>(form_, memory_.data());
}

void TestWeight::fill(Random& random) {
  const float size = 1.0f / std::sqrt(static_cast<float>(form_.k));
  // The largest |c| that a code stands for, so that scales can be made to fit.
  float reach = form_.kind == MEKIK_FORM_AFFINE ? static_cast<float>(1u << (form_.bits - 1)) : 0;
  for (const float c : table_)
    if (std::isfinite(c)) reach = std::max(reach, std::fabs(c));
  std::uniform_real_distribution<float> spread{0.5f, 1.5f};
  const auto any = [&](std::uint64_t below) { return std::uniform_int_distribution<std::uint64_t>{0, below - 1}(random); };
  for (std::uint64_t e = 0; e < form_.experts; ++e) {
    const mekik_form_rows r = weight_->expert(e);
    const reference::FormBytes b = reference::form_bytes(form_, form_.n);
    const auto count = [](std::size_t bytes, std::uint32_t num) { return num != 0 ? bytes / num_size(num) : 0; };
    for (std::size_t i = 0; i < count(b.kept, form_.kept_num); ++i) store_num(form_.kept_num, r.kept, i, size * normal(random));
    if (form_.kind == MEKIK_FORM_FLOAT) continue;
    const float step = size / reach * 2, small = form_.super_k != 0 ? 32.0f : step;
    const std::uint64_t codes = form_.kind == MEKIK_FORM_CODEBOOK ? table_.size() : std::uint64_t{1} << form_.bits;
    for (std::size_t i = 0; i < b.codes; ++i) {
      r.codes[i] = static_cast<std::uint8_t>(any(codes));
      if (!table_.empty() && !std::isfinite(table_[r.codes[i]])) r.codes[i] = 0;
    }
    for (std::size_t i = 0; i < count(b.scale, form_.scale_num); ++i) put(form_.scale_num, r.scale, i, small * spread(random));
    for (std::size_t i = 0; i < count(b.super, form_.super_num); ++i) put(form_.super_num, r.super, i, step / 32 * spread(random));
    for (std::size_t i = 0; i < count(b.min, form_.min_num); ++i)
      put(form_.min_num, r.min, i, (form_.super_k != 0 ? 32.0f : size) * spread(random));
    for (std::size_t i = 0; i < count(b.super_min, form_.super_min_num); ++i)
      put(form_.super_min_num, r.super_min, i, size / 32 * spread(random));
    for (std::size_t i = 0; i < b.zero; ++i)
      static_cast<std::uint8_t*>(r.zero)[i] =
          static_cast<std::uint8_t>(std::min<std::uint64_t>(255, 1 + any(std::uint64_t{1} << form_.bits)));
  }
}

mekik_weight TestWeight::abi(std::uint32_t tensor) const {
  return {sizeof(mekik_weight), tensor, &form_, const_cast<TestWeight*>(this),
          [](void* self, std::uint64_t e, std::uint64_t n0, std::uint64_t n1, const mekik_form_rows* out) {
            return static_cast<const TestWeight*>(self)->rows(e, n0, n1, *out);
          }};
}

mekik_status TestWeight::rows(std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, const mekik_form_rows& out) const {
  const auto step = form_.row_step;
  if (expert >= form_.experts || n0 > n1 || n1 > form_.n || n0 % step != 0 || (n1 % step != 0 && n1 != form_.n)) return MEKIK_E_INVALID;
  const mekik_form_rows all = weight_->expert(expert);
  const reference::FormBytes part = reference::form_bytes(form_, n1 - n0), before = reference::form_bytes(form_, n0);
  const auto copy = [](void* to, const void* from, std::size_t skip, std::size_t bytes) {
    if (bytes != 0 && to != nullptr) std::memcpy(to, static_cast<const char*>(from) + skip, bytes);
  };
  copy(out.codes, all.codes, before.codes, part.codes);
  copy(out.scale, all.scale, before.scale, part.scale);
  copy(out.super, all.super, before.super, part.super);
  copy(out.min, all.min, before.min, part.min);
  copy(out.super_min, all.super_min, before.super_min, part.super_min);
  copy(out.zero, all.zero, before.zero, part.zero);
  copy(out.kept, all.kept, before.kept, part.kept);
  return MEKIK_OK;
}

std::vector<float> TestWeight::decoded() const { return weight_->decode_all(); }

const std::vector<std::string>& form_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all{"f32", "f16", "bf16"};
    for (const Spec& s : kSpecs) all.emplace_back(s.name);
    return all;
  }();
  return names;
}

std::uint64_t form_multiple(const std::string& form) {
  for (const Spec& s : kSpecs)
    if (form == s.name) return s.super != 0 ? s.super : form == "fp8_128" || form == "odd_groups" || s.group == 0 ? 1 : s.group;
  return 1;
}

}  // namespace mekik::test
