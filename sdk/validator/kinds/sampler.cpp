// A link of the logits chain: bans hold, no NaN appears, a fork is equal and apart, the device path says what apply() does.
#include <cmath>
#include <limits>

#include "kinds/vocab.hpp"
#include "support/instance.hpp"

namespace mekik::validate {

namespace {

constexpr float kBan = -std::numeric_limits<float>::infinity();

class SamplerWorkout final : public Workout {
 public:
  explicit SamplerWorkout(const WorkoutPlan& plan)
      : plan_{plan},
        table_{table_of<mekik_sampler>(plan.component)},
        random_{plan.mode.seed},
        vocab_{plan.mode.seed % 2 == 0 ? 301u : 320u} {}
  bool begin() override {
    self_ = create<mekik_chain>(plan_, [&](auto host, auto config, auto out) {
      const mekik_str request = lent_request();
      const mekik_status status = table_.create(host, config, vocab_.raw(), request, out);
      const HostScope scope;
      request_.reset();
      return status;
    });
    return self_ != nullptr;
  }
  unsigned steps() const override { return static_cast<unsigned>(30 * plan_.mode.scale); }
  void step(unsigned i) override {
    if (i == 0) accept(self_, tokens(20), true);
    if (i == 4) accept(self_, {}, false);
    const std::vector<float> in = logits(i);
    const double uniform = i == 2 ? 0.0 : i == 3 ? 0x1.fffffffffffffp-1 : static_cast<double>(below(random_, 1u << 30)) / (1u << 30);
    if (i % 5 == 1 && table_.fork != nullptr) fork(in, uniform, i);
    const std::vector<float> out = apply(self_, in, uniform);
    check(in, out, i);
    for (const float x : out) transcript.add("apply " + std::to_string(i), x);
    if (i % 3 == 0) device(in, out, i);
    accept(self_, {static_cast<std::int32_t>(best(out))}, false);
  }
  void end() override { destroy(self_); }

 private:
  mekik_str lent_request() {
    const HostScope scope;
    request_ = std::make_unique<Lent>(plan_.mode);
    return request_->text("request_json", "{}");
  }
  std::vector<std::int32_t> tokens(std::size_t n) {
    std::vector<std::int32_t> out;
    for (std::size_t i = 0; i < n; ++i) out.push_back(static_cast<std::int32_t>(below(random_, vocab_.size())));
    return out;
  }
  std::vector<float> logits(unsigned i) {
    std::vector<float> x(vocab_.size());
    for (float& v : x) v = static_cast<float>(below(random_, 20000)) / 1000.0f - 10.0f;
    if (i % 4 == 1)  // another link has banned some
      for (std::size_t j = 0; j < x.size(); j += 3) x[j] = kBan;
    if (i == 6) std::fill(x.begin(), x.end(), 1.0f);
    if (i == 7) x[5] = std::numeric_limits<float>::max();
    if (i == 8) std::fill(x.begin() + 1, x.end(), kBan);
    if (i == 9) std::fill(x.begin(), x.end(), kBan);
    if (i == 10) x[9] = std::nanf("");
    if (i == 11) x[9] = std::numeric_limits<float>::infinity();
    return x;
  }
  static std::size_t best(const std::vector<float>& x) {
    std::size_t at = 0;
    for (std::size_t i = 1; i < x.size(); ++i)
      if (x[i] > x[at]) at = i;
    return at;
  }
  void accept(mekik_chain* chain, const std::vector<std::int32_t>& t, bool prompt) {
    Lent lent{plan_.mode};
    const std::int32_t* in = lent.in("tokens", t);
    call(plan_.mode, "accept", [&] { table_.accept(chain, in, static_cast<std::uint32_t>(t.size()), prompt ? 1 : 0); });
  }
  std::vector<float> apply(mekik_chain* chain, const std::vector<float>& x, double uniform) {
    Lent lent{plan_.mode};
    float* memory = lent.inout("logits", x);
    const Answer a = ask(plan_.mode, "apply", [&] { return table_.apply(chain, memory, vocab_.size(), uniform); });
    bool sane = false;
    for (const float v : x) sane = sane || std::isfinite(v);
    for (const float v : x) sane = sane && !std::isnan(v) && v != std::numeric_limits<float>::infinity();
    if (!a.ok() && sane) expect_ok(plan_.mode, "apply", a);  // what makes no sense may be refused
    failed_ = !a.ok();
    return {memory, memory + x.size()};
  }
  void check(const std::vector<float>& in, const std::vector<float>& out, unsigned i) {
    if (failed_) return;
    bool any = false, could = false, odd = i == 10 || i == 11;
    for (std::size_t j = 0; j < in.size(); ++j) {
      if (std::isnan(out[j]) && !odd) return rule("apply: made a NaN of " + std::to_string(in[j]) + " (row " + std::to_string(i) + ")");
      if (in[j] == kBan && out[j] != kBan) return rule("apply: brought back a token that another link had banned");
      if (out[j] == std::numeric_limits<float>::infinity() && !odd)
        return rule("apply: made an infinite logit of " + std::to_string(in[j]));
      any = any || out[j] > kBan;
      could = could || in[j] > kBan;
    }
    if (could && !any && plan_.setting.values.empty()) rule("apply: bans every token, with all defaults");
  }
  void fork(const std::vector<float>& in, double uniform, unsigned i) {
    Lent lent{plan_.mode};
    mekik_chain** out = lent.out<mekik_chain*>("fork's out", 1);
    *out = nullptr;
    const Answer a = ask(plan_.mode, "fork", [&] { return table_.fork(self_, out); });
    mekik_chain* other = *out;
    lent.end();
    if (!expect_ok(plan_.mode, "fork", a)) return;
    if (other == nullptr || other == self_) return rule("fork: answered OK and gave no other instance");
    const auto mine = apply(self_, in, uniform);
    const bool broke = failed_;
    const auto its = apply(other, in, uniform);
    if (!broke && !failed_ && std::memcmp(mine.data(), its.data(), mine.size() * sizeof(float)) != 0)
      rule("fork: does other things to the same logits than the one it was made from");
    // Nothing of it comes back, nor does it need the other one.
    accept(other, tokens(5), false);
    const auto again = apply(self_, in, uniform);
    if (!broke && !failed_ && std::memcmp(mine.data(), again.data(), mine.size() * sizeof(float)) != 0)
      rule("fork: what it accepts changes the one it was made from, or apply() remembers its calls");
    if (i % 2 == 0) return destroy(other);
    destroy(self_);
    self_ = other;
  }
  void device(const std::vector<float>& in, const std::vector<float>& applied, unsigned i) {
    const std::uint32_t n = vocab_.size(), words = (n + 31) / 32;
    if (table_.allow != nullptr) {
      std::vector<std::uint32_t> bits(words, 0xFFFFFFFFu);
      for (std::uint32_t j = 1; j < n; j += 7) bits[j / 32] &= ~(1u << (j % 32));
      Lent lent{plan_.mode};
      std::uint32_t* memory = lent.inout("bits", bits);
      const Answer a = ask(plan_.mode, "allow", [&] { return table_.allow(self_, memory, n); });
      if (a.code != MEKIK_E_UNSUPPORTED && expect_ok(plan_.mode, "allow", a)) {
        for (std::uint32_t w = 0; w < words; ++w) {
          transcript.add("allow " + std::to_string(i), memory[w]);
          if ((memory[w] & ~bits[w]) != 0) return rule("allow: set bits of tokens that others had banned");
        }
        for (std::uint32_t j = 0; j < n && !failed_; ++j)
          if ((bits[j / 32] >> (j % 32) & 1u) != 0 && in[j] > kBan && (memory[j / 32] >> (j % 32) & 1u) == 0 && applied[j] > kBan)
            return rule("allow: bans token " + std::to_string(j) + ", which apply() does not ban");
      }
    }
    if (table_.pick == nullptr) return;
    Lent lent{plan_.mode};
    std::uint32_t stride = 0;
    mekik_pick* p = lent.out_rows<mekik_pick>("mekik_pick", 1, stride);
    const Answer a = ask(plan_.mode, "pick", [&] { return table_.pick(self_, p, stride); });
    if (a.code == MEKIK_E_UNSUPPORTED || !expect_ok(plan_.mode, "pick", a)) return;
    transcript.add("pick " + std::to_string(i), *p);
    const auto within = [&](float x, float lo, float hi) { return x >= lo && x <= hi; };
    if (!std::isfinite(p->temperature) || p->temperature < 0 || !within(p->top_p, 0, 1) || !within(p->min_p, 0, 1) || p->uniform != 0 ||
        p->allowed != nullptr)
      rule("pick: gives parameters that cannot be (temperature " + std::to_string(p->temperature) + ", top_p " + std::to_string(p->top_p) +
           ", min_p " + std::to_string(p->min_p) + ")");
  }
  void destroy(mekik_chain* chain) {
    call(plan_.mode, "destroy", [&] { table_.destroy(chain); });
  }

  const WorkoutPlan plan_;
  const mekik_sampler table_;
  Random random_;
  Vocabulary vocab_;
  std::unique_ptr<Lent> request_;
  mekik_chain* self_ = nullptr;
  bool failed_ = false;
};

}  // namespace

std::unique_ptr<Workout> make_sampler(const WorkoutPlan& plan) { return std::make_unique<SamplerWorkout>(plan); }

}  // namespace mekik::validate
