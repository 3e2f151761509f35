// What the checks over workouts have in common.
#pragma once
#include <string>

#include "run/shared.hpp"
#include "support/heap.hpp"
#include "support/workout.hpp"

namespace mekik::validate {

class Runs {
 public:
  Runs(const Task& task, const std::string& label) : Runs{task, label, Mode{}} {}
  Runs(const Task& task, const std::string& label, const Mode& mode) : subject_{task, mode}, component_{&subject_.component(label)} {
    set_heap({});
  }
  Subject& subject() { return subject_; }
  const mekik_component& component() const { return *component_; }
  Mode mode(std::uint64_t seed) const {
    Mode m;
    m.seed = seed;
    return m;
  }
  Transcript run(const Mode& mode, const Setting& setting = {"all defaults", {}}) {
    subject_.host().set_mode(mode);
    return run_whole({subject_, *component_, mode, setting});
  }
  void same(const Transcript& a, const Transcript& b, const std::string& otherwise) {
    if (const std::string where = a.difference(b); !where.empty()) fault(otherwise + " (" + where + ")");
  }
  void close() { subject_.deinit(); }

 private:
  Subject subject_;
  const mekik_component* component_;
};

}  // namespace mekik::validate
