#include "simulate/calibrate.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/loop.hpp"
#include "engine/start.hpp"
#include "simulate/random.hpp"

namespace mekik::simulate {
namespace {

// A backend that remembers the shape of its last batch and the time from submit to the end of the wait for it.
struct Recorder {
  const mekik_backend* real = nullptr;
  mekik_exec* exec = nullptr;
  Shape shape;
  std::uint64_t ticket = 0, began_ns = 0, took_ns = 0;
};
Recorder& recorder_of(mekik_exec* exec) { return *reinterpret_cast<Recorder*>(exec); }

const mekik_backend& recording() {
  static const mekik_backend table = [] {
    mekik_backend b{};
    b.struct_size = sizeof b;
    b.submit = [](mekik_exec* e, const mekik_batch* batch, std::uint64_t* ticket) {
      Recorder& r = recorder_of(e);
      r.shape = shape_of(*batch);
      r.began_ns = now_ns();
      const auto code = r.real->submit(r.exec, batch, ticket);
      r.ticket = *ticket;
      return code;
    };
    b.move = [](mekik_exec* e, const mekik_move* moves, std::uint32_t n, std::uint32_t size, std::uint64_t* ticket) {
      Recorder& r = recorder_of(e);
      return r.real->move == nullptr ? mekik_status{MEKIK_E_UNSUPPORTED} : r.real->move(r.exec, moves, n, size, ticket);
    };
    b.wait = [](mekik_exec* e, std::uint64_t ticket, std::uint64_t timeout_ns) {
      Recorder& r = recorder_of(e);
      const auto code = r.real->wait(r.exec, ticket, timeout_ns);
      if (ticket == r.ticket) r.took_ns = now_ns() - r.began_ns;
      return code;
    };
    return b;
  }();
  return table;
}

// So many sequences with prompts of so many tokens, each with an answer of so many.
struct Work {
  std::uint32_t sequences, prompt, answer;
};
constexpr std::array kWork{Work{1, 16, 12}, Work{1, 64, 2},    Work{4, 24, 10}, Work{1, 256, 8},  Work{2, 40, 10},
                           Work{8, 12, 10}, Work{1, 512, 2},   Work{4, 200, 8}, Work{16, 20, 10}, Work{1, 128, 2},
                           Work{32, 10, 8}, Work{1, 1200, 10}, Work{8, 120, 8}, Work{64, 8, 6},   Work{3, 700, 6}};

}  // namespace

Result<std::vector<Sample>> measure(const Scenario& scenario, plugin::Registry& registry, engine::Model& model, std::uint64_t budget_ns) {
  metrics::Metrics metrics;
  MEKIK_TRY(runtime, engine::make_runtime(model, registry, metrics, {}));
  runtime.sinks.clear();
  Recorder recorder;
  recorder.real = runtime.backend;
  recorder.exec = runtime.exec;
  runtime.backend = &recording();
  runtime.exec = reinterpret_cast<mekik_exec*>(&recorder);
  const std::uint32_t places = runtime.limits.max_seqs, context = runtime.context;
  const std::uint64_t vocabulary = std::min(runtime.vocab, scenario.machine.vocabulary);
  engine::Loop loop{std::move(runtime)};
  std::vector<Sample> out;
  std::uint64_t number = 0;
  const std::uint64_t began = now_ns();
  for (int round = 0; round < 64; ++round) {
    for (const Work& work : kWork) {
      if (now_ns() - began > budget_ns && round > 0) return out;
      if (work.prompt + work.answer > context || (work.sequences > places && work.sequences > 1)) continue;
      for (std::uint32_t i = 0; i < work.sequences; ++i, ++number) {
        engine::Request r;
        for (std::uint32_t t = 0; t < work.prompt; ++t)
          r.prompt.push_back(static_cast<std::int32_t>(mix(~scenario.seed, number, t) % vocabulary));
        r.max_tokens = work.answer;
        r.ignore_eos = true;
        r.sampler_json = "{\"temperature\":0}";
        r.seed = 0;
        const auto id = loop.submit(std::move(r), {});
        if (!id) return id.status();
      }
      while (true) {
        const std::uint64_t turn = now_ns();
        const auto turned = loop.step();
        if (turned == engine::Loop::Turn::idle) break;
        if (turned != engine::Loop::Turn::ran) continue;
        Sample s;
        s.shape = recorder.shape;
        s.step_ns = static_cast<double>(recorder.took_ns);
        s.host_ns = static_cast<double>(now_ns() - turn - recorder.took_ns);
        if (number > 1) out.push_back(s);  // the first request finds all memory cold
      }
    }
  }
  return out;
}

namespace {

template <std::size_t n>
using Row = std::array<double, n>;

// Least squares of w * (x.c - y) with c >= 0, by trying which of the few costs are 0.
template <std::size_t n>
Row<n> non_negative(const std::vector<Row<n>>& xs, const std::vector<double>& ys, const std::vector<double>& weights) {
  Row<n> best{};
  double best_error = INFINITY;
  for (unsigned used = 1; used < 1u << n; ++used) {
    std::array<Row<n + 1>, n> m{};  // normal equations
    for (std::size_t i = 0; i < xs.size(); ++i)
      for (std::size_t a = 0; a < n; ++a) {
        for (std::size_t b = 0; b < n; ++b) m[a][b] += weights[i] * xs[i][a] * xs[i][b];
        m[a][n] += weights[i] * xs[i][a] * ys[i];
      }
    for (std::size_t a = 0; a < n; ++a) {
      if ((used >> a & 1) != 0) continue;
      m[a].fill(0);
      for (std::size_t b = 0; b < n; ++b) m[b][a] = 0;
      m[a][a] = 1;
    }
    bool singular = false;
    for (std::size_t a = 0; a < n && !singular; ++a) {  // Gauss and Jordan, scaled by the diagonal
      std::size_t pivot = a;
      for (std::size_t b = a + 1; b < n; ++b)
        if (std::abs(m[b][a]) > std::abs(m[pivot][a])) pivot = b;
      singular = std::abs(m[pivot][a]) < 1e-30;
      if (singular) break;
      std::swap(m[a], m[pivot]);
      for (std::size_t b = 0; b < n; ++b) {
        if (b == a) continue;
        const double factor = m[b][a] / m[a][a];
        for (std::size_t c = 0; c <= n; ++c) m[b][c] -= factor * m[a][c];
      }
    }
    if (singular) continue;
    Row<n> costs{};
    for (std::size_t a = 0; a < n; ++a) costs[a] = (used >> a & 1) != 0 ? m[a][n] / m[a][a] : 0;
    if (std::any_of(costs.begin(), costs.end(), [](double c) { return c < 0; })) continue;
    double error = 0;
    for (std::size_t i = 0; i < xs.size(); ++i) {
      double e = -ys[i];
      for (std::size_t a = 0; a < n; ++a) e += costs[a] * xs[i][a];
      error += weights[i] * e * e;
    }
    if (error >= best_error) continue;
    best_error = error;
    best = costs;
  }
  return best;
}

// Relative errors, and again and again with less weight for what is far off: absolute errors then, which outliers move little.
template <std::size_t n>
Row<n> robust(const std::vector<Row<n>>& xs, const std::vector<double>& ys) {
  std::vector<double> weights(ys.size());
  for (std::size_t i = 0; i < ys.size(); ++i) weights[i] = 1 / (ys[i] * ys[i]);
  Row<n> costs = non_negative<n>(xs, ys, weights);
  for (int again = 0; again < 20; ++again) {
    for (std::size_t i = 0; i < ys.size(); ++i) {
      double said = 0;
      for (std::size_t a = 0; a < n; ++a) said += costs[a] * xs[i][a];
      weights[i] = 1 / (ys[i] * ys[i] * std::max(std::abs(said / ys[i] - 1), 0.01));
    }
    costs = non_negative<n>(xs, ys, weights);
  }
  return costs;
}

}  // namespace

Result<Fit> fit(const std::vector<Sample>& samples) {
  if (samples.size() < 16) return internal_error("too few steps were measured: " + std::to_string(samples.size()));
  std::vector<Row<4>> steps;
  std::vector<Row<2>> hosts;
  std::vector<double> step_ns, host_ns;
  for (const Sample& s : samples) {
    steps.push_back({1e3, s.shape.tokens, s.shape.rows, s.shape.context});
    hosts.push_back({1e3, s.shape.rows});
    step_ns.push_back(std::max(s.step_ns, 1.0));
    host_ns.push_back(std::max(s.host_ns, 1.0));
  }
  const Row<4> step = robust<4>(steps, step_ns);
  const Row<2> host = robust<2>(hosts, host_ns);
  Fit out;
  out.costs = {1e3 * step[0], step[1], step[2], step[3], 1e3 * host[0], host[1]};
  out.samples = samples.size();
  std::vector<double> errors;
  for (const Sample& s : samples) errors.push_back(std::abs(simulate::step_ns(out.costs, s.shape) / std::max(s.step_ns, 1.0) - 1));
  std::sort(errors.begin(), errors.end());
  out.median_error = errors[errors.size() / 2];
  out.most_error = errors[errors.size() * 9 / 10];
  return out;
}

}  // namespace mekik::simulate
