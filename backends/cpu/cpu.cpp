// The backend `cpu`: the embedded default. This file is its entry: options, the choice of the instruction set, the table of functions.
#include <unistd.h>
#include <mekik/backend.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "exec.hpp"
#include "measure.hpp"

namespace mekik::cpu {

namespace {

// The one list of levels, best first.
struct Level {
  const char* name;
  bool (*runs)();
  const Kernels& (*kernels)();
};
constexpr Level kLevels[] = {
#if defined(__x86_64__)
    {"avx512",
     [] {
       return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("fma");
     },
     avx512_kernels},
    {"avx2", [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"); },
     avx2_kernels},
#endif
    {"portable", [] { return true; }, portable_kernels}};

const Kernels& choose(const Config& config) {
  const std::string_view wanted = config.text("isa");
  for (const Level& level : kLevels) {
    if (wanted != "auto" && wanted != level.name) continue;
    if (level.runs()) return level.kernels();
    if (wanted != "auto") config.reject("isa", "this machine cannot run " + std::string{wanted} + "; use \"auto\"");
  }
  config.reject("isa", "this build has no kernels for " + std::string{wanted} + "; use \"auto\"");
}

std::uint32_t threads_of_host() {
  const auto* tasks = service<mekik_tasks>(MEKIK_TASKS);
  const std::uint32_t width = tasks != nullptr ? tasks->width(host) : 1;
  return std::clamp(width, 1u, 1024u);
}

Device& device_of(mekik_device* device) { return *reinterpret_cast<Device*>(device); }

mekik_status probe(std::uint32_t index, mekik_device_info* out) {
  if (index != 0) return report(MEKIK_E_INVALID, "the backend cpu has one device");
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  out->device_kind = MEKIK_DEVICE_CPU;
  out->caps = MEKIK_CAP_ROW_INVARIANT | MEKIK_CAP_OWN_THREADS | MEKIK_CAP_UNIFIED_MEMORY;
  out->bytes_total = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * page;
  out->bytes_free = static_cast<std::uint64_t>(sysconf(_SC_AVPHYS_PAGES)) * page;
  out->alignment = 64;
  std::strncpy(out->uid, "cpu", sizeof out->uid - 1);
  return guard([&] {
    std::string name = "CPU,";
    for (const Level& level : kLevels)
      if (level.runs()) name += std::string{" "} + level.name;
    std::strncpy(out->name, name.c_str(), sizeof out->name - 1);
  });
}

mekik_status open(const mekik_host*, const std::uint32_t* indices, std::uint32_t n, const mekik_config* config, mekik_device** out) {
  if (n != 1 || indices == nullptr || indices[0] != 0) return report(MEKIK_E_INVALID, "the backend cpu has one device, number 0");
  return guard([&] { *out = reinterpret_cast<mekik_device*>(new Device{Config{config}}); });
}
void close(mekik_device* device) { delete &device_of(device); }

int supports(mekik_device*, const mekik_program* program, std::uint32_t index) {
  const mekik_status status = guard([&] {
    if (const std::string why = check_tensors(*program); !why.empty()) throw Error{MEKIK_E_INVALID, why};
    if (index >= program->n_ops) throw Error{MEKIK_E_INVALID, "there is no operation " + std::to_string(index)};
    if (const std::string why = why_not(ProgramReader{*program}, index); !why.empty()) throw Error{MEKIK_E_UNSUPPORTED, why};
  });
  return status == MEKIK_OK ? 1 : 0;
}

mekik_status plan(mekik_device* device, const mekik_program* program, const mekik_limits* limits, mekik_plan* out) {
  return guard([&] {
    const Plan p{*program, *limits, device_of(device).settings};
    out->slot_every = 1;
    out->max_in_flight = 1;
    out->uses = kUses;
    out->weight_bytes = p.weight_bytes;
    out->peak_load_bytes = p.load_bytes;
    out->work_bytes = p.work_bytes();
    out->adapter_bytes = 0;
    out->host_bytes = 0;
    out->slot_bytes = p.slot_bytes;
    std::copy(p.block_bytes.begin(), p.block_bytes.end(), out->block_bytes);
    std::memcpy(out->layout_id, p.layout_id, sizeof p.layout_id);
    std::memcpy(out->numeric_id, p.numeric_id, sizeof p.numeric_id);
  });
}

mekik_status compile(mekik_device* device, const mekik_program* program, const mekik_limits* limits, mekik_exec** out) {
  return guard([&] { *out = reinterpret_cast<mekik_exec*>(new Exec{device_of(device), *program, *limits}); });
}

constexpr mekik_backend kTable = backend_table<Exec>(probe, open, close, supports, plan, compile);

mekik_status roof(mekik_device* device, std::uint64_t bytes, mekik_roof* out) {
  return guard([&] { *out = measure_roof(device_of(device), bytes); });
}
constexpr mekik_backend_measure kMeasure = measure_table<Exec>(roof);

constexpr mekik_backend_prepared kPrepared = prepared_table<Exec>();

const void* extension(const char* id) {
  const std::string_view wanted = id;
  return wanted == MEKIK_BACKEND_KV         ? static_cast<const void*>(&kKv)
         : wanted == MEKIK_BACKEND_PREPARED ? &kPrepared
         : wanted == MEKIK_BACKEND_MEASURE  ? static_cast<const void*>(&kMeasure)
                                            : nullptr;
}

constexpr std::array kOptions{
    opt::choice("math", "\"quantized\"", "quantized|exact",
                "quantized: activations of 8 bits, 15 around outliers, where weights are integers; exact: all activations stay F32."),
    opt::choice("isa", "\"auto\"", "auto|avx512|avx2|portable",
                "The instruction set of the kernels; auto takes the best that the machine has."),
};

}  // namespace

Device::Device(const Config& config) : Device{choose(config), config.text("math") == "exact", threads_of_host()} {}

}  // namespace mekik::cpu

MEKIK_PLUGIN("mekik.backend.cpu", "1.0",
             mekik::component(MEKIK_KIND_BACKEND, "cpu", "1.0", "Runs models on the processor with kernels for its instruction set.",
                              mekik::cpu::kOptions, &mekik::cpu::kTable, mekik::cpu::extension));
