// Random weights in every form, as a scheme would hand them to a backend.
#pragma once
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "reference/form.hpp"

namespace mekik::test {

using Random = std::mt19937_64;
inline float normal(Random& random) { return std::normal_distribution<float>{0, 1}(random); }

class TestWeight {
 public:
  // One of form_names(), with values of about 1 / sqrt(k).
  TestWeight(const std::string& form, std::uint64_t experts, std::uint64_t n, std::uint64_t k, Random& random);
  // These numbers, in F32, F16 or BF16.
  TestWeight(std::vector<float> values, std::uint64_t experts, std::uint64_t n, std::uint64_t k, std::uint32_t num = MEKIK_F32);
  TestWeight(const TestWeight&) = delete;
  TestWeight& operator=(const TestWeight&) = delete;

  const mekik_form& form() const { return form_; }
  mekik_weight abi(std::uint32_t tensor) const;
  mekik_status rows(std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, const mekik_form_rows& out) const;
  std::vector<float> decoded() const;

 private:
  void fill(Random& random);
  void allocate();
  mekik_form form_{};
  std::vector<float> table_, tensor_scale_;
  std::vector<std::uint32_t> k_perm_, kept_;
  std::vector<std::uint64_t> memory_;
  std::unique_ptr<reference::Weight> weight_;
};

// "f32", "f16", "bf16", "q4_0", ..., "gptq" (permuted), "kept" (float columns apart).
const std::vector<std::string>& form_names();
std::uint64_t form_multiple(const std::string& form);  // of k, where the form's tool asks for it

}  // namespace mekik::test
