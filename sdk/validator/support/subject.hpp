// The plugin under test, loaded into this process.
#pragma once
#include <mekik/plugin.h>

#include <memory>
#include <string>
#include <vector>

#include "support/call.hpp"
#include "support/host.hpp"
#include "support/mode.hpp"

namespace mekik::validate {

// What the program was asked to do.
struct Task {
  std::string file;
  std::uint64_t seed = 1;
  std::string folder;                // of this check alone, made empty
  std::vector<std::string> samples;  // files for loaders
  unsigned revision = 0;             // --against 0.N
};

class Subject {
 public:
  // dlopen and init. Stops the check where that fails: `file.load` says why.
  Subject(const Task& task, const Mode& mode);
  ~Subject();
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  const Task& task() const { return task_; }
  const mekik_plugin& entry() const { return *entry_; }
  Host& host() { return *host_; }
  // By kind without revision and name, as in "scheduler/mine".
  const mekik_component& component(const std::string& label) const;
  void deinit();
  void init(const Mode& mode);
  bool initialised() const { return host_ != nullptr; }

 private:
  Task task_;
  void* handle_ = nullptr;
  const mekik_plugin* entry_ = nullptr;
  std::unique_ptr<Host> host_;
};

std::string label_of(const mekik_component& component);  // "scheduler/mine"
void* open_library(const std::string& file, std::string& why);
const mekik_plugin* entry_of(void* handle);

// The table of a component as this validator knows it: what a shorter one lacks reads as NULL.
template <class T>
T table_of(const mekik_component& c);

}  // namespace mekik::validate

#include <algorithm>
#include <cstring>

template <class T>
T mekik::validate::table_of(const mekik_component& c) {
  T out{};
  std::uint32_t size = 0;
  std::memcpy(&size, c.table, sizeof size);
  std::memcpy(&out, c.table, std::min<std::size_t>(size, sizeof out));
  return out;
}
