#include "engine/prepared_weights.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/log.hpp"
#include "base/text.hpp"

namespace mekik::engine {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kWorthKeeping = std::uint64_t{8} << 20;  // less is packed in the time that a file takes to open
constexpr std::chrono::seconds kPatience{5};                     // at the end of a process, or longer: what packing took
constexpr int kNice = 5;                                         // of the writer: requests go first, and a busy machine does not starve it
constexpr std::uint32_t kMaxThreads = 8;                         // as many as read memory at its full speed
constexpr const char* kComponent = "model";

constexpr const char* kTurnOff = "; model.prepared = false keeps none";

}  // namespace

PreparedWeights::PreparedWeights(const Of& of, mekik_exec* exec) : exec_{exec} {
  const mekik_component& raw = *of.backend.raw;
  if (!of.pipeline.model.prepared || of.packed_bytes < kWorthKeeping || raw.extension == nullptr) return;
  table_ = static_cast<const mekik_backend_prepared*>(raw.extension(MEKIK_BACKEND_PREPARED));
  if (table_ != nullptr && !find_place(of)) table_ = nullptr;
}

bool PreparedWeights::find_place(const Of& of) {
  const fs::path folder =
      of.pipeline.model.prepared_folder.empty() ? weights::prepared_folder() : fs::path{of.pipeline.model.prepared_folder};
  if (folder.empty()) return false;
  std::error_code error;
  const fs::path model = fs::absolute(of.pipeline.model.path, error);
  weights::Packer packer{of.pipeline.backend.name, of.backend.library, of.device.uid, {}, of.pipeline.model.dense};
  if (table_->id(exec_, packer.id.data()) != MEKIK_OK) {
    log::warning(kComponent, "weights are not kept for the next start: " + plugin::take_failure());
    return false;
  }
  const auto key = weights::prepared_key(of.file, of.store, of.program, packer);
  if (!key.ok()) {
    log::debug(kComponent, "weights are not kept for the next start: " + key.status().text);
    return false;
  }
  key_ = *key;
  path_ = folder / weights::prepared_name(of.name, model.string(), packer);
  return true;
}

bool PreparedWeights::map(const Of& of) {
  if (table_ == nullptr) return false;
  const std::uint32_t threads = of.pipeline.threads != 0 ? of.pipeline.threads : std::max(1u, std::thread::hardware_concurrency());
  auto opened = weights::Prepared::open(path_, key_, std::min(threads, kMaxThreads));
  if (!opened.ok()) {
    if (opened.status().code != Code::invalid) log::warning(kComponent, opened.status().text + "; the weights are packed again");
    return false;
  }
  mapped_ = std::move(*opened);
  std::size_t at = 0;
  for (std::uint32_t t = 0; t < of.program.tensors.size(); ++t) {
    if (of.program.tensors[t].weight < 0) continue;
    const mekik_weight weight = of.store.weight(t);
    const weights::PackedBytes bytes = at < mapped_->weights().size() ? mapped_->weights()[at++] : weights::PackedBytes{};
    if (table_->map(exec_, &weight, bytes.data(), bytes.size()) == MEKIK_OK) continue;
    log::warning(kComponent, path_.string() + ": " + plugin::take_failure() + "; the weights are packed again");
    return false;  // it stays mapped: the backend borrows what it took
  }
  log::info(kComponent, "the weights are mapped from " + path_.string() + ", where an earlier start put them");
  return true;
}

void PreparedWeights::keep(const Of& of, std::chrono::steady_clock::duration packing) {
  if (table_ == nullptr) return;
  patience_ = std::max<std::chrono::steady_clock::duration>(kPatience, packing);
  std::vector<weights::PackedBytes> packed;
  for (std::uint32_t t = 0; t < of.program.tensors.size(); ++t) {
    if (of.program.tensors[t].weight < 0) continue;
    const void* data = nullptr;
    std::uint64_t bytes = 0;
    if (table_->packed(exec_, t, &data, &bytes) != MEKIK_OK) {
      log::warning(kComponent, "weights are not kept for the next start: " + plugin::take_failure());
      return;
    }
    packed.emplace_back(static_cast<const std::uint8_t*>(data), bytes);
  }
  std::error_code error;
  const std::string model = fs::absolute(of.pipeline.model.path, error).string();
  writer_ = std::thread{[this, model, packed = std::move(packed)] {
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);  // of this thread
    const Status status = weights::write_prepared(path_, key_, model, packed, stop_);
    if (status.ok()) log::info(kComponent, "the packed weights are kept in " + path_.string() + " for the next start" + kTurnOff);
    else if (status.code == Code::cancelled)
      log::info(kComponent, "the packed weights are not kept: the process ends before they are written");
    else if (status.code == Code::io) log::warning(kComponent, "weights are not kept for the next start: " + status.text + kTurnOff);
    const std::lock_guard lock{mutex_};
    done_ = true;
    written_.notify_all();
  }};
}

void PreparedWeights::finish() {
  if (!writer_.joinable()) return;
  {
    std::unique_lock lock{mutex_};
    written_.wait_for(lock, patience_, [&] { return done_; });
  }
  stop_ = true;
  writer_.join();
}

PreparedWeights::~PreparedWeights() { finish(); }

}  // namespace mekik::engine
