// Every tenant gets the same time, and within a tenant every prompt; whoever decodes waits no longer than a bound for the prompts of
// others.
#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "../common/costs.hpp"

namespace {

using namespace mekik::scheduling;

// Virtual run times: who has had least goes first. One that comes, or comes back, begins where the least of the others is.
class Clock {
 public:
  void begin(const std::vector<std::uint64_t>& present) {
    double least = std::numeric_limits<double>::infinity();
    for (const auto id : present)
      if (const auto at = times_.find(id); at != times_.end()) least = std::min(least, at->second);
    if (least < std::numeric_limits<double>::infinity()) now_ = std::max(now_, least);
    for (const auto id : present) times_.try_emplace(id, now_).first->second = std::max(times_[id], now_);
    std::erase_if(times_, [&](const auto& entry) {
      return entry.second <= now_ && std::find(present.begin(), present.end(), entry.first) == present.end();
    });
  }
  double of(std::uint64_t id) const { return times_.at(id); }
  void spend(std::uint64_t id, double ns) {
    if (const auto at = times_.find(id); at != times_.end()) at->second += ns;
  }

 private:
  std::map<std::uint64_t, double> times_;
  double now_ = 0;
};

class Fair {
 public:
  static constexpr const char* name = "fair";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary =
      "The same time for every tenant and prompt; prompts never hold up decoding for longer than a bound.";
  static constexpr std::array options{
      mekik::opt::duration(
          "max_step", "\"0s\"", 0, 86400e9,
          "The longest that a step may take while any sequence decodes, at least that of eight prompt tokens; 0: twice the "
          "time of a step without prompts, as measured."),
      mekik::opt::duration(
          "patience", "\"1s\"", 0, 86400e9,
          "A tenant that waits for a place takes one of a tenant that has more than its share of them, once that is so much "
          "time ahead."),
  };
  explicit Fair(mekik::Config config)
      : max_step_{static_cast<double>(config.i64("max_step"))}, patience_{static_cast<double>(config.i64("patience"))} {}

  std::uint32_t plan(const mekik_step_view& view, Seqs seqs, mekik::Strided<mekik_choice> out) {
    std::vector<std::uint64_t> present;
    std::map<std::uint64_t, std::vector<std::uint64_t>> of_tenant;
    for (std::uint32_t i = 0; i < seqs.size(); ++i) of_tenant[seqs[i].tenant].push_back(seqs[i].id);
    for (const auto& [tenant, ids] : of_tenant) present.push_back(tenant);
    tenants_.begin(present);
    std::erase_if(sequences_, [&](const auto& entry) { return of_tenant.count(entry.first) == 0; });
    for (const auto& [tenant, ids] : of_tenant) sequences_[tenant].begin(ids);
    Step step{view, seqs, out, order_of(seqs, [&](const mekik_seq_view& a, const mekik_seq_view& b) {
                if (a.tenant != b.tenant) {
                  const double x = tenants_.of(a.tenant), y = tenants_.of(b.tenant);
                  return x != y ? x < y : a.tenant < b.tenant;
                }
                if (a.priority != b.priority) return a.priority > b.priority;
                const double x = sequences_.at(a.tenant).of(a.id), y = sequences_.at(b.tenant).of(b.id);
                return x != y ? x < y : goes_before(a, b);
              })};
    make_room(view, seqs, step, present.size());
    const std::uint32_t n = step.fill(UINT32_MAX, step.decoding() > 0 ? costs_.prompt_tokens(max_step_) : UINT32_MAX);
    costs_.planned(seqs, out, n);
    plan_.assign(n, {});
    for (std::uint32_t i = 0; i < n; ++i) plan_[i] = {out[i].seq, out[i].action == MEKIK_RUN ? out[i].tokens : 0};
    return n;
  }

  void observe(const mekik_step_view& view, std::uint64_t step_ns) {
    const Seqs seqs{view.seqs, view.n_seqs, view.seq_size};
    costs_.observed(step_ns);
    for (const auto& [i, tokens] : plan_) {
      if (tokens == 0 || i >= seqs.size()) continue;
      const double ns = costs_.share(seqs[i], tokens, step_ns);
      tenants_.spend(seqs[i].tenant, ns);
      if (const auto at = sequences_.find(seqs[i].tenant); at != sequences_.end()) at->second.spend(seqs[i].id, ns);
    }
    plan_.clear();
  }

 private:
  // At most one sequence a step gives up its place, the last of the tenant that is furthest ahead.
  void make_room(const mekik_step_view& view, Seqs seqs, Step& step, std::size_t tenants) const {
    if (step.waiting().empty() || tenants < 2) return;
    const mekik_seq_view& first = seqs[step.waiting().front()];
    const bool places = step.running().size() < view.max_seqs;
    if (places && step.room().blocks_for(first, first.prompt_left + 1) <= step.room().blocks) return;
    std::map<std::uint64_t, std::size_t> held;
    for (const auto i : step.running()) ++held[seqs[i].tenant];
    const std::size_t share = std::max<std::size_t>(1, view.max_seqs / tenants);
    if (held[first.tenant] >= share) return;
    for (auto at = step.running().rbegin(); at != step.running().rend(); ++at) {
      const std::uint64_t tenant = seqs[*at].tenant;
      if (tenant == first.tenant || held[tenant] < 2 || (places ? held[tenant] <= held[first.tenant] + 1 : held[tenant] <= share)) continue;
      if (tenants_.of(tenant) - tenants_.of(first.tenant) < patience_) continue;
      return step.drop(*at);
    }
  }

  double max_step_, patience_;
  Costs costs_;
  Clock tenants_;
  std::map<std::uint64_t, Clock> sequences_;                   // by tenant
  std::vector<std::pair<std::uint32_t, std::uint32_t>> plan_;  // index in the view, tokens
};

}  // namespace

MEKIK_PLUGIN("mekik.scheduler.fair", "1.0", mekik::scheduler<Fair>());
