// The reference operations: one function an operation of ops.def, in plain loops, each row from its own inputs only.
// Sums and transcendental functions are computed in double and rounded once to F32; everything else is F32, as ops.def writes it.
// Shapes must have been checked (check.hpp). `y` may be the memory of an input only where a comment says so.
#pragma once
#include <cstdint>
#include <vector>

#include "reference/form.hpp"
#include "reference/rows.hpp"

namespace mekik::reference {

enum ActKind : std::int64_t {
  kNone = 0,
  kSilu = 1,
  kGelu = 2,
  kGeluTanh = 3,
  kQuickGelu = 4,
  kRelu = 5,
  kRelu2 = 6,
  kSigmoid = 7,
  kTanh = 8,
  kSoftplus = 9,
  kSqrt = 10,  // of act only, as kExp
  kExp = 11,
  kSwigluClamped = 16,
};
float activate(std::int64_t kind, float x);
// Weights of a row, or of its last size: element (o, l) of a row shape [outer][last].
using Flat = std::vector<float>;

// elementwise.cpp: one row at a time; y may be x or a.
void add(const Rows& a, const Rows& b, const Rows& y);  // b: a's row shape, last size 1, or one number
void mul(const Rows& a, const Rows& b, const Rows& y);
void act(const Rows& x, std::int64_t kind, const Rows& y);
void scale(const Rows& x, double a, double b, const Rows& y);
void cast(const Rows& x, std::uint32_t num, const Rows& y);
void clamp(const Rows& x, double low, double high, const Rows& y);
void softcap(const Rows& x, double c, const Rows& y);
void glu(const Rows& g, const Rows& u, std::int64_t kind, double limit, double alpha, const Rows& y);

// rows.cpp
void embed(const Ids& ids, const Weight& w, const Rows& y);
void embed_mix(const Ids& ids, const Rows& mix, const Weight& w, const Rows& y);
void take_rows(const Rows& x, const Ids& rows, const Rows& y);
void put_rows(const Rows& x, const Rows* replacement, const Ids& rows, bool adds, const Rows& y);
void argmax(const Rows& x, const Matrix<std::int32_t>& y);  // a row shape [outer][last] -> [outer]
enum PoolKind : std::int64_t { kMean = 0, kCls = 1, kLast = 2, kMax = 3, kWeightedMean = 4, kMeanSqrtLen = 5 };
void pool(const Rows& x, std::int64_t kind, const Step& step, const Rows& y);

// norm.cpp; w is empty, or of the last size, or of the row.
void rms_norm(const Rows& x, const Flat& w, double eps, const Rows& y);  // y may be x
void layer_norm(const Rows& x, const Flat& w, const Flat& b, double eps, const Rows& y);
void l2_norm(const Rows& x, double eps, const Rows& y);
void softmax(const Rows& x, const Rows& y);
void mean(const Rows& x, const Rows& y);
void concat(const Rows& a, const Rows& b, const Rows& y);

// linear.cpp: y[t][n] = sum over k of x[t][k] w[n][k], one double chain in ascending k, rounded; then + bias in F32.
void linear(const Rows& x, const Weight& w, const Flat& bias, const Rows& y, const Threads& threads);

// rope.cpp: table [2][dim / 2]; positions [n_axes][T]. y may be x.
struct RopeAxes {
  const std::int32_t* positions;
  std::uint32_t n_axes, n_tokens;
};
void position_scale(const Rows& x, const std::int32_t* positions, std::int64_t shift, double every, double factor,
                    const Rows& y);  // y may be x
void rope(const Rows& x, const Flat& table, const RopeAxes& axes, std::int64_t dim, std::int64_t pairs, double magnitude, const Rows& y);

// attention.cpp
void kv_append(const Rows& k, const Rows& v, const State& state, const Step& step);
struct AttentionOptions {
  std::size_t dv;
  bool causal;
  std::uint64_t window;
  double scale, softcap;
  std::uint64_t chunk = 0;  // attention_chunk
};
void attention(const Rows& q, const State& state, const Flat& sinks, const Flat& slopes, const AttentionOptions& options, const Step& step,
               const Rows& y);
void attention_full(const Rows& q, const Rows& k, const Rows& v, const Ids& segments, double scale, const Threads& threads, const Rows& y);
struct NearOptions {
  std::uint64_t window;
  double scale, softcap;
};
void attention_near(const Rows& q, const Rows& k, const Rows& v, const Ids& segments, const Flat& sinks, const Flat& slopes,
                    const NearOptions& options, const Threads& threads, const Rows& y);
// The absorbed form: scores and sums are made in the latent of `rank` numbers, the two projections are applied to q and to the result.
struct MlaOptions {
  std::size_t rank, r;
  std::uint64_t window;
  double scale;
};
void mla_attention(const Rows& q_nope, const Rows& q_rot, const Weight& k_b, const Weight& v_b, const State& state,
                   const MlaOptions& options, const Step& step, const Rows& y);

// moe.cpp
struct RouteOptions {
  std::int64_t top, score, groups, top_groups, group_score;
  bool normalize;
  double scale;
};
void moe_route(const Rows& logits, const Flat& bias, const RouteOptions& options, const Matrix<std::int32_t>& ids, const Rows& weights);
void moe_linear(const Rows& x, const Weight& w, const Ids& ids, const Flat& bias, const Rows& y, const Threads& threads);
void moe_combine(const Rows& y, const Rows* weights, const Rows& out);
void moe_scale(const Rows& weights, const Ids& ids, const Flat& s, const Rows& y);  // y may be weights
void moe_spread(const Rows& x, const Rows& weights, const Rows& y);
void moe_route_mixer(const Rows& logits, double width, const Matrix<std::int32_t>& ids, const Rows& weights);

// recurrent.cpp: token by token, the state rounded to F32 after every token; never in chunks (docs/kernel-rules.md, rule 9).
// `work`: n_seqs * slot.size numbers, where the states of the step live until they are saved.
void conv_state(const Rows& x, const Flat& w, const Flat& bias, std::int64_t kind, const Slot& slot, float* work, const Step& step,
                const Rows& y);
struct SsmInputs {
  Rows x, dt, b, c;
  Flat a, d;
};
void ssm_scan(const SsmInputs& in, const Slot& slot, float* work, const Step& step, const Rows& y);
struct DeltaInputs {
  Rows q, k, v, decay, beta;
  bool tiled;
  double scale;
};
void gated_delta(const DeltaInputs& in, const Slot& slot, float* work, const Step& step, const Rows& y);

}  // namespace mekik::reference
