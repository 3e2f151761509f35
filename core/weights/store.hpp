// Turns a program's weight recipes into forms and rows that a backend pulls.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "plugin/registry.hpp"
#include "program/program.hpp"
#include "weights/model_file.hpp"

namespace mekik::weights {

// Holds one form per weight of a program. describe() reads headers and small parts only. Borrowed by the store: the file, the program.
// Thread: after open, rows() and decode() from any thread.
class Store {
 public:
  // Picks the scheme plugin of each tensor and asks it for the form. `dense`: "f32", "f16" or "bf16", the form to which a scheme that
  // has none is decoded (noted in notes()). A scheme that is not installed is an error naming the tensor and the scheme.
  static Result<std::unique_ptr<Store>> open(plugin::Registry& registry, const ModelFile& file, const program::Program& program,
                                             const std::string& dense);
  ~Store();
  const std::vector<const mekik_form*>& forms() const;  // one per Program::weights
  const std::string& scheme(std::size_t weight) const;  // "q4_k", "f32", ... what mekik_tensor.scheme says
  // The argument of mekik_backend.weight for program tensor `tensor` (role WEIGHT). Valid as long as the store.
  mekik_weight weight(std::uint32_t tensor) const;
  // Rows n0 .. n1 of an expert, decoded: the truth. out [n1 - n0][k].
  Status decode(std::size_t weight, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, float* out) const;
  const std::vector<std::string>& notes() const;
  std::set<std::string> libraries() const;  // those of the schemes, as Component::library names them
  // Why a weight's rows() failed first: a backend passes on the code only, and may have asked on a thread of its own.
  Status failure() const;

 private:
  Store();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mekik::weights
