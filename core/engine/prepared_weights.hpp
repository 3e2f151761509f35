// Packed weights from an earlier start in place of packing, or the keeping of today's for the next one.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "config/pipeline.hpp"
#include "plugin/registry.hpp"
#include "program/program.hpp"
#include "weights/prepared.hpp"

namespace mekik::engine {

// Nothing here fails a load: what goes wrong is logged, and weights are packed as if there were no file. Outlives the exec that maps it.
// Thread: that of the loading; the file is written on a thread of its own.
class PreparedWeights {
 public:
  struct Of {
    const config::Pipeline& pipeline;
    const plugin::Component& backend;
    const mekik_device_info& device;
    const weights::ModelFile& file;
    const weights::Store& store;
    const program::Program& program;
    const std::string& name;     // of the model
    std::uint64_t packed_bytes;  // mekik_plan.weight_bytes
  };
  PreparedWeights(const Of& of, mekik_exec* exec);
  ~PreparedWeights();
  // Brings all weights into the exec from the file of an earlier start; false: there is none, they are to be packed.
  bool map(const Of& of);
  // All weights have been packed, which took `packing`: writes them, beside whatever comes next.
  void keep(const Of& of, std::chrono::steady_clock::duration packing);
  // Before the exec is freed. Waits for the file for as long as packing took, at least five seconds, and gives a longer one up.
  void finish();

 private:
  bool find_place(const Of& of);

  mekik_exec* exec_;
  const mekik_backend_prepared* table_ = nullptr;  // nullptr: nothing is kept
  std::filesystem::path path_;
  weights::PreparedKey key_{};
  std::unique_ptr<weights::Prepared> mapped_;
  std::thread writer_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable written_;
  std::chrono::steady_clock::duration patience_{};
  bool done_ = false;  // under mutex_
};

}  // namespace mekik::engine
