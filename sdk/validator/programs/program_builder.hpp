// Small programs by hand: tensors by what they are, operations by name.
#pragma once
#include <mekik/program.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "forms.hpp"

namespace mekik::test {

inline constexpr std::int64_t kT = MEKIK_DIM_TOKENS, kS = MEKIK_DIM_SEQS, kR = MEKIK_DIM_ROWS;
inline constexpr std::uint32_t kNone = MEKIK_NONE;

class ProgramBuilder {
 public:
  using Id = std::uint32_t;
  explicit ProgramBuilder(std::uint64_t seed = 1) : random_{seed} {}
  Random& random() { return random_; }

  Id input(const std::string& name) {
    if (const auto at = inputs_.find(name); at != inputs_.end()) return at->second;
    return inputs_[name] = add(name, MEKIK_ROLE_INPUT, {name == "rows" ? kR : kT}, "i32");
  }
  Id temp(std::vector<std::int64_t> shape) { return add("t" + std::to_string(tensors_.size()), MEKIK_ROLE_TEMP, std::move(shape), "f32"); }
  Id ids(std::vector<std::int64_t> shape) { return add("i" + std::to_string(tensors_.size()), MEKIK_ROLE_TEMP, std::move(shape), "i32"); }
  Id output(const std::string& name, std::vector<std::int64_t> shape) { return add(name, MEKIK_ROLE_OUTPUT, std::move(shape), "f32"); }
  Id view(Id of, std::uint64_t column, std::vector<std::int64_t> shape) {
    const Id id = temp(std::move(shape));
    tensors_[id].view_of = of + 1;
    tensors_[id].column = column;
    return id;
  }
  Id state(std::int64_t heads, std::int64_t numbers, const char* scheme = "f16", std::uint32_t group = 0) {
    const Id id = add("kv" + std::to_string(tensors_.size()), MEKIK_ROLE_STATE, {kT, heads, numbers}, scheme);
    tensors_[id].group = group;
    n_groups_ = std::max(n_groups_, group + 1);
    return id;
  }
  Id slot(std::vector<std::int64_t> shape) {
    return add("slot" + std::to_string(tensors_.size()), MEKIK_ROLE_SLOT, std::move(shape), "f32");
  }
  Id weight(const std::string& form, std::uint64_t experts, std::uint64_t n, std::uint64_t k) {
    return weight(std::make_unique<TestWeight>(form, experts, n, k, random_), form, experts, n, k);
  }
  Id weight(const std::string& form, std::uint64_t n, std::uint64_t k) { return weight(form, 1, n, k); }
  Id values(std::vector<float> numbers, std::uint64_t n, std::uint64_t k) {
    return weight(std::make_unique<TestWeight>(std::move(numbers), 1, n, k), "f32", 1, n, k);
  }
  // n * k numbers around `mean`.
  Id noise(std::uint64_t n, std::uint64_t k, float mean, float spread) {
    std::vector<float> numbers(n * k);
    for (float& v : numbers) v = mean + spread * normal(random_);
    return values(std::move(numbers), n, k);
  }
  Id rope_table(std::uint64_t dim, double base = 10000.0) {
    std::vector<float> numbers(dim, 0.0f);
    for (std::uint64_t i = 0; i < dim / 2; ++i)
      numbers[i] = static_cast<float>(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(dim)));
    return values(std::move(numbers), 2, dim / 2);
  }

  void op(std::uint32_t code, std::vector<Id> in, std::vector<Id> out, std::vector<std::int64_t> ints = {},
          std::vector<double> reals = {}) {
    lists_.push_back({std::move(in), std::move(out), std::move(ints), std::move(reals)});
    codes_.push_back(code);
  }
  std::uint32_t n_ops() const { return static_cast<std::uint32_t>(codes_.size()); }
  const mekik_program* get();
  mekik_tensor& tensor(Id id) { return tensors_[id]; }
  const std::vector<std::pair<Id, std::unique_ptr<TestWeight>>>& weights() const { return weights_; }
  bool has_slots() const;

 private:
  struct Lists {
    std::vector<Id> in, out;
    std::vector<std::int64_t> ints;
    std::vector<double> reals;
  };
  Id add(const std::string& name, std::uint32_t role, std::vector<std::int64_t> shape, const char* scheme) {
    mekik_tensor t{};
    t.name = texts_.emplace_back(name).c_str();
    t.scheme = texts_.emplace_back(scheme).c_str();
    t.role = role;
    t.rank = static_cast<std::uint32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), t.shape);
    tensors_.push_back(t);
    return static_cast<Id>(tensors_.size() - 1);
  }
  Id weight(std::unique_ptr<TestWeight> w, const std::string& form, std::uint64_t experts, std::uint64_t n, std::uint64_t k) {
    std::vector<std::int64_t> shape{static_cast<std::int64_t>(n), static_cast<std::int64_t>(k)};
    if (experts > 1) shape.insert(shape.begin(), static_cast<std::int64_t>(experts));
    if (n == 1 && experts == 1) shape.erase(shape.begin());
    const Id id = add("w" + std::to_string(tensors_.size()), MEKIK_ROLE_WEIGHT, std::move(shape), form.c_str());
    tensors_[id].form = &w->form();
    weights_.emplace_back(id, std::move(w));
    return id;
  }

  Random random_;
  std::deque<std::string> texts_;
  std::vector<mekik_tensor> tensors_;
  std::vector<std::uint32_t> codes_;
  std::deque<Lists> lists_;
  std::vector<mekik_op> ops_;
  std::map<std::string, Id> inputs_;
  std::vector<std::pair<Id, std::unique_ptr<TestWeight>>> weights_;
  std::uint32_t n_groups_ = 0;
  mekik_program raw_{};
};

inline const mekik_program* ProgramBuilder::get() {
  ops_.clear();
  for (std::size_t i = 0; i < codes_.size(); ++i) {
    const Lists& l = lists_[i];
    const auto n = [](const auto& list) { return static_cast<std::uint32_t>(list.size()); };
    ops_.push_back({codes_[i], 0, l.in.data(), l.out.data(), n(l.in), n(l.out), l.ints.data(), l.reals.data(), n(l.ints), n(l.reals)});
  }
  raw_ = {sizeof(mekik_program),
          1,
          tensors_.data(),
          static_cast<std::uint32_t>(tensors_.size()),
          sizeof(mekik_tensor),
          ops_.data(),
          static_cast<std::uint32_t>(ops_.size()),
          sizeof(mekik_op),
          n_groups_,
          0};
  return &raw_;
}
inline bool ProgramBuilder::has_slots() const {
  return std::any_of(tensors_.begin(), tensors_.end(), [](const mekik_tensor& t) { return t.role == MEKIK_ROLE_SLOT; });
}

}  // namespace mekik::test
