// 8-bit floats with scales for blocks, rows or the whole tensor: what several tools write under several names. w = round(scale * q),
// rounded to what the model computes in. Experts of the same checkpoints may be 4-bit floats under a power of two for 32, two a byte.
#pragma once
#include "floats.hpp"

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {
#endif
namespace checkpoint {

template <class Names>
struct Fp8 {
  static constexpr const char *kName = Names::kName, *kSummary = Names::kSummary;
  static constexpr const char* kSuffixes =
      "weight weight_scale_inv? weight_scale? activation_scale? input_scale? input_scale_ub? k_scale! v_scale! q_scale! prob_output_scale!";
  enum { kWeight, kScaleInv, kScale, kActivation, kInput, kInputBound };

  static int claims(const mekik_parts& parts) {
    const Part weight{parts, kWeight};
    return weight && (is_fp8(weight.num()) || weight.num() == MEKIK_I8) ? 100 : 0;
  }
  static const char* left_out(const mekik_parts&) {
    return "activations are not rounded to 8-bit floats, as the checkpoint's own tool does; they stay as the backend keeps them";
  }

  static Part scales_of(const mekik_parts& parts) {
    const Part inverse{parts, kScaleInv}, plain{parts, kScale};
    if (inverse && plain) wrong(inverse.name() + " and " + plain.name() + " are both there");
    if (!inverse && !plain) wrong(Part{parts, kWeight}.name() + " has neither weight_scale_inv nor weight_scale beside it");
    return inverse ? inverse : plain;
  }

  static Weight inspect(const mekik_parts& parts) {
    const Part weight{parts, kWeight}, scales = scales_of(parts);
    weight.need_matrix();
    const auto rules = config(parts);
    Weight w;
    const bool four = weight.num() == MEKIK_I8;
    w.n = weight.size(0);
    w.k = weight.size(1) * (four ? 2 : 1);
    if (four) codebook(w, table_fp4(), 4, 0.5f);
    else codebook(w, table_of(weight.num()), 8);
    check_words(*rules, weight);
    const std::uint64_t block_n = four ? 0 : block(*rules, 0), block_k = four ? 0 : block(*rules, 1);
    auto grid = std::make_shared<Grid>(grid_of(scales, w.n, w.k, block_n, block_k));
    w.group = grid->block_k;
    w.scale_num = grid_num(scales, four || grid->block_k == 32 || text_at(*rules, "scale_fmt", "") == "ue8m0");
    w.round = model_num(*rules);
    w.more = grid;
    return w;
  }

  static void fill(const Weight& w, const mekik_parts& parts, std::uint64_t, std::uint64_t n0, std::uint64_t n1, Numbers& out) {
    const Part weight{parts, kWeight};
    if (w.bits == 4) fill_nibbles(weight, n0 * w.k, out.codes);
    else weight.read(n0 * w.k, out.codes.data(), out.codes.size());
    fill_grid(*static_cast<const Grid*>(w.more.get()), scales_of(parts), n0, n1, out);
  }

 private:
  static void check_words(const Object& rules, const Part& weight) {
    word_at(rules, "activation_scheme", {"dynamic", "static"});
    word_at(rules, "scale_fmt", {"float", "ue8m0"});
    if (find(rules, "fmt") == nullptr) return;
    if (const bool e5m2 = word_at(rules, "fmt", {"e4m3", "e5m2"}) == "e5m2"; is_fp8(weight.num()) && e5m2 != (weight.num() == MEKIK_E5M2))
      wrong(weight.name() + " holds other 8-bit floats than fmt of quantization_config says");
  }
  static std::uint64_t block(const Object& rules, std::size_t axis) {
    const Json* found = find(rules, "weight_block_size");
    if (found == nullptr) return 0;
    if (!found->is_array() || found->get_array().size() != 2 || !found->get_array()[axis].is_int64() ||
        found->get_array()[axis].get_int64() < 1)
      wrong("quantization_config: weight_block_size must be two whole numbers");
    return static_cast<std::uint64_t>(found->get_array()[axis].get_int64());
  }
};

}  // namespace checkpoint
#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
