// Everything that a kind's functions are for, done with one instance and checked against what the header says. All of it follows from the
// seed, so that runs under different hosts can be compared.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/config.hpp"
#include "support/subject.hpp"

namespace mekik::validate {

// What a component answered, in order.
class Transcript {
 public:
  void add(std::string_view what, const void* bytes, std::size_t n);
  template <class T>
  void add(std::string_view what, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    add(what, &value, sizeof value);
  }
  void text(std::string_view what, std::string_view value) { add(what, value.data(), value.size()); }
  // Empty: equal; else where they part.
  std::string difference(const Transcript& other) const;
  std::size_t size() const { return lines_.size(); }

 private:
  struct Line {
    std::string what;
    std::uint64_t digest;
  };
  std::vector<Line> lines_;
};

class Workout {
 public:
  virtual ~Workout() = default;
  virtual bool begin() = 0;  // false: there is no instance; the reason was said where it had to be
  virtual unsigned steps() const = 0;
  virtual void step(unsigned i) = 0;
  virtual void end() = 0;  // destroys
  Transcript transcript;
};

struct WorkoutPlan {
  Subject& subject;
  const mekik_component& component;
  Mode mode;
  Setting setting;
};
// nullptr: a kind that this validator does not know.
std::unique_ptr<Workout> make_workout(const WorkoutPlan& plan);
// begin, all steps, end.
Transcript run_whole(const WorkoutPlan& plan);

std::unique_ptr<Workout> make_scheduler(const WorkoutPlan& plan);
std::unique_ptr<Workout> make_cache(const WorkoutPlan& plan);
std::unique_ptr<Workout> make_sampler(const WorkoutPlan& plan);
std::unique_ptr<Workout> make_drafter(const WorkoutPlan& plan);
std::unique_ptr<Workout> make_sink(const WorkoutPlan& plan);
std::unique_ptr<Workout> make_loader(const WorkoutPlan& plan);
std::unique_ptr<Workout> make_scheme(const WorkoutPlan& plan);
std::unique_ptr<Workout> make_backend(const WorkoutPlan& plan);

}  // namespace mekik::validate
