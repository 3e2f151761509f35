#include "../common/fp8.hpp"

namespace {

struct Names {
  static constexpr const char *kName = "fp8", *kSummary = "Checkpoints of 8-bit floats with scales for blocks or whole tensors.";
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.fp8", "1.0", mekik::checkpoint::factored_scheme<mekik::checkpoint::Fp8<Names>>());
