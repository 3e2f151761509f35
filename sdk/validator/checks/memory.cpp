// Whose memory is whose.
#include "checks/checks.hpp"
#include "checks/runs.hpp"

namespace mekik::validate {

namespace {

void front(const Task& task, const std::string& label) {
  Runs runs{task, label};
  Mode mode = runs.mode(task.seed);
  mode.flush = Flush::front;
  runs.run(mode);
  runs.close();
}

void strides(const Task& task, const std::string& label) {
  Runs runs{task, label};
  for (const std::uint64_t seed : {task.seed, task.seed + 3}) {
    Mode mode = runs.mode(seed);
    const Transcript plain = runs.run(mode);
    for (const std::uint32_t extra : {16u, 40u}) {
      mode.extra = extra;
      runs.same(plain, runs.run(mode), "answers differently when elements of arrays are longer: a stride (..._size) is ignored");
    }
  }
  runs.close();
}

void heap(const Task& task, const std::string& label) {
  if (!heap_watched()) return skip("this build has a sanitizer in place of the watched heap");
  Runs runs{task, label};
  Mode mode = runs.mode(task.seed);
  mode.scale = 0.5;
  const Transcript plain = runs.run(mode);
  set_heap({.guard = true});
  runs.same(plain, runs.run(mode), "answers differently when each of its blocks has a trap behind it");
  set_heap({});
  runs.close();
}

void leaks(const Task& task, const std::string& label) {
  Runs runs{task, label};
  Mode mode = runs.mode(task.seed);
  mode.scale = 0.5;
  std::int64_t blocks[5], host[5];
  for (int i = 0; i < 5; ++i) {
    runs.run(mode);
    blocks[i] = heap_use().blocks;
    host[i] = runs.subject().host().blocks();
  }
  const auto grows = [](const std::int64_t* n) { return n[2] > n[1] && n[3] > n[2] && n[4] > n[3]; };
  if (grows(blocks)) fault("does not free " + std::to_string(blocks[4] - blocks[3]) + " blocks of the heap an instance");
  if (grows(host)) fault("does not release " + std::to_string(host[4] - host[3]) + " blocks of mekik.memory/1 an instance");
  if (host[0] > 0) fault("destroy: " + std::to_string(host[0]) + " blocks of mekik.memory/1 are still held");
  runs.close();
}

}  // namespace

std::vector<Check> memory_checks() {
  return {{"memory.front", "touches nothing before what it is lent", "", front},
          {"memory.strides", "elements of arrays may be longer than it knows them", "", strides},
          {"memory.heap", "keeps within its own blocks, and touches none that it freed", "", heap},
          {"memory.leaks", "an instance gives back all that it took", "", leaks}};
}

}  // namespace mekik::validate
