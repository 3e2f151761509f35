// Model Optimizer: weight E4M3 with weight_scale (one, or one a row), or weight U8 of two 4-bit floats a byte with weight_scale E4M3 for 16
// and weight_scale_2 F32 for the tensor. w = round(q * scale), round(q * (scale * scale_2)), rounded to what the model computes in.
#include "../common/floats.hpp"

namespace mekik_modelopt {

using namespace mekik::checkpoint;
using mekik::checkpoint::Weight;

namespace {

enum { kWeight, kScale, kScale2, kInput, kPreScale };

struct ModelOpt {
  static constexpr const char
      *kName = "modelopt",
      *kSummary = "Model Optimizer checkpoints: FP8 and NVFP4.",
      *kSuffixes = "weight weight_scale weight_scale_2? input_scale? pre_quant_scale? k_scale! v_scale! q_scale! output_scale!";

  static int claims(const mekik_parts& parts) {
    const Part weight{parts, kWeight};
    return weight && (is_fp8(weight.num()) || weight.num() == MEKIK_U8) ? 100 : 0;
  }
  static const char* left_out(const mekik_parts& parts) {
    return Part{parts, kInput} ? "activations are not rounded as input_scale asks; they stay as the backend keeps them" : "";
  }

  static Weight inspect(const mekik_parts& parts) {
    const Part weight{parts, kWeight}, scales{parts, kScale}, global{parts, kScale2}, pre{parts, kPreScale};
    if (pre) unsupported(pre.name() + " scales the inputs, which is not read here; export without AWQ or SmoothQuant");
    weight.need_matrix();
    Weight w;
    const bool four = weight.num() == MEKIK_U8;
    if (four && (!global || scales.num() != MEKIK_E4M3))
      unsupported(weight.name() + " is packed in a way that is not read here; FP8 and NVFP4 are");
    w.n = weight.size(0);
    w.k = weight.size(1) * (four ? 2 : 1);
    if (four) codebook(w, table_fp4(), 4, 0.5f);
    else codebook(w, table_of(weight.num()), 8);
    if (four) global.need_shape({1});
    auto grid = std::make_shared<Grid>(four ? block_grid(scales, w.n, w.k, 1, 16) : grid_of(scales, w.n, w.k));
    w.group = grid->block_k;
    w.scale_num = four ? static_cast<std::uint32_t>(MEKIK_F32) : grid_num(scales, false);
    w.round = model_num(*config(parts));
    w.more = grid;
    return w;
  }

  static void fill(const Weight& w, const mekik_parts& parts, std::uint64_t, std::uint64_t n0, std::uint64_t n1, Numbers& out) {
    const Part weight{parts, kWeight}, scales{parts, kScale};
    const Grid& grid = *static_cast<const Grid*>(w.more.get());
    if (w.bits == 8) {
      weight.read(n0 * w.k, out.codes.data(), out.codes.size());
      return fill_grid(grid, scales, n0, n1, out);
    }
    fill_nibbles(weight, n0 * w.k, out.codes);
    const float global = Part{parts, kScale2}.floats(0, 1)[0];
    fill_grid_with(
        grid, scales, MEKIK_E4M3, n0, n1, [&](float scale) { return scale * global; }, out);
  }
};

}  // namespace

}  // namespace mekik_modelopt

MEKIK_PLUGIN("mekik.scheme.modelopt", "1.0", mekik::checkpoint::factored_scheme<mekik_modelopt::ModelOpt>());
