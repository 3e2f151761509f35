// A model of one format said in another: its tensors under the other format's names and shapes, its configuration under the other's keys.
// A plan only: no weights are read, but the small ones that become configuration.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/status.hpp"
#include "program/program.hpp"

namespace mekik::program {

// One step that takes a computed value back to what is stored ("1 + w" is undone by adding -1).
struct Undo {
  enum class What { add, multiply, logarithm, exponential } what;
  double constant = 0;
};

struct Transcript {
  // Values of a weight of `program`, in the page's order, and where they go in a target tensor: element (i0, i1, ..) of `sizes` is read at
  // from + sum i_a * from_strides[a] of the weight's values, and lies at to + sum i_a * to_strides[a] of the tensor's.
  struct Part {
    std::uint32_t weight = 0;
    std::vector<std::int64_t> sizes, from_strides, to_strides;
    std::int64_t from = 0, to = 0;
    std::vector<float> factors;  // of each row of the weight, before `undo`; empty: 1
    std::vector<Undo> undo;      // of every value, in this order
  };
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;  // row-major
    std::vector<Part> parts;          // together they cover it
    std::vector<float> host;          // in place of parts: made here
    bool small = false;               // a vector, a rotary table: stays F32 whatever the type
  };
  Program program;                            // of the source; says how its weights are read
  std::string page, architecture;             // architecture: what the target calls it
  std::vector<Tensor> tensors;                // in the order in which the program meets their weights
  json::object config;                        // hf: nested as config.json; gguf: flat keys
  std::map<std::string, json::object> files;  // hf: other JSON files of the folder, "1_Pooling/config.json"
  std::vector<std::string> notes;             // what has no place in the target
};

// A vector among the source's tensors, decoded.
using ReadVector = std::function<Result<std::vector<float>>(std::uint32_t tensor)>;

}  // namespace mekik::program
