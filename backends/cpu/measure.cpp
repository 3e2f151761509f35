// What the machine can do at most, and where the time of steps goes.
#include "measure.hpp"

#include <algorithm>
#include <chrono>

#include "exec.hpp"

namespace mekik::cpu {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMostRead = std::uint64_t{1} << 30, kPiece = std::uint64_t{1} << 20;
constexpr int kRuns = 5;  // the best counts: what others did in between is no part of a roof

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Seconds that the team takes for `tasks`, at best.
template <class F>
double least(Team& team, std::uint32_t tasks, F task) {
  const Phase phase{tasks, [](void* f, std::uint32_t, std::uint32_t i, std::uint32_t) { (*static_cast<F*>(f))(i); }, 0};
  double best = 1e30;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = Clock::now();
    team.run(&phase, 1, &task);
    best = std::min(best, seconds_since(start));
  }
  return best;
}

double read_rate(Device& device, std::uint64_t bytes) {
  const auto pieces = static_cast<std::uint32_t>((std::clamp(bytes, kPiece, kMostRead) + kPiece - 1) / kPiece);
  const Arena memory{pieces * kPiece, "roof"};
  std::fill_n(memory.data(), pieces * kPiece, std::uint8_t{1});
  return static_cast<double>(pieces * kPiece) /
         least(device.team, pieces, [&](std::uint32_t i) { device.settings.kernels->read(memory.data() + i * kPiece, kPiece); });
}

// Of a kernel that makes `each` products a round.
double product_rate(Device& device, void (*kernel)(std::uint64_t rounds), std::uint32_t each) {
  constexpr std::uint64_t kRounds = 400'000;  // milliseconds
  const std::uint32_t tasks = device.team.size();
  return static_cast<double>(tasks * kRounds) * each / least(device.team, tasks, [&](std::uint32_t) { kernel(kRounds); });
}

}  // namespace

mekik_roof measure_roof(Device& device, std::uint64_t bytes) {
  const Kernels& k = *device.settings.kernels;
  return {sizeof(mekik_roof), 0, read_rate(device, bytes), product_rate(device, k.int8_products, kProductsARound * 4),
          product_rate(device, k.f32_products, kProductsARound)};
}

void Exec::profile(bool on) {
  spent_.assign(on ? program_.n_ops() : 0, 0);
  ends_.clear();
}

void Exec::run_phases() {
  const auto n = static_cast<std::uint32_t>(phases_.size());
  if (spent_.empty()) return device_.team.run(phases_.data(), n, this);
  ends_.resize(n);
  auto at = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count());
  device_.team.run(phases_.data(), n, this, ends_.data());
  std::uint32_t counted = 0;  // what only prepares counts for the operation before it
  for (std::uint32_t i = 0; i < n; ++i) {
    const PhasePlan& p = plan_.phases[phases_[i].index];
    std::uint32_t op = p.op;
    for (const RowOp& r : p.rows)
      if (op == kNone) op = r.op;
    if (op != kNone) counted = op;
    spent_[counted] += ends_[i] - at;
    at = ends_[i];
  }
}

}  // namespace mekik::cpu
