// What a plugin could change of the process that it lives in.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mekik::validate {

class Watch {
 public:
  Watch();
  // Faults for everything that is not as it was: signal handlers, environment, locale, working directory, umask, timers, ... Threads, open
  // files and child processes only if `ended`: an instance that runs may have some.
  void compare(const std::string& after, bool ended) const;
  static std::vector<std::string> threads();  // of this process, "tid name"
  static std::map<int, std::string> files();  // open ones

 private:
  std::map<std::string, std::string> settings_;
  std::size_t threads_;
  std::map<int, std::string> files_;
};

}  // namespace mekik::validate
