// compressed-tensors.
//   integers  weight_packed I32 [n][k * bits / 32], a stream along each row, the code stored with its middle added; or weight I8 [n][k].
//             weight_zero_point packed down the columns, or I8. w = round(scale * (q - z)), rounded to the scale's type.
//   floats    weight E4M3 or E5M2; weight_packed U8 with 4-bit floats, two a byte, under weight_scale E4M3 / weight_global_scale (16), or
//   under
//             a power of two (32); 6-bit floats, four in three bytes. Rounded to the scale's type, or BF16.
// Scales are for the tensor, rows, groups or blocks.
#include "../common/floats.hpp"
#include "../common/integers.hpp"
#include "rules.hpp"

namespace mekik_compressed {

using namespace mekik::checkpoint;
using mekik::checkpoint::Weight;

namespace {

enum { kPacked, kWeight, kScale, kZeros, kGroups, kShape, kGlobal };

struct More {
  Grid grid;
  std::uint64_t line = 0;  // words of a packed row
  bool packed_zeros = false;
};

struct Compressed {
  static constexpr const char
      *kName = "compressed_tensors",
      *kSummary = "compressed-tensors checkpoints: packed and plain integers, FP8, FP4 and FP6.",
      *kSuffixes =
          "weight_packed? weight? weight_scale? weight_zero_point? weight_g_idx? weight_shape? weight_global_scale? "
          "input_scale? input_zero_point? input_global_scale? k_scale! v_scale! q_scale! k_zero_point! v_zero_point! "
          "output_scale! output_zero_point! k_global_scale! v_global_scale! q_global_scale!";

  static std::string module(const mekik_parts& parts) {
    const Part packed{parts, kPacked}, weight{parts, kWeight};
    return packed ? module_of(packed, "weight_packed") : module_of(weight, "weight");
  }

  static int claims(const mekik_parts& parts) {
    const Part packed{parts, kPacked}, weight{parts, kWeight}, scale{parts, kScale};
    if (!packed && !(weight && (scale || is_fp8(weight.num()) || weight.num() == MEKIK_I8))) return 0;
    return ignored(*config(parts), module(parts)) ? 0 : 100;
  }

  static const char* left_out(const mekik_parts& parts) {
    const auto rules = config(parts);
    if (rules_of(*rules, module(parts)).activations)
      return "activations are not quantized as the checkpoint's input_activations asks; they stay as the backend keeps them";
    return "";
  }

  static Weight inspect(const mekik_parts& parts) {
    const Part packed{parts, kPacked}, weight{parts, kWeight}, scales{parts, kScale};
    const Rules rules = rules_of(*config(parts), module(parts));
    if (packed && weight) wrong(packed.name() + " and " + weight.name() + " are both there");
    if (!scales) wrong((packed ? packed : weight).name() + " has no weight_scale beside it");
    const Part& stored = packed ? packed : weight;
    stored.need_matrix();
    Weight w;
    More more;
    w.n = stored.size(0);
    w.scale_num = grid_num(scales, rules.group == 32);  // MXFP: a power of two for 32
    w.round = w.scale_num == MEKIK_E8M0 || w.scale_num == MEKIK_E4M3 ? static_cast<std::uint32_t>(MEKIK_BF16) : w.scale_num;
    const bool floats = packed ? packed.num() == MEKIK_U8 : is_fp8(weight.num());
    if (floats == rules.integer)
      wrong(stored.name() + " holds " + (floats ? "floats" : "integers") + ", but type of quantization_config is \"" +
            (floats ? "int" : "float") + "\"");
    if (packed && packed.num() == MEKIK_U8) small_floats(parts, rules, w);
    else if (packed) packed_integers(parts, rules, w, more);
    else plain(weight, rules, w);
    set_grid(scales, rules, w, more);
    if (w.kind == MEKIK_FORM_AFFINE) set_zeros(parts, rules, w, more);
    set_order(parts, rules, w);
    w.more = std::make_shared<More>(more);
    return w;
  }

  static void fill(const Weight& w, const mekik_parts& parts, std::uint64_t, std::uint64_t n0, std::uint64_t n1, Numbers& out) {
    const More& more = *static_cast<const More*>(w.more.get());
    const Part packed{parts, kPacked}, weight{parts, kWeight}, scales{parts, kScale}, global{parts, kGlobal};
    if (weight) {
      weight.read(n0 * w.k, out.codes.data(), out.codes.size());
      const auto middle = static_cast<std::uint8_t>(1u << (w.bits - 1));
      if (w.kind == MEKIK_FORM_AFFINE)
        for (std::uint8_t& code : out.codes) code = static_cast<std::uint8_t>(code + middle);
    } else if (w.kind == MEKIK_FORM_AFFINE) {
      const std::vector<std::uint32_t> words = as_words(packed.raw(n0 * more.line, (n1 - n0) * more.line));
      for (std::uint64_t row = 0; row < n1 - n0; ++row)
        unpack_bits(words.data() + row * more.line, w.bits, w.k, out.codes.data() + row * w.k);
    } else if (w.bits == 4) {
      fill_nibbles(packed, n0 * w.k, out.codes);
    } else {
      fill_sixes(packed, n0 * w.k, out.codes);
    }
    if (global && packed && packed.num() == MEKIK_U8) {
      const float by = global.floats(0, 1)[0];
      fill_grid_with(
          more.grid, scales, grid_num(scales), n0, n1, [by](float scale) { return scale / by; }, out);
    } else {
      fill_grid(more.grid, scales, n0, n1, out);
    }
    if (w.zeros) fill_zeros(w, more, parts, n0, n1, out.zero);
  }

 private:
  static void small_floats(const mekik_parts& parts, const Rules& rules, Weight& w) {
    const Part packed{parts, kPacked}, scales{parts, kScale}, global{parts, kGlobal};
    if (Part{parts, kZeros}) unsupported(packed.name() + ": floats with zero points are not read here");
    if (rules.bits == 6) {
      if (packed.size(1) % 3 != 0) wrong(packed.name() + " " + packed.shape() + " does not hold 6-bit floats, four in three bytes");
      w.k = packed.size(1) / 3 * 4;
      return codebook(w, table_fp6(), 6, 0.125f);
    }
    if (rules.bits != 4) wrong(packed.name() + " holds bytes, but num_bits is " + std::to_string(rules.bits));
    w.k = packed.size(1) * 2;
    codebook(w, table_fp4(), 4, 0.5f);
    if (scales.num() == MEKIK_E4M3 && !global) wrong(packed.name() + " has no weight_global_scale beside it");
    if (global) global.need_shape({1});
    if (global) w.scale_num = MEKIK_F32;  // scale / global, as the tool computes it
  }

  static void packed_integers(const mekik_parts& parts, const Rules& rules, Weight& w, More& more) {
    const Part packed{parts, kPacked}, shape{parts, kShape};
    packed.need_num({MEKIK_I32}, "I32");
    w.bits = rules.bits;
    more.line = packed.size(1);
    w.k = more.line * 32 / w.bits;
    if (shape) {
      const std::vector<std::int64_t> sizes = shape.integers(0, shape.elements());
      if (sizes.size() != 2 || sizes[0] < 1 || static_cast<std::uint64_t>(sizes[0]) != w.n || sizes[1] < 1 ||
          blocks_of(static_cast<std::uint64_t>(sizes[1]) * w.bits, 32) != more.line)
        wrong(shape.name() + " does not fit " + packed.name() + " " + packed.shape() + " of " + std::to_string(w.bits) + " bits");
      w.k = static_cast<std::uint64_t>(sizes[1]);
    }
  }

  static void plain(const Part& weight, const Rules& rules, Weight& w) {
    w.k = weight.size(1);
    if (is_fp8(weight.num())) return codebook(w, table_of(weight.num()), 8);
    if (weight.num() != MEKIK_I8)
      unsupported(
          weight.name() +
          " is not compressed, though it has a weight_scale; finish the checkpoint with its own tool (quantization_status \"compressed\")");
    w.bits = rules.bits;
  }

  static void set_grid(const Part& scales, const Rules& rules, Weight& w, More& more) {
    if (rules.strategy == "block") {
      more.grid = grid_of(scales, w.n, w.k, rules.block_n, rules.block_k);
    } else if (rules.group != 0 && (rules.strategy == "group" || rules.strategy == "tensor_group")) {
      const std::uint64_t each = std::min(rules.group, w.k);
      more.grid = {1, each, blocks_of(w.k, each)};
      scales.need_shape({w.n, more.grid.columns});
    } else {
      more.grid = grid_of(scales, w.n, w.k);
    }
    w.group = more.grid.block_k;
  }

  static void set_zeros(const mekik_parts& parts, const Rules& rules, Weight& w, More& more) {
    const Part zeros{parts, kZeros};
    w.zero = static_cast<std::int32_t>(1u << (w.bits - 1));
    if (!zeros && !rules.symmetric) wrong(Part{parts, kScale}.name() + " has no weight_zero_point beside it, though symmetric is false");
    if (!zeros) return;
    more.packed_zeros = zeros.num() == MEKIK_I32;
    if (more.packed_zeros) zeros.need_shape({blocks_of(w.n * w.bits, 32), more.grid.columns});
    else {
      zeros.need_num({MEKIK_I8, MEKIK_U8, MEKIK_I32, MEKIK_I64}, "whole");
      if (zeros.elements() != Part{parts, kScale}.elements())
        wrong(zeros.name() + " has shape " + zeros.shape() + ", not that of the scales");
    }
    std::vector<std::int32_t> all(w.scales(0, w.n));
    fill_zeros(w, more, parts, 0, w.n, all);
    settle_zeros(w, all, rules.symmetric || more.grid.block_n == w.n);
  }

  static void fill_zeros(const Weight& w, const More& more, const mekik_parts& parts, std::uint64_t n0, std::uint64_t n1,
                         std::vector<std::int32_t>& out) {
    const Part zeros{parts, kZeros};
    const std::uint64_t columns = more.grid.columns;
    if (more.packed_zeros) {
      const std::uint64_t a = n0 * w.bits / 32, b = blocks_of(n1 * w.bits, 32);
      const std::vector<std::uint32_t> words = as_words(zeros.raw(a * columns, (b - a) * columns));
      for (std::uint64_t n = n0; n < n1; ++n)
        for (std::uint64_t g = 0; g < columns; ++g)
          out[(n - n0) * columns + g] = static_cast<std::int32_t>(stream_at(words, columns, g, n * w.bits - a * 32, w.bits));
      return;
    }
    const std::uint64_t a = n0 / more.grid.block_n, b = blocks_of(n1, more.grid.block_n);
    const std::vector<std::int64_t> values = zeros.integers(a * columns, (b - a) * columns);
    const std::int32_t middle = static_cast<std::int32_t>(1u << (w.bits - 1));
    for (std::uint64_t n = n0; n < n1; ++n)
      for (std::uint64_t g = 0; g < columns; ++g)
        out[(n - n0) * columns + g] = static_cast<std::int32_t>(values[(n / more.grid.block_n - a) * columns + g]) + middle;
  }

  // `bits` bits from bit `bit` on of the stream down column g.
  static std::uint32_t stream_at(const std::vector<std::uint32_t>& words, std::uint64_t columns, std::uint64_t g, std::uint64_t bit,
                                 std::uint32_t bits) {
    std::uint64_t value = words[bit / 32 * columns + g] >> (bit % 32);
    if (bit % 32 + bits > 32) value |= static_cast<std::uint64_t>(words[(bit / 32 + 1) * columns + g]) << (32 - bit % 32);
    return static_cast<std::uint32_t>(value & ((1u << bits) - 1));
  }

  // Four codes of six bits in three bytes, the lowest bits first.
  static void fill_sixes(const Part& packed, std::uint64_t first, std::vector<std::uint8_t>& codes) {
    const std::vector<std::uint8_t> bytes = packed.raw(first / 4 * 3, codes.size() / 4 * 3);
    for (std::size_t i = 0; i < codes.size() / 4; ++i) {
      const std::uint32_t word =
          bytes[3 * i] | static_cast<std::uint32_t>(bytes[3 * i + 1]) << 8 | static_cast<std::uint32_t>(bytes[3 * i + 2]) << 16;
      for (std::size_t j = 0; j < 4; ++j) codes[4 * i + j] = static_cast<std::uint8_t>((word >> (6 * j)) & 63);
    }
  }

  // Activation order: columns sorted by weight_g_idx are cut into groups, one after the other.
  static void set_order(const mekik_parts& parts, const Rules& rules, Weight& w) {
    const Part groups{parts, kGroups};
    if (!groups && rules.ordered && w.groups() > 1)
      wrong(Part{parts, kScale}.name() + " has no weight_g_idx beside it, though actorder is \"group\"");
    if (!groups) return;
    groups.need_shape({w.k});
    const std::vector<std::int64_t> index = groups.integers(0, w.k);
    if (std::all_of(index.begin(), index.end(), [](std::int64_t g) { return g == -1; })) return;
    set_groups(w, index, groups.name());
  }
};

}  // namespace

}  // namespace mekik_compressed

MEKIK_PLUGIN("mekik.scheme.compressed_tensors", "1.0", mekik::checkpoint::factored_scheme<mekik_compressed::Compressed>());
