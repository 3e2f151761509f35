// Keys and values as integers at every level: encoded as mekik/head_form.hpp says, and attention over them against its definition, equal
// to the bit between levels, block sizes and groupings of rows.
#include <mekik/head_form.hpp>

#include <algorithm>
#include <limits>

#include "levels.hpp"
#include "support/catch.hpp"

namespace mekik::test {

namespace {

using cpu::Attention;
using cpu::HeadLayout;

constexpr std::uint32_t kLength = 150, kHeads = 3;

struct Options {
  const char* name;
  std::uint32_t d = 20, dv = 24;
  bool causal = true;
  std::uint64_t window = 0;
  float softcap = 0;
  bool sinks = false, slopes = false;
};
const Options kOptions[] = {{"causal"},
                            {"two-way", 64, 64, false},
                            {"window", 48, 16, true, 37},
                            {"soft cap", 13, 7, true, 0, 5},
                            {"sinks", 96, 80, true, 0, 0, true},
                            {"ALiBi", 128, 128, true, 0, 0, false, true},
                            {"all", 1, 1, true, 70, 30, true, true}};

struct Inputs {
  explicit Inputs(const Options& o)
      : q{random_floats(kLength * kHeads * o.d, 1)}, k{random_floats(kLength * o.d, 2)}, v{random_floats(kLength * o.dv, 3)} {}
  std::vector<float> q, k, v;
  std::vector<float> sinks{0.5f, -1, 2}, slopes{0.5f, 0.25f, 0.01f};
};

// K and V of one head in blocks, in an order of their own; what is not a stored position is all ones, a scale of NaN.
struct Pool {
  Pool(const HeadForm& form, std::uint32_t tokens, const Options& o, const Inputs& in)
      : layout{form.bits, o.d, HeadLayout::padded(o.dv, form.bits), tokens, tokens % 16 == 0} {
    const std::size_t n_blocks = (kLength + tokens - 1) / tokens;
    v_off = (layout.key_scales() + layout.scale_bytes() + 63) / 64 * 64;
    stride = v_off + (layout.value_scales() + layout.scale_bytes() + 63) / 64 * 64;
    bytes.assign(stride * n_blocks, 0xFF);
    for (std::size_t b = 0; b < n_blocks; ++b) table.push_back(static_cast<std::int32_t>((b * 7 + 3) % n_blocks));
    if (n_blocks % 7 == 0) std::reverse(table.begin(), table.end());
    for (std::uint32_t p = 0; p < kLength; ++p) {
      std::uint8_t* key = bytes.data() + static_cast<std::size_t>(table[p / tokens]) * stride;
      const std::uint32_t t = p % tokens;
      const auto encode = [&](const float* x, std::uint32_t n, std::uint8_t* scales) {
        std::vector<float> turned(x, x + n);
        std::vector<std::int8_t> codes(n + 64, 0);
        hadamard(turned.data(), n);
        const std::uint16_t scale = encode_head(form, turned.data(), n, codes.data());
        std::memcpy(scales + 2 * t, &scale, 2);
        return codes;
      };
      const auto k = encode(&in.k[p * o.d], o.d, key + layout.key_scales());
      for (std::uint32_t i = 0; i < layout.key_bytes(); ++i) key[layout.key_at(t, i)] = layout.pack_key(k.data(), i);
      std::uint8_t* value = key + v_off;
      const auto v = encode(&in.v[p * o.dv], o.dv, value + layout.value_scales());
      for (std::uint32_t i = 0; i < layout.value_bytes(); ++i)
        value[layout.value_at(t, i)] = HeadLayout::pack_value(form.bits, v.data(), i);
    }
  }
  HeadLayout layout;
  std::size_t stride = 0, v_off = 0;
  std::vector<std::uint8_t> bytes;
  std::vector<std::int32_t> table;
};

// Rows first .. last as one sequence's step after `context` stored positions, in calls of `rows` rows.
std::vector<float> attend(const cpu::Kernels& kernels, const Pool& pool, const Inputs& in, const Options& o, bool exact,
                          std::uint32_t context, std::uint32_t rows, std::uint32_t end = kLength) {
  std::vector<float> out((end - context) * kHeads * o.dv), scratch(cpu::head_attention_scratch_floats(o.d, pool.layout.dvp));
  for (std::uint32_t row = 0; context + row < end; row += rows) {
    Attention a;
    a.q = in.q.data() + context * kHeads * o.d;
    a.out = out.data();
    a.q_stride = kHeads * o.d;
    a.out_stride = kHeads * o.dv;
    a.row0 = row;
    a.row1 = std::min(row + rows, end - context);
    a.context = context;
    a.length = end;
    a.heads = kHeads;
    a.d = o.d;
    a.dv = o.dv;
    a.dvp = pool.layout.dvp;
    a.causal = o.causal;
    a.window = o.window;
    a.scale = 0.3f;
    a.softcap = o.softcap;
    a.sinks = o.sinks ? in.sinks.data() : nullptr;
    a.slopes = o.slopes ? in.slopes.data() : nullptr;
    a.codes = pool.layout;
    a.exact = exact;
    a.base = pool.bytes.data();
    a.table = pool.table.data();
    a.block_bytes = pool.stride;
    a.v_off = pool.v_off;
    a.block_tokens = pool.layout.tokens;
    a.scratch = scratch.data();
    kernels.attention(a);
  }
  return out;
}

std::vector<float> stored(const HeadForm& form, const std::vector<float>& x, std::uint32_t n) {
  std::vector<float> out = x;
  std::vector<std::int8_t> codes(n);
  for (std::size_t at = 0; at < x.size(); at += n) {
    hadamard(&out[at], n);
    const std::uint16_t scale = encode_head(form, &out[at], n, codes.data());
    decode_head(scale, codes.data(), n, &out[at]);
  }
  return out;
}

std::vector<float> definition(const HeadForm& form, const Inputs& in, const Options& o) {
  std::vector<float> out(kLength * kHeads * o.dv);
  const auto k = stored(form, in.k, o.d), v = stored(form, in.v, o.dv);
  for (std::uint32_t row = 0; row < kLength; ++row)
    for (std::uint32_t h = 0; h < kHeads; ++h) {
      const std::uint32_t hi = o.causal ? row + 1 : kLength,
                          lo = o.window != 0 && row + 1 > o.window ? row + 1 - static_cast<std::uint32_t>(o.window) : 0;
      double sum = o.sinks ? std::exp(double{in.sinks[h]}) : 0;
      std::vector<double> acc(o.dv);
      for (std::uint32_t p = lo; p < hi; ++p) {
        double s = 0;
        for (std::uint32_t i = 0; i < o.d; ++i) s += double{in.q[(row * kHeads + h) * o.d + i]} * k[p * o.d + i];
        s *= 0.3f;
        if (o.softcap != 0) s = o.softcap * std::tanh(s / o.softcap);
        if (o.slopes) s += in.slopes[h] * (static_cast<double>(p) - static_cast<double>(row));
        sum += std::exp(s);
        for (std::uint32_t j = 0; j < o.dv; ++j) acc[j] += std::exp(s) * v[p * o.dv + j];
      }
      for (std::uint32_t j = 0; j < o.dv; ++j) out[(row * kHeads + h) * o.dv + j] = static_cast<float>(acc[j] / sum);
    }
  return out;
}

}  // namespace

TEST_CASE("keys and values are encoded as head_form.hpp says at every level") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::uint32_t n : {1u, 2u, 5u, 8u, 12u, 16u, 20u, 24u, 33u, 48u, 64u, 80u, 96u, 128u, 192u, 576u})
    for (const float spread : {1.0f, 0.0f, 1e-3f, 1e-40f, 1e30f, 3e38f, inf, nan, -inf})
      for (const HeadForm& form : {kQ8Head, kQ4Head}) {
        CAPTURE(n, spread, form.bits);
        std::vector<float> x = random_floats(n, n);
        for (float& v : x) v = std::isfinite(spread) ? v * spread : v;
        if (!std::isfinite(spread)) x[n / 2] = spread;
        std::vector<float> turned = x;
        hadamard(turned.data(), n);
        std::vector<std::int8_t> codes(n);
        const std::uint16_t scale = encode_head(form, turned.data(), n, codes.data());
        for (const cpu::Kernels* level : levels()) {
          CAPTURE(level->name);
          std::vector<float> row = x;
          level->turn(row.data(), n);
          CHECK(same_bits(row, turned));
          std::vector<std::int8_t> got(n + 16, 99);
          CHECK(level->encode_head(form.bits, row.data(), n, got.data()) == scale);
          CHECK(std::equal(codes.begin(), codes.end(), got.begin()));
        }
        // What comes out is what went in, to half a step and the scale's rounding; or NaN.
        decode_head(scale, codes.data(), n, turned.data());
        float most = 0;
        for (const float v : x) most = std::max(most, std::fabs(v));
        for (std::uint32_t i = 0; i < n; ++i) {
          if (!std::isfinite(spread)) CHECK(std::isnan(turned[i]));
          else if (spread == 0 || (spread > 1e-30f && spread < 1e30f))
            CHECK(std::fabs(turned[i] - x[i]) <= most * (form.bits == 8 ? 0.03f : 0.6f));
        }
      }
}

TEST_CASE("attention over integers is its definition, and the same whatever the level, the blocks and the grouping of rows") {
  for (const Options& o : kOptions) {
    CAPTURE(o.name);
    const Inputs in{o};
    for (const HeadForm& form : {kQ8Head, kQ4Head})
      for (const bool exact : {false, true}) {
        CAPTURE(form.bits, exact);
        const auto wanted = definition(form, in, o);
        std::vector<float> truth;
        for (const cpu::Kernels* level : levels())
          for (const std::uint32_t tokens : {5u, 16u, 32u, 96u}) {
            CAPTURE(level->name, tokens);
            const Pool pool{form, tokens, o, in};
            const auto got = attend(*level, pool, in, o, exact, 0, 8);
            if (truth.empty()) truth = got;
            CHECK(same_bits(got, truth));
            CHECK(same_bits(attend(*level, pool, in, o, exact, 0, 3), truth));
            CHECK(same_bits(attend(*level, pool, in, o, exact, 0, 1), truth));
            const std::uint32_t context = 77;  // the rest of a sequence, and one token of decoding
            if (!o.causal) continue;
            const auto from = truth.begin() + context * kHeads * o.dv;
            CHECK(same_bits(attend(*level, pool, in, o, exact, context, 8), {from, truth.end()}));
            CHECK(same_bits(attend(*level, pool, in, o, exact, context, 8, context + 1), {from, from + kHeads * o.dv}));
          }
        double worst = 0, largest = 0;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          worst = std::max(worst, std::fabs(double{truth[i]} - wanted[i]));
          largest = std::max(largest, std::fabs(double{wanted[i]}));
        }
        CHECK(worst < largest * (exact ? 4e-6 : 1e-3));
      }
  }
}

TEST_CASE("a key or a value that is NaN reaches the rows that see it, and no others") {
  const Options o{"causal", 64, 64};
  const std::uint32_t sick = 70;
  for (const HeadForm& form : {kQ8Head, kQ4Head})
    for (const bool value : {false, true})
      for (const bool exact : {false, true}) {
        Inputs in{o};
        const auto healthy = attend(cpu::portable_kernels(), Pool{form, 32, o, in}, in, o, exact, 0, 8);
        (value ? in.v : in.k)[sick * 64 + 5] = value ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
        for (const cpu::Kernels* level : levels()) {
          CAPTURE(level->name, form.bits, value, exact);
          const auto got = attend(*level, Pool{form, 32, o, in}, in, o, exact, 0, 8);
          const auto border = sick * kHeads * 64;
          CHECK(same_bits({got.begin(), got.begin() + border}, {healthy.begin(), healthy.begin() + border}));
          CHECK(std::all_of(got.begin() + border, got.end(), [](float x) { return std::isnan(x); }));
        }
      }
}

}  // namespace mekik::test
