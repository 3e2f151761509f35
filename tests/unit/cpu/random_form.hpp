// Random weights of a form, for tests and benchmarks of the kernels.
#pragma once
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "pack/pack.hpp"

namespace mekik::test {

struct FormCase {
  const char* name;
  std::uint32_t kind, bits, group, super, scale, super_num, min, super_min, zero_num;
  std::int32_t zero;
  std::vector<float> table{};
  float unit = 0;
};

inline std::vector<FormCase> form_cases() {
  constexpr std::uint32_t A = MEKIK_FORM_AFFINE, C = MEKIK_FORM_CODEBOOK, H = MEKIK_F16;
  const std::vector<float> iq4{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  const std::vector<float> fp4{0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  const std::vector<float> iq1{-1.125f, -0.875f, -0.125f, 0.125f, 0.875f, 1.125f}, iq2{-5.375f, -3.125f, -1, 1, 3.125f, 5.375f};
  const std::vector<float> iq3{-15.5f, -13, -11, -9, -7, -5, -3, -1, 1, 3, 5, 7, 9, 11, 13, 15.5f};
  return {{"q1", A, 1, 32, 0, H, 0, H, 0, 0, 0},
          {"q1_0", C, 1, 128, 0, H, 0, 0, 0, 0, 0, {-1, 1}, 1},
          {"iq1_m", C, 3, 16, 256, MEKIK_U8, H, 0, 0, 0, 0, iq1, 0.125f},
          {"iq2_xxs", C, 3, 32, 256, MEKIK_U8, H, 0, 0, 0, 0, iq2, 0.125f},
          {"iq3_xxs", C, 4, 32, 256, MEKIK_U8, H, 0, 0, 0, 0, iq3, 0.25f},
          {"iq4_xs", C, 4, 32, 256, MEKIK_I8, H, 0, 0, 0, 0, iq4, 1},
          {"mxfp4_half", C, 4, 32, 0, MEKIK_E8M0_HALF, 0, 0, 0, 0, 0, fp4, 0.5f},
          {"gptq2", A, 2, 64, 0, H, 0, 0, 0, MEKIK_U8, 0},
          {"gptq3", A, 3, 32, 0, MEKIK_BF16, 0, 0, 0, MEKIK_U8, 0},
          {"tq2_0", A, 2, 256, 0, H, 0, 0, 0, 0, 1},
          {"q2_k", A, 2, 16, 256, MEKIK_U8, H, MEKIK_U8, H, 0, 0},
          {"q3_k", A, 3, 16, 256, MEKIK_I8, H, 0, 0, 0, 4},
          {"q4_0", A, 4, 32, 0, H, 0, 0, 0, 0, 8},
          {"q4_1", A, 4, 32, 0, H, 0, H, 0, 0, 0},
          {"q4_k", A, 4, 32, 256, MEKIK_U8, H, MEKIK_U8, H, 0, 0},
          {"awq", A, 4, 128, 0, H, 0, 0, 0, MEKIK_U8, 0},
          {"q5_0", A, 5, 32, 0, H, 0, 0, 0, 0, 16},
          {"q5_1", A, 5, 32, 0, H, 0, H, 0, 0, 0},
          {"q5_k", A, 5, 32, 256, MEKIK_U8, H, MEKIK_U8, H, 0, 0},
          {"q6_k", A, 6, 16, 256, MEKIK_I8, H, 0, 0, 0, 32},
          {"q8_0", A, 8, 32, 0, H, 0, 0, 0, 0, 128},
          {"int7", A, 7, 64, 0, MEKIK_F32, 0, 0, 0, 0, 64},
          {"int8z", A, 8, 64, 0, MEKIK_BF16, 0, 0, 0, MEKIK_U8, 0},
          {"iq4_nl", C, 4, 32, 0, H, 0, 0, 0, 0, 0, iq4, 1},
          {"mxfp4", C, 4, 32, 0, MEKIK_E8M0, 0, 0, 0, 0, 0, fp4, 0.5f},
          {"nvfp4", C, 4, 16, 0, MEKIK_UE4M3, 0, 0, 0, 0, 0, fp4, 0.5f}};
}
// Forms that only the float path runs.
inline std::vector<FormCase> float_form_cases() {
  constexpr std::uint32_t A = MEKIK_FORM_AFFINE, C = MEKIK_FORM_CODEBOOK;
  std::vector<float> nf4, e4m3, e5m2;
  for (int i = 0; i < 16; ++i) nf4.push_back(0.1f * static_cast<float>(i * i - 70));
  for (int i = 0; i < 256; ++i) {
    e4m3.push_back(from_e4m3(static_cast<std::uint8_t>(i)));
    e5m2.push_back(from_e5m2(static_cast<std::uint8_t>(i)));
  }
  const std::vector<float> six{e5m2.begin() + 30, e5m2.begin() + 94}, three{nf4.begin(), nf4.begin() + 7};
  return {{"nf4", C, 4, 64, 0, MEKIK_F32, 0, 0, 0, 0, 0, nf4},        {"codebook3", C, 3, 32, 0, MEKIK_F32, 0, 0, 0, 0, 0, three},
          {"codebook6", C, 6, 32, 0, MEKIK_BF16, 0, 0, 0, 0, 0, six}, {"e4m3", C, 8, 128, 0, MEKIK_F32, 0, 0, 0, 0, 0, e4m3},
          {"e5m2", C, 8, 96, 0, MEKIK_F32, 0, 0, 0, 0, 0, e5m2},      {"odd_groups", A, 5, 7, 0, MEKIK_F32, 0, MEKIK_F32, 0, 0, 3}};
}

class RandomForm {
 public:
  RandomForm(const FormCase& c, std::uint64_t n, std::uint64_t k, std::uint32_t seed) : table_{c.table}, random_{seed} {
    form_.struct_size = sizeof form_;
    form_.kind = c.kind;
    form_.bits = c.bits;
    form_.group_k = c.group;
    form_.group_n = 1;
    form_.super_k = c.super;
    form_.scale_num = c.scale;
    form_.super_num = c.super_num;
    form_.min_num = c.min;
    form_.super_min_num = c.super_min;
    form_.zero_num = c.zero_num;
    form_.zero = c.zero;
    form_.n_table = static_cast<std::uint32_t>(table_.size());
    form_.table = table_.empty() ? nullptr : table_.data();
    form_.table_unit = c.unit;
    form_.experts = 1;
    form_.n = n;
    form_.k = k;
    form_.row_step = 1;
    stage_ = std::make_unique<cpu::Staging>(form_, n);
    fill();
  }
  const mekik_form& form() const { return form_; }
  const mekik_form_rows& rows() { return *stage_->get(); }

 private:
  void numbers(std::uint32_t num, void* to, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto r = static_cast<std::uint32_t>(random_());
      switch (num) {
        case MEKIK_F32:
          put<float>(to, i, 0.001f * static_cast<float>(r % 1000));
          break;
        case MEKIK_F16:
          put<std::uint16_t>(to, i, static_cast<std::uint16_t>(0x2000u + r % 0x400u));
          break;  // 2^-7 .. 2^-6
        case MEKIK_BF16:
          put<std::uint16_t>(to, i, static_cast<std::uint16_t>(0x3C00u + r % 0x80u));
          break;
        case MEKIK_E8M0:
        case MEKIK_E8M0_HALF:
          put<std::uint8_t>(to, i, static_cast<std::uint8_t>(120 + r % 4));
          break;
        case MEKIK_UE4M3:
          put<std::uint8_t>(to, i, static_cast<std::uint8_t>(r % 0x50));
          break;
        case MEKIK_I8:
          put<std::int8_t>(to, i, static_cast<std::int8_t>(r % 64 - 32));
          break;
        default:
          put<std::uint8_t>(to, i, static_cast<std::uint8_t>(r % 16));
          break;
      }
    }
  }
  template <class T>
  static void put(void* to, std::uint64_t i, T x) {
    std::memcpy(static_cast<char*>(to) + i * sizeof x, &x, sizeof x);
  }
  void fill() {
    const mekik_form_rows& r = *stage_->get();
    const std::uint64_t groups = form_.n * ((form_.k + form_.group_k - 1) / form_.group_k);
    const std::uint64_t supers = form_.super_k != 0 ? form_.n * ((form_.k + form_.super_k - 1) / form_.super_k) : 0;
    const std::uint32_t codes = table_.empty() ? 1u << form_.bits : static_cast<std::uint32_t>(table_.size());
    for (std::uint64_t i = 0; i < form_.n * form_.k; ++i) {
      const auto x = static_cast<std::uint32_t>(random_());
      r.codes[i] = static_cast<std::uint8_t>(x % 8 == 0 ? codes - 1 : (x >> 8) % codes);  // the largest more often
    }
    numbers(form_.scale_num, r.scale, groups);
    if (form_.super_num != 0) numbers(form_.super_num, r.super, supers);
    if (form_.min_num != 0) numbers(form_.min_num, r.min, groups);
    if (form_.super_min_num != 0) numbers(form_.super_min_num, r.super_min, supers);
    if (form_.zero_num != 0) numbers(form_.zero_num, r.zero, groups);
  }
  mekik_form form_{};
  std::vector<float> table_;
  std::mt19937 random_;
  std::unique_ptr<cpu::Staging> stage_;
};

// A packed matrix and int8 activations with room of their own.
struct Packed {
  explicit Packed(RandomForm& f) : layout{cpu::make_layout(f.form())}, bytes(layout.bytes()) {
    cpu::pack_rows(f.form(), layout, f.rows(), 0, f.form().n, bytes.data());
    layout.matrix.data = bytes.data();
  }
  const cpu::Matrix& matrix() const { return layout.matrix; }
  cpu::Layout layout;
  std::vector<std::uint8_t> bytes;
};
struct Activations {
  Activations(std::uint32_t m, std::uint32_t k) : bytes(cpu::Acts::bytes((k + 31) / 32, m)), all{bytes.data(), (k + 31) / 32, m} {}
  cpu::Acts row(std::uint32_t m) const { return all.row(m); }
  double value(std::uint32_t j) const {  // of row 0
    const std::int8_t* block = all.q + j / 32 * 64 + j % 32;
    return (128.0 * block[0] + block[32]) * all.d[j / 32];
  }
  std::vector<std::uint8_t> bytes;
  cpu::Acts all;
};

}  // namespace mekik::test
