#include "../common/fp8.hpp"

namespace {

struct Names {
  static constexpr const char *kName = "mxfp8", *kSummary = "MXFP8 checkpoints: 8-bit floats under a power of two for 32.";
};

}  // namespace

MEKIK_PLUGIN("mekik.scheme.mxfp8", "1.0", mekik::checkpoint::factored_scheme<mekik::checkpoint::Fp8<Names>>());
