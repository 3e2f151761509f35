// Attention of every level: against a plain definition in double, and equal to the bit between levels, block sizes and groupings of rows.
#include <algorithm>

#include "levels.hpp"
#include "support/catch.hpp"

namespace mekik::test {

namespace {

using cpu::Attention;
using cpu::Num;

constexpr std::uint32_t kLength = 150, kHeads = 3, kD = 20, kDv = 24, kDvp = 32;

struct Options {
  const char* name;
  bool causal = true;
  std::uint64_t window = 0;
  float softcap = 0;
  bool sinks = false, slopes = false;
};
const Options kOptions[] = {{"causal"},
                            {"two-way", false},
                            {"window", true, 37},
                            {"soft cap", true, 0, 5},
                            {"sinks", true, 0, 0, true},
                            {"ALiBi", true, 0, 0, false, true},
                            {"all", true, 70, 30, true, true}};

// K and V of one head in blocks, in an order of their own; what is not a stored position is NaN.
struct Pool {
  Pool(const cpu::Kernels& kernels, Num n, std::uint32_t tokens, const std::vector<float>& k, const std::vector<float>& v)
      : num{n}, block_tokens{tokens}, lanes{tokens % 16 == 0} {
    const std::size_t e = num_bytes(num), block = tokens * (kD + kDvp) * e, n_blocks = (kLength + tokens - 1) / tokens;
    bytes.assign((block + 64) * n_blocks, 0xFF);
    stride = block + 64;
    v_off = tokens * kD * e;
    for (std::size_t b = 0; b < n_blocks; ++b) table.push_back(static_cast<std::int32_t>((b * 7 + 3) % n_blocks));
    if (n_blocks % 7 == 0) std::reverse(table.begin(), table.end());
    for (std::uint32_t p = 0; p < kLength; ++p) {
      std::uint8_t* at = bytes.data() + static_cast<std::size_t>(table[p / tokens]) * stride;
      const std::uint32_t t = p % tokens;
      for (std::uint32_t i = 0; i < kD; ++i) {
        const std::size_t place = lanes ? ((t / 16) * kD + i) * 16 + t % 16 : t * kD + i;
        kernels.cast(num, &k[p * kD + i], 1, at + place * e);
      }
      kernels.cast(num, &v[p * kDv], kDv, at + v_off + t * kDvp * e);
    }
  }
  Num num;
  std::uint32_t block_tokens;
  bool lanes;
  std::size_t stride = 0, v_off = 0;
  std::vector<std::uint8_t> bytes;
  std::vector<std::int32_t> table;
};

struct Inputs {
  std::vector<float> q = random_floats(kLength * kHeads * kD, 1), k = random_floats(kLength * kD, 2), v = random_floats(kLength * kDv, 3);
  std::vector<float> sinks{0.5f, -1, 2}, slopes{0.5f, 0.25f, 0.01f};
};

// Rows first .. last as one sequence's step after `context` stored positions, in calls of `rows` rows.
std::vector<float> attend(const cpu::Kernels& kernels, const Pool& pool, const Inputs& in, const Options& o, std::uint32_t context,
                          std::uint32_t rows, std::uint32_t end = kLength) {
  std::vector<float> out((end - context) * kHeads * kDv), scratch(cpu::attention_scratch_floats(kD, kDvp));
  for (std::uint32_t row = 0; context + row < end; row += rows) {
    Attention a;
    a.q = in.q.data() + context * kHeads * kD;
    a.out = out.data();
    a.q_stride = kHeads * kD;
    a.out_stride = kHeads * kDv;
    a.row0 = row;
    a.row1 = std::min(row + rows, end - context);
    a.context = context;
    a.length = end;
    a.heads = kHeads;
    a.d = kD;
    a.dv = kDv;
    a.dvp = kDvp;
    a.causal = o.causal;
    a.window = o.window;
    a.scale = 0.3f;
    a.softcap = o.softcap;
    a.sinks = o.sinks ? in.sinks.data() : nullptr;
    a.slopes = o.slopes ? in.slopes.data() : nullptr;
    a.kv = pool.num;
    a.base = pool.bytes.data();
    a.table = pool.table.data();
    a.block_bytes = pool.stride;
    a.v_off = pool.v_off;
    a.block_tokens = pool.block_tokens;
    a.lanes = pool.lanes;
    a.scratch = scratch.data();
    kernels.attention(a);
  }
  return out;
}

std::vector<float> definition(const Inputs& in, const Options& o) {
  std::vector<float> out(kLength * kHeads * kDv);
  for (std::uint32_t row = 0; row < kLength; ++row)
    for (std::uint32_t h = 0; h < kHeads; ++h) {
      const std::uint32_t hi = o.causal ? row + 1 : kLength,
                          lo = o.window != 0 && row + 1 > o.window ? row + 1 - static_cast<std::uint32_t>(o.window) : 0;
      double sum = o.sinks ? std::exp(double{in.sinks[h]}) : 0;
      std::vector<double> acc(kDv);
      for (std::uint32_t p = lo; p < hi; ++p) {
        double s = 0;
        for (std::uint32_t i = 0; i < kD; ++i) s += double{in.q[(row * kHeads + h) * kD + i]} * in.k[p * kD + i];
        s *= 0.3f;
        if (o.softcap != 0) s = o.softcap * std::tanh(s / o.softcap);
        if (o.slopes) s += in.slopes[h] * (static_cast<double>(p) - static_cast<double>(row));
        sum += std::exp(s);
        for (std::uint32_t j = 0; j < kDv; ++j) acc[j] += std::exp(s) * in.v[p * kDv + j];
      }
      for (std::uint32_t j = 0; j < kDv; ++j) out[(row * kHeads + h) * kDv + j] = static_cast<float>(acc[j] / sum);
    }
  return out;
}

}  // namespace

TEST_CASE("attention is its definition, and the same whatever the level, the blocks and the grouping of rows") {
  const Inputs in;
  for (const Options& o : kOptions) {
    CAPTURE(o.name);
    const auto wanted = definition(in, o);
    for (const Num num : {Num::f32, Num::f16, Num::bf16}) {
      std::vector<float> truth;
      for (const cpu::Kernels* level : levels())
        for (const std::uint32_t tokens : {5u, 16u, 32u, 64u, 96u}) {
          CAPTURE(level->name, tokens);
          const Pool pool{cpu::portable_kernels(), num, tokens, in.k, in.v};
          const auto got = attend(*level, pool, in, o, 0, 8);
          if (truth.empty()) truth = got;
          CHECK(same_bits(got, truth));
          CHECK(same_bits(attend(*level, pool, in, o, 0, 3), truth));
          CHECK(same_bits(attend(*level, pool, in, o, 0, 1), truth));
          const std::uint32_t context = 77;  // the rest of a sequence, and one token of decoding
          if (!o.causal) continue;
          CHECK(same_bits(attend(*level, pool, in, o, context, 8), {truth.begin() + context * kHeads * kDv, truth.end()}));
          CHECK(same_bits(attend(*level, pool, in, o, context, 8, context + 1),
                          {truth.begin() + context * kHeads * kDv, truth.begin() + (context + 1) * kHeads * kDv}));
        }
      double worst = 0;
      for (std::size_t i = 0; i < wanted.size(); ++i) worst = std::max(worst, std::fabs(double{truth[i]} - wanted[i]));
      CHECK(worst < (num == Num::f32 ? 2e-6 : num == Num::f16 ? 4e-3 : 3e-2));
    }
  }
}

}  // namespace mekik::test
