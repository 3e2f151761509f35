// The workouts of all kinds: right in themselves, and the same whatever else goes on.
#include <errno.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "checks/checks.hpp"
#include "checks/runs.hpp"
#include "run/shared.hpp"
#include "support/heap.hpp"
#include "support/instance.hpp"
#include "support/traps.hpp"
#include "support/watch.hpp"

namespace mekik::validate {

namespace {

void workout(const Task& task, const std::string& label) {
  Runs runs{task, label};
  for (std::uint64_t seed = task.seed; seed < task.seed + 6; ++seed) runs.run(runs.mode(seed));
  runs.close();
}

void settings(const Task& task, const std::string& label) {
  Runs runs{task, label};
  const auto all = settings_of(runs.component(), task.folder);
  bool any = false;
  for (const Setting& setting : all) {
    Mode mode = runs.mode(task.seed);
    mode.scale = 0.3;
    now_calling(setting.label);
    any = runs.run(mode, setting).size() > 0 || any;
  }
  for (const OptionRow& row : rows_of(runs.component()))
    if (any && row.raw.key != nullptr && keys_read().count(row.raw.key) == 0 && !row.has(MEKIK_OPT_DEPRECATED) &&
        row.raw.type != MEKIK_OPT_COMPONENT)
      fault("declares the option '" + std::string{row.raw.key} + "' and never reads it: whoever sets it is not heard");
  runs.close();
}

void again(const Task& task, const std::string& label) {
  Runs runs{task, label};
  for (const std::uint64_t seed : {task.seed, task.seed + 3}) {
    Mode first = runs.mode(seed), second = first;
    first.poison = 0x00;
    second.poison = 0xFF;
    set_heap({.fill = 0x00});
    const Transcript a = runs.run(first);
    set_heap({.fill = 0xFF});
    const Transcript b = runs.run(second);
    runs.same(a, b,
              "the same calls on a new instance are answered differently (order of calls, addresses, time, or memory that was not written "
              "decide)");
  }
  runs.close();
}

// One instance must not see what another one does.
void two_instances(const Task& task, const std::string& label) {
  Runs runs{task, label};
  const Mode one = runs.mode(task.seed), other = runs.mode(task.seed + 3);
  const Transcript alone = runs.run(one), other_alone = runs.run(other);
  WorkoutPlan a{runs.subject(), runs.component(), one, {"all defaults", {}}}, b = a;
  b.mode = other;
  const auto x = make_workout(a), y = make_workout(b);
  if (x == nullptr || !x->begin() || !y->begin()) return skip("an instance could not be made");
  for (unsigned i = 0; i < std::max(x->steps(), y->steps()); ++i) {
    if (i < x->steps()) x->step(i);
    if (i < y->steps()) y->step(i);
  }
  x->end();  // the older one first
  y->end();
  runs.same(alone, x->transcript, "an instance answers differently while another one is there: they share state");
  runs.same(other_alone, y->transcript, "the second of two instances answers differently than alone: they share state");
  runs.close();
}

// Stops threads for a moment in the middle of the plugin's code, so that they meet there even on one processor.
class Disturber {
 public:
  Disturber() {
    struct sigaction action {};
    action.sa_handler = [](int) {
      if (in_host_code()) return;
      const int error = errno;
      const timespec moment{0, 150'000};
      nanosleep(&moment, nullptr);
      errno = error;
    };
    action.sa_flags = SA_RESTART;
    sigaction(SIGURG, &action, &before_);  // ignored by default, so nobody minds a late one
  }
  ~Disturber() { sigaction(SIGURG, &before_, nullptr); }
  Disturber(const Disturber&) = delete;
  Disturber& operator=(const Disturber&) = delete;
  void run(std::vector<std::thread>& threads, const std::atomic<unsigned>& left) {
    for (std::size_t i = 0; left.load() > 0; ++i) {
      pthread_kill(threads[i % threads.size()].native_handle(), SIGURG);
      std::this_thread::sleep_for(std::chrono::microseconds{30});
    }
  }

 private:
  struct sigaction before_ {};
};

void threads(const Task& task, const std::string& label) {
  Runs runs{task, label};
  if (label.rfind("loader/", 0) == 0) return skip("loaders open one file at a time");
  constexpr unsigned kThreads = 4;
  std::vector<Transcript> alone;
  for (unsigned t = 0; t < kThreads; ++t) alone.push_back(runs.run(runs.mode(task.seed + t)));
  Disturber disturber;
  for (int round = 0; round < 6; ++round) {
    std::vector<std::unique_ptr<Workout>> all;
    for (unsigned t = 0; t < kThreads; ++t) {
      all.push_back(make_workout({runs.subject(), runs.component(), runs.mode(task.seed + t), {"all defaults", {}}}));
      if (all.back() == nullptr || !all.back()->begin()) return skip("an instance could not be made");
    }
    std::atomic<unsigned> left{kThreads};
    std::vector<std::thread> at_once;
    for (unsigned t = 0; t < kThreads; ++t)
      at_once.emplace_back([&, t] {
        const HostScope scope;
        signal_stack();
        for (unsigned i = 0; i < all[t]->steps(); ++i) all[t]->step(i);
        --left;
        while (left.load() > 0) std::this_thread::yield();  // it may still be sent a signal
      });
    disturber.run(at_once, left);
    for (std::thread& t : at_once) t.join();
    for (unsigned t = 0; t < kThreads; ++t) {
      all[t]->end();
      runs.same(alone[t], all[t]->transcript,
                "instances that are called at once from several threads answer differently than alone: they share state without a lock");
    }
  }
  runs.close();
}

void moving(const Task& task, const std::string& label) {
  Runs runs{task, label};
  Mode mode = runs.mode(task.seed);
  mode.scale = 0.5;
  const Transcript still = runs.run(mode);
  mode.moving = true;
  runs.same(still, runs.run(mode), "answers differently when each call comes from another thread: it keeps something per thread");
  runs.close();
}

void process(const Task& task, const std::string& label) {
  Runs runs{task, label};
  const Watch first;
  runs.run(runs.mode(task.seed));
  first.compare("after an instance", false);
  const Watch before;  // files and threads that are made once and kept are not counted
  WorkoutPlan plan{runs.subject(), runs.component(), runs.mode(task.seed), {"all defaults", {}}};
  const auto w = make_workout(plan);
  if (w == nullptr || !w->begin()) return skip("an instance could not be made");
  before.compare("after create", false);
  for (unsigned i = 0; i < w->steps(); ++i) w->step(i);
  before.compare("after its functions ran", false);
  w->end();
  before.compare("after destroy", true);
  for (const Setting& setting : settings_of(runs.component(), task.folder)) {
    Mode mode = runs.mode(task.seed);
    mode.scale = 0.1;
    runs.run(mode, setting);
  }
  before.compare("after instances with other options", true);
  runs.close();
}

}  // namespace

std::vector<Check> behaviour_checks() {
  return {{"behaviour.workout", "does what its kind is for, within the limits of the header", "", workout},
          {"behaviour.options", "takes every value that its options declare, reads all of them and no others", "", settings},
          {"behaviour.again", "the same calls are answered the same, whatever lay in memory before", "", again},
          {"behaviour.two_instances", "two instances do not see each other", "", two_instances},
          {"behaviour.threads", "instances may be called at once from several threads", "", threads},
          {"behaviour.moving", "each call may come from another thread", "", moving},
          {"behaviour.process", "leaves signals, locale, environment, directory, files and threads of the process alone", "", process}};
}

}  // namespace mekik::validate
