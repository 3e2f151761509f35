// GPTQ: qweight [k * bits / 32][n], a stream of codes down each column; qzeros [groups][n * bits / 32]; scales [groups][n]; g_idx [k] the
// group of each input. w = round(scale * (q - z)); z is the stored number + 1 in the first version of the format, as stored in gptq_v2.
#include "../common/integers.hpp"
#include "../common/pattern.hpp"

namespace mekik_gptq {

using namespace mekik::checkpoint;
using mekik::checkpoint::Weight;

namespace {

enum { kQweight, kQzeros, kScales, kGroups };

// What the checkpoint's rules say of one module.
struct Rules {
  std::uint32_t bits = 4;
  std::int64_t group = 128;
  bool symmetric = true, ordered = false, second = false, excluded = false;
};

Rules rules_of(const Object& config, const std::string& module) {
  Rules rules;
  const auto take = [&](const Object& from) {
    const std::int64_t bits = whole_at(from, "bits", rules.bits);
    if (bits < 1 || bits > 8) wrong("quantization_config: bits " + std::to_string(bits) + "; 2, 3, 4 and 8 are known");
    rules.bits = static_cast<std::uint32_t>(bits);
    rules.group = whole_at(from, "group_size", rules.group);
    rules.symmetric = flag_at(from, "sym", rules.symmetric);
    rules.ordered = flag_at(from, "desc_act", rules.ordered);
  };
  take(config);
  if (const Object* dynamic = object_at(config, "dynamic"))
    for (const auto& rule : *dynamic) {
      std::string pattern{rule.key()};
      const bool out = pattern.starts_with("-:");
      if (out || pattern.starts_with("+:")) pattern.erase(0, 2);
      if (!name_matches(pattern, module)) continue;
      rules.excluded = out;
      if (!out && rule.value().is_object()) take(rule.value().get_object());
      break;
    }
  std::string format = "gptq";
  for (const char* key : {"format", "checkpoint_format"}) format = text_at(config, key, format);
  if (flag_at(config, "is_marlin_format", false)) format = "marlin";
  if (format != "gptq" && format != "gptq_v2")
    unsupported("quantization_config: the weights are repacked for \"" + format +
                "\"; formats gptq and gptq_v2 are read, so save it as one of them");
  rules.second = format == "gptq_v2";
  return rules;
}

struct More {
  std::uint64_t lines = 0, zero_words = 0;
  std::int32_t add = 0;      // to a stored zero point
  bool mislabelled = false;  // zero points are not of the version that the label says
};

std::vector<std::int32_t> stored_zeros(const Weight& w, const Part& part, std::uint64_t words, std::uint64_t n0, std::uint64_t n1) {
  const std::uint64_t groups = w.groups(), c = n0 * w.bits / 32, d = std::min(words, (n1 * w.bits + 31) / 32);
  const std::vector<std::uint32_t> box = as_words(part.box(words, 0, groups, c, d));
  std::vector<std::int32_t> out((n1 - n0) * groups);
  for (std::uint64_t g = 0; g < groups; ++g)
    for (std::uint64_t n = n0; n < n1; ++n)
      out[(n - n0) * groups + g] = static_cast<std::int32_t>(bits_at(box.data() + g * (d - c), 1, n - c * 32 / w.bits, w.bits));
  return out;
}

struct Gptq {
  static constexpr const char *kName = "gptq", *kSummary = "GPTQ checkpoints: 2 to 8 bits in groups, act-order, versions 1 and 2.",
                              *kSuffixes = "qweight qzeros? scales g_idx?";

  static int claims(const mekik_parts& parts) { return Part{parts, kQweight} ? 100 : 0; }

  static const char* left_out(const mekik_parts& parts) {
    return std::static_pointer_cast<const More>(inspect(parts).more)->mislabelled
               ? "the zero points are of another version of the format than checkpoint_format says; they are read as symmetric weights "
                 "have them"
               : "";
  }

  static Weight inspect(const mekik_parts& parts) {
    const Part qweight{parts, kQweight}, scales{parts, kScales}, groups{parts, kGroups};
    const std::string module = module_of(qweight, "qweight");
    const Rules rules = rules_of(*config(parts), module);
    if (rules.excluded) wrong("quantization_config.dynamic leaves " + module + " as it was, but " + qweight.name() + " is packed");
    qweight.need_num({MEKIK_I32}, "I32");
    qweight.need_matrix(" [k * bits / 32, n]");
    Weight w;
    auto more = std::make_shared<More>();
    w.bits = rules.bits;
    w.n = qweight.size(1);
    more->lines = qweight.size(0);
    const std::uint64_t most = more->lines * 32 / w.bits;
    w.k = groups ? groups.elements() : most;
    if (w.k == 0 || w.k > most || blocks_needed(w.k, w.bits) != more->lines)
      wrong(qweight.name() + " " + qweight.shape() + " does not hold " + std::to_string(w.k) + " inputs of " + std::to_string(w.bits) +
            " bits");
    w.group = group_size(rules.group, w.k);
    w.scale_num = w.round = scale_num_of(scales);
    scales.need_shape({w.groups(), w.n});
    w.align = 32;
    w.row_step = 512;
    if (!groups && rules.ordered && w.groups() > 1)
      wrong(qweight.name() + " has no g_idx beside it, though desc_act is set: which group an input is of is not known");
    if (groups) set_groups(w, groups.integers(0, w.k), groups.name());
    set_zeros(parts, rules, w, *more);
    w.more = more;
    return w;
  }

  static std::uint64_t blocks_needed(std::uint64_t k, std::uint32_t bits) { return (k * bits + 31) / 32; }

  // Symmetric weights have the middle code as zero point everywhere. Files exist whose zero points are of the other version than their
  // label says: with symmetric weights that shows.
  static void set_zeros(const mekik_parts& parts, const Rules& rules, Weight& w, More& more) {
    const Part qzeros{parts, kQzeros};
    const auto middle = static_cast<std::int32_t>(1u << (w.bits - 1));
    w.zero = middle;
    if (!qzeros) {
      if (!rules.symmetric) wrong(qzeros.name() + ": " + Part{parts, kQweight}.name() + " has no qzeros, and is not symmetric");
      return;
    }
    qzeros.need_num({MEKIK_I32}, "I32");
    more.zero_words = (w.n * w.bits + 31) / 32;
    qzeros.need_shape({w.groups(), more.zero_words});
    std::vector<std::int32_t> zeros = stored_zeros(w, qzeros, more.zero_words, 0, w.n);
    const auto all = [&](std::int32_t value) {
      return std::all_of(zeros.begin(), zeros.end(), [&](std::int32_t z) { return z == value; });
    };
    const bool second = rules.symmetric && all(middle) ? true : rules.symmetric && all(middle - 1) ? false : rules.second;
    more.mislabelled = second != rules.second;
    more.add = second ? 0 : 1;
    for (std::int32_t& zero : zeros) zero += more.add;
    settle_zeros(w, zeros, rules.symmetric);
  }

  static void fill(const Weight& w, const mekik_parts& parts, std::uint64_t, std::uint64_t n0, std::uint64_t n1, Numbers& out) {
    const auto& more = *static_cast<const More*>(w.more.get());
    const std::uint64_t wide = n1 - n0, groups = w.groups();
    turn_scales(Part{parts, kScales}, groups, w.n, n0, n1, out.scale);
    if (w.zeros) {
      out.zero = stored_zeros(w, Part{parts, kQzeros}, more.zero_words, n0, n1);
      for (std::int32_t& zero : out.zero) zero += more.add;
    }
    const std::vector<std::uint32_t> words = as_words(Part{parts, kQweight}.box(w.n, 0, more.lines, n0, n1));
    if (32 % w.bits != 0) {
      for (std::uint64_t row = 0; row < wide; ++row)
        for (std::uint64_t j = 0; j < w.k; ++j)
          out.codes[row * w.k + j] = static_cast<std::uint8_t>(bits_at(words.data() + row, wide, j, w.bits));
      return;
    }
    const std::uint64_t each = 32 / w.bits;
    const std::uint32_t mask = (1u << w.bits) - 1;
    for (std::uint64_t line = 0; line < more.lines; ++line)
      for (std::uint64_t row = 0; row < wide; ++row) {
        std::uint32_t word = words[line * wide + row];
        std::uint8_t* to = out.codes.data() + row * w.k + line * each;
        for (std::uint64_t j = 0, end = std::min(each, w.k - std::min(w.k, line * each)); j < end; ++j, word >>= w.bits)
          to[j] = static_cast<std::uint8_t>(word & mask);
      }
  }
};

}  // namespace

}  // namespace mekik_gptq

MEKIK_PLUGIN("mekik.scheme.gptq", "1.0", mekik::checkpoint::factored_scheme<mekik_gptq::Gptq>());
