// What a step has to do at least, by the shapes of a program's operations: the measure of how near to a machine's limits it runs.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "program/program.hpp"

namespace mekik::bench {

// Products are multiplications with an addition. Bytes are of weights and of keys and values; activations are small and stay near.
struct Work {
  double int8_products = 0, f32_products = 0, bytes = 0;
  void add(const Work& other, double times = 1);
};

// A step: of so many tokens in so many sequences, each token behind `context` others on average.
struct Step {
  double tokens = 0, rows = 0, sequences = 0, context = 0;  // rows: that reach the output
};

// Bytes of a number of a weight's, or state's, scheme ("q4_1", "f16").
using BytesOf = std::function<double(const std::string& scheme)>;

// By operation. `integers`: whether weights that are integers meet activations that are integers. What an operation does beside products
// (norms, activations) counts for nothing.
std::vector<Work> work_of(const program::Program& program, const Step& step, const BytesOf& bytes_of, bool integers);

}  // namespace mekik::bench
