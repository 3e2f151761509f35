// AWQ: 4-bit codes, w = round(scale * (q - z)).
//   gemm: qweight [k][n / 8], eight outputs a word in the order 0 2 4 6 1 3 5 7 from the low bits up; qzeros [groups][n / 8] alike;
//         scales [groups][n]
//   gemv: qweight [n][k / 8], inputs in order; qzeros [n][width], groups in order, scales [n][8 * width], width rounded up
#include "../common/integers.hpp"

namespace mekik_awq {

using namespace mekik::checkpoint;
using mekik::checkpoint::Weight;

namespace {

enum { kQweight, kQzeros, kScales };
constexpr std::uint32_t kPlace[8] = {0, 4, 1, 5, 2, 6, 3, 7};  // where in its word output i of eight lies

struct More {
  bool gemv = false;
  std::uint64_t width = 0;  // gemv: words of a row of qzeros
};

struct Awq {
  static constexpr const char *kName = "awq", *kSummary = "AWQ checkpoints: 4 bits in groups, packed for gemm or gemv.",
                              *kSuffixes = "qweight qzeros? scales";

  static int claims(const mekik_parts& parts) { return Part{parts, kQweight} ? 100 : 0; }
  static const char* left_out(const mekik_parts&) { return ""; }

  static bool is_gemv(const Object& config) {
    std::string version = "gemm";
    for (const char* key : {"checkpoint_format", "format", "version"}) version = text_at(config, key, version);
    for (char& c : version) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (version == "gemv") return true;
    if (version != "gemm" && version != "exllama" && version != "ipex")
      unsupported("quantization_config: the weights are repacked for \"" + version +
                  "\"; gemm and gemv packing are read, so save it as one of them");
    return false;
  }

  static Weight inspect(const mekik_parts& parts) {
    const Part qweight{parts, kQweight}, qzeros{parts, kQzeros}, scales{parts, kScales};
    const auto rules = config(parts);
    const std::int64_t bits = whole_at(*rules, "bits", whole_at(*rules, "w_bit", 4));
    if (bits != 4) unsupported("quantization_config: AWQ of " + std::to_string(bits) + " bits; 4 is read");
    qweight.need_num({MEKIK_I32}, "I32");
    qweight.need_matrix();
    Weight w;
    auto more = std::make_shared<More>();
    more->gemv = is_gemv(*rules);
    w.bits = 4;
    w.n = qweight.size(0) * (more->gemv ? 1 : 0) + qweight.size(1) * (more->gemv ? 0 : 8);
    w.k = qweight.size(1) * (more->gemv ? 8 : 0) + qweight.size(0) * (more->gemv ? 0 : 1);
    w.group = group_size(whole_at(*rules, "group_size", whole_at(*rules, "q_group_size", 128)), w.k);
    w.scale_num = w.round = scale_num_of(scales);
    if (!qzeros && flag_at(*rules, "zero_point", true)) wrong(qweight.name() + " has no qzeros, though zero_point is set");
    w.zeros = static_cast<bool>(qzeros);
    w.zero = 8;
    if (qzeros) qzeros.need_num({MEKIK_I32}, "I32");
    if (more->gemv) {
      if (scales.rank() != 2 || scales.size(0) != w.n || scales.size(1) < w.groups())
        wrong(scales.name() + " has shape " + scales.shape() + ", not [" + std::to_string(w.n) + ", at least " +
              std::to_string(w.groups()) + "]");
      if (qzeros && (qzeros.rank() != 2 || qzeros.size(0) != w.n || qzeros.size(1) * 8 < w.groups()))
        wrong(qzeros.name() + " has shape " + qzeros.shape() + ", which does not hold " + std::to_string(w.groups()) +
              " zero points a row");
      more->width = qzeros ? qzeros.size(1) : 0;
    } else {
      scales.need_shape({w.groups(), w.n});
      if (qzeros) qzeros.need_shape({w.groups(), w.n / 8});
      w.align = 8;
      w.row_step = 1024;
    }
    w.more = more;
    return w;
  }

  static void fill(const Weight& w, const mekik_parts& parts, std::uint64_t, std::uint64_t n0, std::uint64_t n1, Numbers& out) {
    const auto& more = *static_cast<const More*>(w.more.get());
    if (more.gemv) fill_gemv(w, more, parts, n0, n1, out);
    else fill_gemm(w, parts, n0, n1, out);
  }

 private:
  static void fill_gemv(const Weight& w, const More& more, const mekik_parts& parts, std::uint64_t n0, std::uint64_t n1, Numbers& out) {
    const Part qzeros{parts, kQzeros}, scales{parts, kScales};
    const std::uint64_t rows = n1 - n0, groups = w.groups(), line = w.k / 8;
    const std::vector<std::uint32_t> words = as_words(Part{parts, kQweight}.raw(n0 * line, rows * line));
    for (std::uint64_t i = 0; i < rows * w.k; ++i) out.codes[i] = static_cast<std::uint8_t>((words[i / 8] >> (4 * (i % 8))) & 15);
    out.scale = scales.box(scales.size(1), n0, n1, 0, groups);
    if (!w.zeros) return;
    const std::vector<std::uint32_t> zeros = as_words(qzeros.raw(n0 * more.width, rows * more.width));
    for (std::uint64_t row = 0; row < rows; ++row)
      for (std::uint64_t g = 0; g < groups; ++g)
        out.zero[row * groups + g] = static_cast<std::int32_t>((zeros[row * more.width + g / 8] >> (4 * (g % 8))) & 15);
  }

  static void fill_gemm(const Weight& w, const mekik_parts& parts, std::uint64_t n0, std::uint64_t n1, Numbers& out) {
    const std::uint64_t rows = n1 - n0, groups = w.groups(), c = n0 / 8, d = (n1 + 7) / 8, wide = d - c;
    const std::vector<std::uint32_t> words = as_words(Part{parts, kQweight}.box(w.n / 8, 0, w.k, c, d));
    const auto code = [&](const std::vector<std::uint32_t>& from, std::uint64_t line, std::uint64_t row) {
      return (from[line * wide + row / 8] >> (4 * kPlace[row % 8])) & 15;
    };
    for (std::uint64_t k0 = 0; k0 < w.k; k0 += 64)  // in blocks, so that neither side is walked against its grain
      for (std::uint64_t at = 0; at < rows; at += 8)
        for (std::uint64_t j = k0; j < std::min(w.k, k0 + 64); ++j) {
          const std::uint32_t word = words[j * wide + at / 8];
          std::uint8_t* to = out.codes.data() + at * w.k + j;
          for (std::uint64_t i = 0; i < 8; ++i) to[i * w.k] = static_cast<std::uint8_t>((word >> (4 * kPlace[i])) & 15);
        }
    turn_scales(Part{parts, kScales}, groups, w.n, n0, n1, out.scale);
    if (!w.zeros) return;
    const std::vector<std::uint32_t> zeros = as_words(Part{parts, kQzeros}.box(w.n / 8, 0, groups, c, d));
    for (std::uint64_t g = 0; g < groups; ++g)
      for (std::uint64_t row = 0; row < rows; ++row) out.zero[row * groups + g] = static_cast<std::int32_t>(code(zeros, g, row));
  }
};

}  // namespace

}  // namespace mekik_awq

MEKIK_PLUGIN("mekik.scheme.awq", "1.0", mekik::checkpoint::factored_scheme<mekik_awq::Awq>());
