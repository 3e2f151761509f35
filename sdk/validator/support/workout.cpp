#include "support/workout.hpp"

#include <cstring>

namespace mekik::validate {

void Transcript::add(std::string_view what, const void* bytes, std::size_t n) {
  std::uint64_t digest = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i < n; ++i) digest = (digest ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3u;
  lines_.push_back({std::string{what}, digest});
}

std::string Transcript::difference(const Transcript& other) const {
  for (std::size_t i = 0; i < std::min(lines_.size(), other.lines_.size()); ++i)
    if (lines_[i].what != other.lines_[i].what || lines_[i].digest != other.lines_[i].digest)
      return "answer " + std::to_string(i + 1) + ", " + lines_[i].what +
             (lines_[i].what != other.lines_[i].what ? ", against " + other.lines_[i].what : "");
  return lines_.size() == other.lines_.size()
             ? ""
             : "one run has " + std::to_string(lines_.size()) + " answers, the other " + std::to_string(other.lines_.size());
}

std::unique_ptr<Workout> make_workout(const WorkoutPlan& plan) {
  struct Row {
    const char* kind;
    std::unique_ptr<Workout> (*make)(const WorkoutPlan&);
  };
  static constexpr Row kRows[] = {{MEKIK_KIND_SCHEDULER, make_scheduler}, {MEKIK_KIND_CACHE, make_cache},
                                  {MEKIK_KIND_SAMPLER, make_sampler},     {MEKIK_KIND_DRAFTER, make_drafter},
                                  {MEKIK_KIND_SINK, make_sink},           {MEKIK_KIND_LOADER, make_loader},
                                  {MEKIK_KIND_SCHEME, make_scheme},       {MEKIK_KIND_BACKEND, make_backend}};
  for (const Row& row : kRows)
    if (std::strcmp(row.kind, plan.component.kind) == 0) return row.make(plan);
  return nullptr;
}

Transcript run_whole(const WorkoutPlan& plan) {
  const auto w = make_workout(plan);
  if (w == nullptr || !w->begin()) return {};
  for (unsigned i = 0; i < w->steps(); ++i) w->step(i);
  w->end();
  return std::move(w->transcript);
}

}  // namespace mekik::validate
