// One plugin library, loaded and initialised.
#pragma once
#include <mekik/plugin.h>

#include <boost/dll/shared_library.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "plugin/host.hpp"

namespace mekik::plugin {

class Library {
 public:
  struct Refused {
    std::string kind, name, why;
  };

  // Inspects, loads and initialises a file. Errors begin with the path. `path` is absolute.
  static Result<std::unique_ptr<Library>> load(const std::filesystem::path& path, metrics::Metrics& metrics, Tasks& tasks);
  // The same for an entry that is linked into the program; `name` is what the file would be called, without ".so".
  static Result<std::unique_ptr<Library>> built_in(const char* name, const mekik_plugin* entry, metrics::Metrics& metrics, Tasks& tasks);
  ~Library();  // deinit
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const std::string& path() const { return path_; }  // "(built in)" without a file
  const std::string& name() const { return name_; }  // the file's name without ".so"
  const char* id() const { return entry_->id; }
  const mekik_host* host() const { return host_->raw(); }
  const std::vector<const mekik_component*>& components() const { return components_; }
  const std::vector<Refused>& refused() const { return refused_; }
  // By kind without revision and name; nullptr when it is not here or was refused.
  const mekik_component* find(const std::string& kind, const std::string& name) const;
  std::string contents() const;  // cache "none", sink "jsonl": for messages

 private:
  Library(std::string name, std::string path) : name_{std::move(name)}, path_{std::move(path)} {}
  Status open(const std::filesystem::path& path);
  Status start(metrics::Metrics& metrics, Tasks& tasks);
  void collect();
  std::string where() const;

  std::string name_, path_;
  boost::dll::shared_library file_;
  const mekik_plugin* entry_ = nullptr;
  bool initialised_ = false;
  std::unique_ptr<Host> host_;
  std::vector<const mekik_component*> components_;
  std::vector<Refused> refused_;
};

}  // namespace mekik::plugin
