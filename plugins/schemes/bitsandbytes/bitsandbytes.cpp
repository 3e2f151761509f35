// bitsandbytes.
//   LLM.int8(): weight I8 [n][k], SCB F32 [n]. w = (scale * q) * (1 / 127). Activations of llm_int8_threshold and more avoid the int8 path.
//   NF4, FP4: two codes a byte, the first in the high half, over the flattened tensor; a table of 16; absmax for each blocksize values,
//   itself stored in 8 bits where it was quantized again: map[u] * nested_absmax + offset. w = round(table[q] * absmax); what else there is
//   to know stands as JSON in the part quant_state.
#include "../common/floats.hpp"

namespace mekik_bitsandbytes {

using namespace mekik::checkpoint;
using mekik::checkpoint::Weight;

namespace {

enum { kWeight, kAbsmax, kMap, kNestedAbsmax, kNestedMap, kNf4, kFp4, kScb, kFormat };

struct More {
  std::uint64_t block = 64, nested_block = 256;
  bool nested = false;
  float offset = 0;
  std::vector<float> nested_map, nested_absmax;
};

struct BitsAndBytes {
  static constexpr const char *kName = "bitsandbytes", *kSummary = "bitsandbytes checkpoints: LLM.int8(), NF4 and FP4.",
                              *kSuffixes =
                                  "weight weight.absmax? weight.quant_map? weight.nested_absmax? weight.nested_quant_map? "
                                  "weight.quant_state.bitsandbytes__nf4? weight.quant_state.bitsandbytes__fp4? SCB? weight_format?";

  static int claims(const mekik_parts& parts) {
    for (const std::uint32_t part : {kAbsmax, kNf4, kFp4, kScb})
      if (Part{parts, part}) return 100;
    return 0;
  }
  static const char* left_out(const mekik_parts&) { return ""; }

  static Weight inspect(const mekik_parts& parts) { return Part{parts, kScb} ? eight(parts) : four(parts); }

  static void fill(const Weight& w, const mekik_parts& parts, std::uint64_t, std::uint64_t n0, std::uint64_t n1, Numbers& out) {
    const Part weight{parts, kWeight};
    if (w.kind == MEKIK_FORM_AFFINE) {
      weight.read(n0 * w.k, out.codes.data(), out.codes.size());
      for (std::uint8_t& code : out.codes) code ^= 0x80u;
      out.scale = Part{parts, kScb}.raw(n0, n1 - n0);
      return;
    }
    const std::uint64_t first = n0 * w.k, end = n1 * w.k;
    std::vector<std::uint8_t> bytes((end + 1) / 2 - first / 2);
    weight.read(first / 2, bytes.data(), bytes.size());
    std::uint64_t i = first;
    if (i % 2 != 0) out.codes[0] = bytes[0] & 15, ++i;
    for (const std::uint8_t* byte = bytes.data() + (i / 2 - first / 2); i < end; i += 2, ++byte) {
      out.codes[i - first] = *byte >> 4;
      if (i + 1 < end) out.codes[i + 1 - first] = *byte & 15;
    }
    fill_absmax(w, parts, n0, n1, out);
  }

 private:
  static Weight eight(const mekik_parts& parts) {
    const Part weight{parts, kWeight}, scales{parts, kScb}, format{parts, kFormat};
    if (flag_at(*config(parts), "load_in_4bit", false)) wrong(weight.name() + " holds 8 bits, but quantization_config says load_in_4bit");
    weight.need_num({MEKIK_I8}, "I8");
    scales.need_num({MEKIK_F32}, "F32");
    weight.need_matrix();
    if (format && format.integers(0, 1)[0] != 0)
      unsupported(format.name() + ": the weight is laid out for one kind of device; only row order (0) is read, so save it again");
    Weight w;
    w.n = weight.size(0);
    w.k = weight.size(1);
    scales.need_shape({w.n});
    w.bits = 8;
    w.zero = 128;
    w.group = w.k;
    w.scale_num = MEKIK_F32;
    w.tensor_scale = {7.874015718698502e-3f};
    w.act_outlier = static_cast<float>(real_at(*config(parts), "llm_int8_threshold", 6.0));
    return w;
  }

  static Weight four(const mekik_parts& parts) {
    const Part weight{parts, kWeight}, absmax{parts, kAbsmax}, state = Part{parts, kNf4} ? Part{parts, kNf4} : Part{parts, kFp4};
    if (!weight || !absmax || !state)
      wrong(module_of(weight ? weight : absmax, "weight") + ": one of weight, absmax and quant_state is missing");
    check_words(*config(parts), state);
    state.need_num({MEKIK_U8}, "U8");
    if (state.elements() > 65536) wrong(state.name() + " is too long to be a description");
    const std::vector<std::uint8_t> bytes = state.raw(0, state.elements());
    const Object json = parse_object({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, state.name());
    Weight w;
    auto more = std::make_shared<More>();
    read_shape(json, state.name(), w);
    const std::int64_t block = whole_at(json, "blocksize", 64);
    if (block < 1 || block > 65536) wrong(state.name() + ": blocksize " + std::to_string(block) + " cannot be");
    more->block = static_cast<std::uint64_t>(block);
    w.round = float_num(text_at(json, "dtype", "float32"));
    if (w.round == 0) wrong(state.name() + ": dtype must be float16, bfloat16 or float32");
    const std::uint64_t values = w.n * w.k, blocks = blocks_of(values, more->block);
    if (weight.elements() * weight.number_bytes() != (values + 1) / 2)
      wrong(weight.name() + " " + weight.shape() + " does not hold " + std::to_string(w.n) + " x " + std::to_string(w.k) +
            " values of 4 bits");
    if (absmax.elements() != blocks) wrong(absmax.name() + " has " + absmax.shape() + " numbers, not " + std::to_string(blocks));
    codebook(w, table(parts), 4);
    w.scale_num = MEKIK_F32;
    read_nested(parts, json, blocks, *more);
    group(w, more->block);
    w.more = more;
    return w;
  }

  static void check_words(const Object& rules, const Part& state) {
    if (flag_at(rules, "load_in_8bit", false)) wrong(state.name() + " is of 4 bits, but quantization_config says load_in_8bit");
    if (find(rules, "bnb_4bit_quant_type") == nullptr) return;
    if (const std::string kind = word_at(rules, "bnb_4bit_quant_type", {"nf4", "fp4"}); !state.name().ends_with(kind))
      wrong(state.name() + " contradicts quantization_config, where bnb_4bit_quant_type is \"" + kind + "\"");
  }

  static void read_shape(const Object& json, const std::string& name, Weight& w) {
    const Json* shape = find(json, "shape");
    if (shape == nullptr || !shape->is_array() || shape->get_array().size() != 2) wrong(name + ": shape must be two numbers");
    for (const Json& size : shape->get_array())
      if (!size.is_int64() || size.get_int64() < 1 || size.get_int64() > (std::int64_t{1} << 31))
        wrong(name + ": shape must be two numbers");
    w.n = static_cast<std::uint64_t>(shape->get_array()[0].get_int64());
    w.k = static_cast<std::uint64_t>(shape->get_array()[1].get_int64());
  }

  static std::vector<float> table(const mekik_parts& parts) {
    const Part map{parts, kMap};
    if (!map) wrong(Part{parts, kWeight}.name() + " has no quant_map beside it");
    map.need_shape({16});
    return map.floats(0, 16);
  }

  static void read_nested(const mekik_parts& parts, const Object& json, std::uint64_t blocks, More& more) {
    const Part absmax{parts, kAbsmax}, nested{parts, kNestedAbsmax}, map{parts, kNestedMap};
    more.nested = static_cast<bool>(nested);
    if (!more.nested) return absmax.need_num({MEKIK_F32, MEKIK_F16, MEKIK_BF16}, "float");
    absmax.need_num({MEKIK_U8}, "U8");
    const std::int64_t block = whole_at(json, "nested_blocksize", 256);
    if (block < 1 || block > 65536 || !map) wrong(nested.name() + ": its blocksize or map is not there");
    more.nested_block = static_cast<std::uint64_t>(block);
    nested.need_shape({blocks_of(blocks, more.nested_block)});
    map.need_shape({256});
    more.nested_absmax = nested.floats(0, nested.elements());
    more.nested_map = map.floats(0, 256);
    more.offset = static_cast<float>(real_at(json, "nested_offset", 0));
  }

  // Groups run over the flattened tensor: rows of whole groups, groups of whole rows, or neither.
  static void group(Weight& w, std::uint64_t block) {
    w.group = std::min(block, w.k);
    if (w.k % block == 0 || block % w.k == 0) return;
    w.flat = block;
    w.no_form = "its blocks of " + std::to_string(block) + " values cross rows of " + std::to_string(w.k);
  }

  static void fill_absmax(const Weight& w, const mekik_parts& parts, std::uint64_t n0, std::uint64_t n1, Numbers& out) {
    const auto& more = *static_cast<const More*>(w.more.get());
    const Part absmax{parts, kAbsmax};
    const std::uint64_t a = n0 * w.k / more.block, b = blocks_of(n1 * w.k, more.block);
    const std::vector<std::uint8_t> raw = absmax.raw(a, b - a);
    const auto value = [&](std::uint64_t i) {
      if (!more.nested) return mekik::load_num(absmax.num(), raw.data(), i - a);
      return more.nested_map[raw[i - a]] * more.nested_absmax[i / more.nested_block] + more.offset;
    };
    const std::uint64_t count = w.scales(n0, n1), groups = w.groups();
    for (std::uint64_t i = 0; i < count; ++i)
      mekik::numbers::store(out.scale.data(), i,
                            value(w.flat != 0 ? a + i : ((n0 + i / groups) * w.k + i % groups * w.group) / more.block));
  }
};

}  // namespace

}  // namespace mekik_bitsandbytes

MEKIK_PLUGIN("mekik.scheme.bitsandbytes", "1.0", mekik::checkpoint::factored_scheme<mekik_bitsandbytes::BitsAndBytes>());
