// Finds, checks and loads plugin libraries; hands out their components.
#pragma once
#include <mekik/plugin.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "config/pipeline.hpp"
#include "metrics/metrics.hpp"

namespace mekik::plugin {

// A component together with the host its library was initialised with.
struct Component {
  const mekik_component* raw = nullptr;
  const mekik_host* host = nullptr;
  std::string library;  // path, or "(built in)"
  // The kind's function table, revision checked when the library was loaded.
  template <class T>
  const T& table() const {
    return *static_cast<const T*>(raw->table);
  }
};

// Libraries stay loaded until the process ends (RTLD_NODELETE); deinit runs when the registry dies, after every instance is gone.
// Thread: loading from one thread at a time; a Component may be used from any thread.
class Registry final : public config::Components {
 public:
  struct Options {
    std::filesystem::path directory;           // <prefix>/lib/mekik
    std::vector<std::filesystem::path> extra;  // MEKIK_PLUGIN_PATH
    std::uint32_t threads = 1;                 // width of mekik.tasks/1
  };
  Registry(Options options, metrics::Metrics& metrics);
  ~Registry() override;

  // `kind` without revision: "backend". Code::invalid with suggestions when it does not exist, unsupported when its ABI does not fit.
  Result<Component> find(const std::string& kind, const std::string& name);
  Result<Component> find(const config::Use& use);
  Result<const mekik_component*> component(const std::string& kind, const config::Use& use) override;
  Status add(const std::vector<std::string>& load, const std::vector<std::string>& dirs) override;
  // The pipeline's `threads`: the width of mekik.tasks/1. Before a backend is opened.
  void set_threads(std::uint32_t threads);
  // Everything installed in all directories (loads each library; those that cannot be loaded are in `problems`).
  std::vector<Component> installed(std::vector<std::string>* problems);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The text of the last failure that a plugin reported through mekik_host.fail on this thread, and clears it.
std::string take_failure();
// Status of an ABI call: ok, or the code with "what: " and the failure text ("no reason given" when the plugin gave none).
// `what` is empty where the plugin's text says it already.
Status to_status(mekik_status code, std::string_view what);
inline mekik_str abi_str(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view view(mekik_str s) { return {s.ptr, s.len}; }
// The mekik_config that a component's functions receive for a validated table.
const mekik_config* abi_config(const config::Table& table);

}  // namespace mekik::plugin
