// Runs each check in a process of its own, with a time limit, several at once.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace mekik::validate {

enum class Verdict { passed, failed, skipped };

struct Job {
  std::string component;  // "scheduler/mine"; empty: of the file
  std::string check;      // "hostile.strides"
  std::function<void()> work;
};

struct Outcome {
  Verdict verdict = Verdict::failed;
  std::vector<std::string> faults;  // or why it was skipped
  double seconds = 0;
  std::string data;
};

struct Limits {
  unsigned at_once = 2;
  double seconds = 30;
};

// In the order of `jobs`; `finished` is told of each as it ends.
std::vector<Outcome> run_all(const std::vector<Job>& jobs, const Limits& limits,
                             const std::function<void(const Job&, const Outcome&)>& finished);

}  // namespace mekik::validate
