// The backend `reference`: the reference operations as a plugin. Slow and exact: what every other backend is measured by.
#include <unistd.h>
#include <mekik/backend.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "exec.hpp"
#include "reference/check.hpp"

namespace mekik::reference_backend {

namespace {

struct Device {};

mekik_status probe(std::uint32_t index, mekik_device_info* out) {
  if (index != 0) return report(MEKIK_E_INVALID, "the backend reference has one device");
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  out->device_kind = MEKIK_DEVICE_CPU;
  out->caps = MEKIK_CAP_ROW_INVARIANT | MEKIK_CAP_UNIFIED_MEMORY;
  out->bytes_total = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * page;
  out->bytes_free = static_cast<std::uint64_t>(sysconf(_SC_AVPHYS_PAGES)) * page;
  out->alignment = 64;
  std::strcpy(out->name, "plain C++ on this machine");
  std::strcpy(out->uid, "cpu");
  return MEKIK_OK;
}

mekik_status open(const mekik_host*, const std::uint32_t* indices, std::uint32_t n, const mekik_config*, mekik_device** out) {
  if (n != 1 || indices == nullptr || indices[0] != 0) return report(MEKIK_E_INVALID, "the backend reference has one device, number 0");
  return guard([&] { *out = reinterpret_cast<mekik_device*>(new Device); });
}
void close(mekik_device* device) { delete reinterpret_cast<Device*>(device); }

int supports(mekik_device*, const mekik_program* program, std::uint32_t index) {
  const mekik_status status = guard([&] {
    if (const std::string why = check_tensors(*program); !why.empty()) throw Error{MEKIK_E_INVALID, why};
    if (index >= program->n_ops) throw Error{MEKIK_E_INVALID, "there is no operation " + std::to_string(index)};
    const ProgramReader reader{*program};
    if (const std::string why = reference::check_op(reader, index); !why.empty()) throw Error{MEKIK_E_UNSUPPORTED, why};
  });
  return status == MEKIK_OK ? 1 : 0;
}

mekik_status plan(mekik_device*, const mekik_program* program, const mekik_limits* limits, mekik_plan* out) {
  return guard([&] {
    const Layout layout = lay_out(*program, *limits);
    out->slot_every = 1;
    out->max_in_flight = 1;
    out->uses = kUses;
    out->weight_bytes = layout.all_weight_bytes;
    out->peak_load_bytes = 0;  // rows are pulled to where they stay
    out->work_bytes = layout.work_bytes();
    out->adapter_bytes = 0;
    out->host_bytes = 0;
    out->slot_bytes = layout.slot_bytes;
    std::copy(layout.block_bytes.begin(), layout.block_bytes.end(), out->block_bytes);
    identify(*program, *limits, out->layout_id, out->numeric_id);
  });
}

mekik_status compile(mekik_device*, const mekik_program* program, const mekik_limits* limits, mekik_exec** out) {
  return guard([&] { *out = reinterpret_cast<mekik_exec*>(new Exec{*program, *limits}); });
}

constexpr mekik_backend kTable = backend_table<Exec>(probe, open, close, supports, plan, compile);

// The first is what "auto" takes: the oracle rounds nothing unless it is asked to.
constexpr mekik_kv_form kForms[] = {kKvForms[2], kKvForms[0], kKvForms[1], kKvForms[3], kKvForms[4]};
constexpr mekik_backend_kv kOracleKv{sizeof(mekik_backend_kv), std::size(kForms), sizeof(mekik_kv_form), 0, kForms};
const void* extension(const char* id) { return std::string_view{id} == MEKIK_BACKEND_KV ? &kOracleKv : nullptr; }

constexpr std::array<mekik_option, 0> kOptions{};

}  // namespace

}  // namespace mekik::reference_backend

MEKIK_PLUGIN("mekik.backend.reference", "1.0",
             mekik::component(MEKIK_KIND_BACKEND, "reference", "1.0",
                              "Every operation in plain loops: slow, exact, the measure of the others.", mekik::reference_backend::kOptions,
                              &mekik::reference_backend::kTable, mekik::reference_backend::extension));
