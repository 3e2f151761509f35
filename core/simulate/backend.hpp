// What stands in for time and for a backend: steps take what the costs say, and answers are made up.
#pragma once
#include <mekik/plugin.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.hpp"
#include "simulate/scenario.hpp"

namespace mekik::simulate {

class SimulatedClock final : public Clock {
 public:
  std::uint64_t now_ns() const override { return now; }
  std::uint64_t now = 0;
};

// What of a batch its time depends on.
struct Shape {
  double tokens = 0, rows = 0, context = 0;  // context: of each token the tokens before it in its sequence, added up
};
Shape shape_of(const mekik_batch& batch);
double step_ns(const Costs& costs, const Shape& shape);
double host_ns(const Costs& costs, const Shape& shape);

// Of the table's functions those that the loop needs. A token is a function of the one before it and of its place. [engine thread]
class SimulatedBackend {
 public:
  // `pass` lets time go by up to the given point.
  SimulatedBackend(const Costs& costs, std::uint32_t vocabulary, const Clock& clock, std::function<void(std::uint64_t until_ns)> pass);
  static const mekik_backend& table();
  mekik_exec* exec() { return reinterpret_cast<mekik_exec*>(this); }
  const Shape& last() const { return last_; }

 private:
  mekik_status submit(const mekik_batch& batch, std::uint64_t* ticket);
  mekik_status wait(std::uint64_t ticket);
  const Costs costs_;
  const std::uint32_t vocabulary_;
  const Clock& clock_;
  std::function<void(std::uint64_t)> pass_;
  Shape last_;
  std::vector<std::int32_t> picks_;  // of the step that runs, a row
  float* logits_ = nullptr;
  std::uint64_t ticket_ = 0, step_ticket_ = 0, ends_ns_ = 0;
};

}  // namespace mekik::simulate
