// Creating and destroying an instance, the same for every kind that has them.
#pragma once
#include <set>
#include <string>

#include "run/shared.hpp"
#include "support/lent.hpp"
#include "support/workout.hpp"

namespace mekik::validate {

// Keys that any instance of this process has read.
inline std::set<std::string>& keys_read() {
  static std::set<std::string> keys;
  return keys;
}

// f(host, config, out) is the kind's create. nullptr: it failed, which was said unless the plan allows it.
template <class T, class F>
T* create(const WorkoutPlan& plan, F&& f) {
  Config config{plan.component, plan.setting, plan.subject.task().folder};
  Lent lent{plan.mode};
  T** out = lent.out<T*>("create's out", 1);
  *out = nullptr;
  const Answer answer = ask(plan.mode, "create", [&] { return f(plan.subject.host().raw(), config.raw(), out); });
  T* made = *out;
  for (const std::string& key : config.read()) keys_read().insert(key);
  config.end();
  lent.end();
  // A value that the plugin refuses with a reason is its right; its own defaults are not.
  const bool may_fail = plan.mode.hostile || !plan.setting.values.empty();
  if (!answer.ok()) {
    if (!may_fail) fault(std::string{"create: answered "} + code_name(answer.code) + " with " + plan.setting.label + ": " + answer.why);
    return nullptr;
  }
  if (made == nullptr) fault("create: answered OK and gave no instance");
  return made;
}

}  // namespace mekik::validate
