// The backend `vulkan`: compute shaders on any device with a Vulkan driver. This file is its entry: options, devices, the table of
// functions.
#include <mekik/backend.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>

#include "exec.hpp"

namespace mekik::vulkan {

namespace {

namespace fs = std::filesystem;

// One instance for the process, and one with validation where somebody asks for that: making one loads drivers. [load]
std::shared_ptr<Instance> shared_instance(bool validation = false) {
  static std::array<std::shared_ptr<Instance>, 2> instances;
  std::shared_ptr<Instance>& instance = instances[validation ? 1 : 0];
  if (instance == nullptr) instance = std::make_shared<Instance>(validation);
  return instance;
}

std::vector<const Gpu*> fit_gpus(const Instance& instance) {
  std::vector<const Gpu*> fit;
  for (const Gpu& gpu : instance.gpus())
    if (gpu.unfit.empty()) fit.push_back(&gpu);
  return fit;
}

// Why there is nothing to list.
std::string why_none(const Instance& instance) {
  if (instance.gpus().empty()) return "no Vulkan driver on this machine has a device (Debian: mesa-vulkan-drivers, or the maker's own)";
  std::string why;
  for (const Gpu& gpu : instance.gpus()) why += (why.empty() ? "" : "; ") + std::string{gpu.properties.deviceName} + ": " + gpu.unfit;
  return "no Vulkan device of this machine can be used: " + why;
}

const Gpu& gpu_at(const Instance& instance, std::uint32_t index) {
  const auto fit = fit_gpus(instance);
  if (index < fit.size()) return *fit[index];
  if (fit.empty()) throw Error{MEKIK_E_INVALID, why_none(instance)};
  throw Error{MEKIK_E_INVALID, "there are " + std::to_string(fit.size()) + " Vulkan devices, numbered from 0"};
}

mekik_status probe(std::uint32_t index, mekik_device_info* out) {
  return guard([&] {
    std::shared_ptr<Instance> instance;
    try {
      instance = shared_instance();
    } catch (const Error& e) {  // no Vulkan: no devices
      throw Error{MEKIK_E_INVALID, e.what()};
    }
    const Gpu& gpu = gpu_at(*instance, index);
    const Heaps heaps = instance->heaps(gpu);
    const bool processor = gpu.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    out->device_kind = processor ? MEKIK_DEVICE_CPU : MEKIK_DEVICE_GPU;
    out->caps = MEKIK_CAP_ROW_INVARIANT | (processor ? MEKIK_CAP_OWN_THREADS | MEKIK_CAP_UNIFIED_MEMORY : 0);
    out->bytes_total = heaps.total;
    out->bytes_free = heaps.free;
    out->alignment = 256;
    std::string{gpu.properties.deviceName}.copy(out->name, sizeof out->name - 1);
    gpu.uuid.copy(out->uid, sizeof out->uid - 1);
  });
}

std::string lower_without_dashes(std::string_view text) {
  std::string plain;
  for (const char c : text)
    if (c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

// By number, by UUID (or its beginning, as it is listed), or by a part of the name that only one device has.
const Gpu& chosen(const Instance& instance, const Config& config, std::uint32_t index) {
  const std::string_view wanted = config.text("device");
  const auto fit = fit_gpus(instance);
  if (fit.empty()) throw Error{MEKIK_E_UNSUPPORTED, why_none(instance)};
  if (wanted.empty()) return gpu_at(instance, index);
  if (wanted.size() < 4 && std::all_of(wanted.begin(), wanted.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
    const auto number = static_cast<std::size_t>(std::stoul(std::string{wanted}));
    if (number < fit.size()) return *fit[number];
  }
  const std::string plain = lower_without_dashes(wanted);
  std::string names;
  std::vector<const Gpu*> found;
  for (std::size_t i = 0; i < fit.size(); ++i) {
    const std::string name = lower_without_dashes(fit[i]->properties.deviceName);
    names += (i == 0 ? "" : ", ") + std::to_string(i) + " " + fit[i]->properties.deviceName + " (" + fit[i]->uuid + ")";
    if (name.find(plain) != std::string::npos || (plain.size() >= 8 && fit[i]->uuid.compare(0, plain.size(), plain) == 0))
      found.push_back(fit[i]);
  }
  if (found.size() == 1) return *found[0];
  config.reject("device", (found.empty() ? "no device is called so; there are: " : "several devices are called so: ") + names);
}

// Where compiled kernels are kept: a file for each device and driver.
std::string cache_file(const Config& config, const Gpu& gpu) {
  const std::string_view wanted = config.text("pipeline_cache");
  if (wanted == "none") return {};
  fs::path folder{wanted};
  if (wanted == "auto") {
    const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
    if (cache != nullptr && fs::path{cache}.is_absolute()) folder = fs::path{cache} / "mekik";
    else if (home != nullptr && *home != '\0') folder = fs::path{home} / ".cache" / "mekik";
    else return {};
  }
  std::string driver = gpu.driver.substr(0, 8) + "-" + std::to_string(gpu.properties.driverVersion);
  return (folder / ("vulkan-" + gpu.uuid + "-" + driver + ".kernels")).string();
}

struct Opened {
  std::shared_ptr<Device> device;
  DeviceLimits limits;
};
Opened& opened(mekik_device* device) { return *reinterpret_cast<Opened*>(device); }

// A device once opened stays, with the kernels compiled for it, for the next model of the process; but not one that was lost. [load]
std::shared_ptr<Device> opened_once(const std::shared_ptr<Instance>& instance, const Gpu& gpu, const std::string& cache) {
  static std::map<std::pair<const Gpu*, std::string>, std::shared_ptr<Device>> known;
  std::shared_ptr<Device>& device = known[{&gpu, cache}];
  if (device == nullptr || device->lost()) device = std::make_shared<Device>(instance, gpu, cache);
  return device;
}

mekik_status open(const mekik_host*, const std::uint32_t* indices, std::uint32_t n, const mekik_config* raw, mekik_device** out) {
  return guard([&] {
    if (n != 1 || indices == nullptr) throw Error{MEKIK_E_UNSUPPORTED, "the backend vulkan runs a model on one device"};
    const Config config{raw};
    const auto instance = shared_instance(config.boolean("validation"));
    const Gpu& gpu = chosen(*instance, config, indices[0]);
    if (gpu.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU)
      write_log(2, "vulkan",
                std::string{gpu.properties.deviceName} + " emulates a device on the processor; the backend cpu is faster there");
    *out = reinterpret_cast<mekik_device*>(new Opened{opened_once(instance, gpu, cache_file(config, gpu)), limits_of(gpu)});
  });
}
void close(mekik_device* device) { delete &opened(device); }

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
    const Plan p{*program, *limits, opened(device).limits};
    out->slot_every = 1;
    out->max_in_flight = 1;
    out->uses = p.uses();
    out->weight_bytes = p.weight_bytes();
    out->peak_load_bytes = 0;  // what loading needs for a while is part of work_bytes
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
  return guard([&] { *out = reinterpret_cast<mekik_exec*>(new Exec{*opened(device).device, *program, *limits}); });
}

constexpr mekik_backend kTable = backend_table<Exec>(probe, open, close, supports, plan, compile);

const void* extension(const char* id) { return std::string_view{id} == MEKIK_BACKEND_KV ? &kKv : nullptr; }

constexpr std::array kOptions{
    opt::text("device", "\"\"",
              "The device, by its number, its UUID or a part of its name; empty: the first, a device of its own before an emulated one."),
    opt::text(
        "pipeline_cache", "\"auto\"",
        "The folder where compiled kernels are kept for the next start; none: nowhere; auto: in $XDG_CACHE_HOME/mekik or ~/.cache/mekik."),
    opt::boolean("validation", "false", "Runs under the Vulkan validation layers; whatever they say fails the step."),
};

}  // namespace

}  // namespace mekik::vulkan

MEKIK_PLUGIN("mekik.backend.vulkan", "1.0",
             mekik::component(MEKIK_KIND_BACKEND, "vulkan", "1.0",
                              "Runs models on graphics devices by compute shaders, through any Vulkan driver.", mekik::vulkan::kOptions,
                              &mekik::vulkan::kTable, mekik::vulkan::extension));
