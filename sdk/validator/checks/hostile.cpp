// Hosts that lack services, refuse memory, and run tasks in another order.
#include "checks/checks.hpp"
#include "checks/runs.hpp"
#include "support/instance.hpp"

namespace mekik::validate {

namespace {

void services(const Task& task, const std::string& label) {
  Runs runs{task, label};
  Mode mode = runs.mode(task.seed);
  mode.scale = 0.4;
  const Transcript plain = runs.run(mode);
  for (const char* missing : {"*", MEKIK_LOG, MEKIK_METRICS, MEKIK_MEMORY, MEKIK_TASKS, MEKIK_CONFIG}) {
    mode.missing = {missing};
    mode.hostile = true;
    runs.subject().deinit();
    runs.subject().init(mode);
    now_calling(std::string{"a host without "} + (missing[0] == '*' ? "services" : missing));
    const Transcript without = runs.run(mode);
    if (without.size() > 0)
      runs.same(plain, without, std::string{"answers differently on a host without "} + (missing[0] == '*' ? "services" : missing));
  }
  runs.close();
}

void tasks(const Task& task, const std::string& label) {
  Runs runs{task, label};
  Mode mode = runs.mode(task.seed);
  const Transcript plain = runs.run(mode);
  if (runs.subject().host().asked().count(MEKIK_TASKS) == 0) return runs.close(), skip("does not use mekik.tasks/1");
  for (const std::uint32_t width : {1u, 3u, 7u}) {
    mode.width = width;
    mode.backwards = width != 3;
    runs.same(plain, runs.run(mode), "answers differently with other threads, or when tasks run in another order");
  }
  runs.close();
}

// Refuses one allocation of a run after the other.
template <class Refuse, class Count>
void refuse_each(Runs& runs, const Mode& mode, const char* what, Refuse&& refuse, Count&& count) {
  const Transcript plain = runs.run(mode);
  const std::uint64_t all = count();
  if (all == 0) return skip(std::string{"takes nothing from "} + what);
  const std::uint64_t step = std::max<std::uint64_t>(1, all / 40);
  set_lenient(true);
  for (std::uint64_t n = 1; n <= all; n += n < 25 ? 1 : step) {
    std::int64_t before = heap_use().blocks, grown = 0;
    for (int again = 0; again < 4; ++again) {
      refuse(n);
      Mode hostile = mode;
      hostile.hostile = true;
      hostile.fail_alloc = n * (std::string_view{what} == MEKIK_MEMORY);
      runs.run(hostile);
      const std::int64_t now = heap_use().blocks;
      if (now > before) ++grown;
      before = now;
      if (grown == 0) break;
    }
    if (grown == 4) fault("does not free all that it had when allocation " + std::to_string(n) + " of " + what + " was refused");
    if (const std::int64_t held = runs.subject().host().blocks(); held > 0)
      return fault("holds " + std::to_string(held) + " blocks of mekik.memory/1 after allocation " + std::to_string(n) + " of " + what +
                   " was refused");
  }
  set_lenient(false);
  set_heap({});
  runs.same(plain, runs.run(mode), std::string{"answers differently after allocations of "} + what + " had been refused");
}

void heap(const Task& task, const std::string& label) {
  if (!heap_watched()) return skip("this build has a sanitizer in place of the watched heap");
  Runs runs{task, label};
  Mode mode = runs.mode(task.seed);
  mode.scale = 0.12;
  runs.run(mode);
  set_heap({});
  refuse_each(
      runs, mode, "the heap", [](std::uint64_t n) { set_heap({.fail_at = n}); }, [] { return heap_use().allocations; });
  runs.close();
}

void memory(const Task& task, const std::string& label) {
  Runs runs{task, label};
  Mode mode = runs.mode(task.seed);
  mode.scale = 0.12;
  refuse_each(
      runs, mode, MEKIK_MEMORY, [](std::uint64_t) { set_heap({}); }, [&] { return runs.subject().host().allocations(); });
  runs.close();
}

}  // namespace

std::vector<Check> hostile_checks() {
  return {{"hostile.services", "a host may lack any service: a reason, or it works", "", services},
          {"hostile.tasks", "answers do not depend on how many threads there are, nor on the order of tasks", "", tasks},
          {"hostile.heap", "any allocation may fail: a status with a reason, nothing lost, and it goes on", "", heap},
          {"hostile.memory", "mekik.memory/1 may refuse: a status with a reason, nothing lost, and it goes on", "", memory}};
}

}  // namespace mekik::validate
