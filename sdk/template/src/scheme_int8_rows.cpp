// Weights as signed bytes with a scale a row: X.weight [n][k] of I8 and X.weight_scale [n] of F32, w = scale * q. A checkpoint says
// "quantization_config": {"quant_method": "int8_rows"}. Exact as an affine form: codes are q + 128, the zero point is 128.
#include <mekik/plugin.hpp>

namespace {

using mekik::Part;

struct Int8Rows {
  static constexpr const char *name = "int8_rows", *version = "1.0", *summary = "Signed bytes with an F32 scale a row.";
  static constexpr const char* suffixes = "weight weight_scale";
  enum { kWeight, kScale };

  static int claims(const mekik_parts& p) {
    const Part weight{p, kWeight}, scale{p, kScale};
    return weight && scale && weight.num() == MEKIK_I8 ? 100 : 0;
  }
  static std::vector<std::int64_t> shape(const mekik_parts& p) {
    const Part weight{p, kWeight}, scale{p, kScale};
    weight.need_num({MEKIK_I8}, "I8");
    weight.need_matrix();
    scale.need_num({MEKIK_F32}, "F32");
    if (scale.elements() != weight.size(0)) throw mekik::Error{MEKIK_E_INVALID, scale.name() + " has not one scale a row"};
    return {static_cast<std::int64_t>(weight.size(0)), static_cast<std::int64_t>(weight.size(1))};
  }
  static mekik_form describe(const mekik_parts& p) {
    mekik_form form = mekik::blocks::empty_form(p);
    form.kind = MEKIK_FORM_AFFINE;
    form.bits = 8;
    form.group_k = static_cast<std::uint32_t>(p.k);
    form.scale_num = MEKIK_F32;
    form.zero = 128;
    return form;
  }
  static void rows(const mekik_parts& p, const mekik_form&, mekik::Panel panel, const mekik_form_rows& out) {
    const std::uint64_t n = panel.rows() * p.k;
    Part{p, kWeight}.read(panel.n0 * p.k, out.codes, n);
    for (std::uint64_t i = 0; i < n; ++i) out.codes[i] ^= 0x80u;
    Part{p, kScale}.read(panel.n0 * sizeof(float), out.scale, panel.rows() * sizeof(float));
  }
  static void decode(const mekik_parts& p, mekik::Panel panel, float* out) {
    const std::vector<float> q = Part{p, kWeight}.floats(panel.n0 * p.k, panel.rows() * p.k);
    const std::vector<float> scale = Part{p, kScale}.floats(panel.n0, panel.rows());
    for (std::uint64_t i = 0; i < q.size(); ++i) out[i] = scale[i / p.k] * q[i];
  }
};

}  // namespace

MEKIK_PLUGIN("org.example.int8_rows", "1.0", mekik::scheme<Int8Rows>());
