#include "../common/fp8.hpp"

namespace {

struct Names {
  static constexpr const char *kName = "fbgemm_fp8", *kSummary = "FBGEMM checkpoints: 8-bit floats, a scale a row.";
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.fbgemm_fp8", "1.0", mekik::checkpoint::factored_scheme<mekik::checkpoint::Fp8<Names>>());
