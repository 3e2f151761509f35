// The class of a backend on this machine's processor and memory, for mekik::backend<>: X is Exec, or derived from it. Where X has kernels
// of its own, static kKernels names them and their revision ("mine 3"): whoever changes a bit of a result must change it, too.
//
//   class Mine : public mekik::reference_backend::Device<MyExec> {
//    public:
//     static constexpr const char *name = "mine", *version = "1.0", *summary = "...";
//     using Device::Device;
//   };
#pragma once
#include <unistd.h>

#include <algorithm>

#include "reference/backend/exec.hpp"
#include "reference/check.hpp"

namespace mekik::reference_backend {

template <class X>
class Device {
 public:
  using Exec = X;
  Device(std::span<const std::uint32_t> devices, Config) {
    if (devices.size() != 1 || devices[0] != 0) throw Error{MEKIK_E_INVALID, "this backend has one device, number 0"};
  }
  static bool probe(std::uint32_t index, mekik_device_info& out) {
    if (index != 0) return false;
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    out.device_kind = MEKIK_DEVICE_CPU;
    out.caps = MEKIK_CAP_ROW_INVARIANT | MEKIK_CAP_UNIFIED_MEMORY;
    out.bytes_total = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * page;
    out.bytes_free = static_cast<std::uint64_t>(sysconf(_SC_AVPHYS_PAGES)) * page;
    out.alignment = 64;
    set_name(out, "plain C++ on this machine", "cpu");
    return true;
  }
  std::string lacks(const mekik_program& program, std::uint32_t index) const {
    if (std::string why = check_tensors(program); !why.empty()) return why;
    if (index >= program.n_ops) return "there is no operation " + std::to_string(index);
    return reference::check_op(ProgramReader{program}, index);
  }
  void plan(const mekik_program& program, const mekik_limits& limits, mekik_plan& out) const {
    const Layout layout = lay_out(program, limits);
    out.slot_every = 1;
    out.max_in_flight = 1;
    out.uses = kUses;
    out.weight_bytes = layout.all_weight_bytes;
    out.peak_load_bytes = 0;  // rows are pulled to where they stay
    out.work_bytes = layout.work_bytes();
    out.adapter_bytes = 0;
    out.host_bytes = 0;
    out.slot_bytes = layout.slot_bytes;
    std::copy(layout.block_bytes.begin(), layout.block_bytes.end(), out.block_bytes);
    std::string kernels;
    if constexpr (requires { X::kKernels; }) kernels = X::kKernels;
    identify(program, limits, kernels, out.layout_id, out.numeric_id);
  }
  // The first is what "auto" takes: the reference rounds nothing unless it is asked to.
  static constexpr mekik_kv_form kForms[] = {kKvForms[2], kKvForms[0], kKvForms[1], kKvForms[3], kKvForms[4]};
  static constexpr mekik_backend_kv kv{sizeof(mekik_backend_kv), std::size(kForms), sizeof(mekik_kv_form), 0, kForms};
};

}  // namespace mekik::reference_backend
