// Expectations of the reference operations: vectors.txt, as make_vectors.py wrote it.
#pragma once
#include <bit>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "reference/ops.hpp"
#include "support/catch.hpp"
#include "support/paths.hpp"

namespace mekik::reference {

using Numbers = std::vector<double>;

// One case of vectors.txt.
class Case {
 public:
  explicit Case(const std::string& name) {
    std::ifstream file{test::source_directory() / "tests" / "ops" / "vectors.txt"};
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
      std::istringstream words{line};
      std::string key, word;
      words >> key;
      if (key == "case") {
        words >> word;
        inside = word == name;
      } else if (inside) {
        while (words >> word) arrays_[key].push_back(std::strtod(word.c_str(), nullptr));
      }
    }
    INFO("tests/ops/vectors.txt, case " << name);
    REQUIRE_FALSE(arrays_.empty());
  }
  const Numbers& operator[](const std::string& key) const {
    INFO(key);
    REQUIRE(arrays_.count(key) == 1);
    return arrays_.at(key);
  }
  std::vector<float> floats(const std::string& key) const { return {(*this)[key].begin(), (*this)[key].end()}; }
  std::vector<std::int32_t> ids(const std::string& key) const {
    std::vector<std::int32_t> out;
    for (const double v : (*this)[key]) out.push_back(static_cast<std::int32_t>(v));
    return out;
  }

 private:
  std::map<std::string, Numbers> arrays_;
};

inline Rows rows(std::vector<float>& data, std::size_t n, std::size_t outer, std::size_t last) {
  return {data.data(), n, outer * last, outer, last};
}

// Within `bound` of the largest expected number.
inline void check_near(const std::vector<float>& got, const Numbers& wanted, double bound = 1e-6) {
  REQUIRE(got.size() == wanted.size());
  double largest = 0;
  for (const double w : wanted) largest = std::fmax(largest, std::fabs(w));
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i, got[i], wanted[i]);
    CHECK(std::fabs(got[i] - wanted[i]) <= bound * largest);
  }
}
inline void check_same(const std::vector<float>& got, const Numbers& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i, got[i], wanted[i]);
    CHECK(std::bit_cast<std::uint32_t>(got[i]) == std::bit_cast<std::uint32_t>(static_cast<float>(wanted[i])));
  }
}

// One sequence whose `context` tokens are stored and whose `n` are of this step, in blocks of 3 in falling order.
struct OneSequence {
  OneSequence(std::int32_t context_len, std::int32_t n, std::size_t state_size, std::uint32_t num) {
    start = {0, n};
    context = {context_len};
    const std::int32_t blocks = (context_len + n + 2) / 3;
    for (std::int32_t i = 0; i < blocks; ++i) table.push_back(blocks - 1 - i);
    seq_of.assign(static_cast<std::size_t>(n), 0);
    state_in = {0};
    state_out.assign(static_cast<std::size_t>(n), -1);
    state_out.back() = 1;
    batch.n_tokens = static_cast<std::uint32_t>(n);
    batch.n_seqs = 1;
    batch.max_blocks = static_cast<std::uint32_t>(blocks);
    batch.seq_start = start.data();
    batch.context_len = context.data();
    batch.blocks = &tables;
    batch.state_in = state_in.data();
    batch.state_out = state_out.data();
    const std::uint64_t block_bytes = 3 * state_size * num_size(num) + 8;
    pool.resize(static_cast<std::size_t>(blocks) * block_bytes, std::byte{0xFF});
    state = {pool.data(), block_bytes, 8, {num, nullptr}, 0, state_size, 1};
  }
  Step step() {
    tables = table.data();
    return {&batch, seq_of, 3, {}};
  }
  mekik_batch batch{};
  std::vector<std::int32_t> start, context, table, state_in, state_out;
  const std::int32_t* tables = nullptr;
  std::vector<std::uint32_t> seq_of;
  std::vector<std::byte> pool;
  State state;
};

// Slot 0 holds the start; the last token saves to slot 1.
struct TwoSlots {
  explicit TwoSlots(const std::vector<float>& start)
      : data(2 * start.size()), work(start.size()), slot{reinterpret_cast<std::byte*>(data.data()), start.size() * 4, 0, start.size()} {
    std::copy(start.begin(), start.end(), data.begin());
  }
  std::vector<float> after() const { return {data.begin() + static_cast<std::ptrdiff_t>(slot.size), data.end()}; }
  std::vector<float> data, work;
  Slot slot;
};

}  // namespace mekik::reference
