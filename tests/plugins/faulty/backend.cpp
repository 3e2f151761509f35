// The reference backend behind a table of which one function is wrong.
#include "reference/backend/device.hpp"

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

// MEKIK_FAULT names the one thing that is wrong; without it nothing is.
bool is(std::string_view fault) {
  static const char* const wanted = std::getenv("MEKIK_FAULT");
  return wanted != nullptr && fault == wanted;
}
using mekik::reference_backend::Exec;

class Faulty : public mekik::reference_backend::Device<Exec> {
 public:
  static constexpr const char* name = "faulty";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Wrong in one way.";
  using Device::Device;
};
using Base = mekik::BackendTable<Faulty>;
const mekik_backend& base() { return Base::table; }

mekik_status probe(std::uint32_t i, mekik_device_info* out) {
  if (is("endless_devices")) return base().probe(0, out);
  const mekik_status status = base().probe(i, out);
  if (is("no_alignment")) out->alignment = 0;
  return status;
}
int supports(mekik_device* d, const mekik_program* p, std::uint32_t op) {
  const int answer = base().supports(d, p, op);
  return answer == 0 && is("supports_everything") ? 1 : answer;
}
mekik_status plan(mekik_device* d, const mekik_program* p, const mekik_limits* l, mekik_plan* out) {
  const mekik_status status = base().plan(d, p, l, out);
  static std::uint8_t calls;
  if (is("plan_not_pure")) out->numeric_id[0] = ++calls;
  if (is("plan_too_small")) out->weight_bytes = out->work_bytes = out->host_bytes = out->peak_load_bytes = 0, out->block_bytes[0] /= 4;
  return status;
}
mekik_status submit(mekik_exec* e, const mekik_batch* b, std::uint64_t* ticket) {
  mekik_batch other = *b;
  if (is("any_use")) other.uses = 0;
  static const mekik_batch* kept;
  if (is("kept_batch") && kept != nullptr && kept->n_tokens == 0) return MEKIK_E_INTERNAL;
  kept = b;
  const mekik_status status = base().submit(e, is("any_use") ? &other : b, ticket);
  if (status != MEKIK_OK) return status;
  if (is("same_ticket")) *ticket = 1;
  const std::size_t numbers = std::size_t{b->n_rows} * 4;
  if (is("rows_by_batch") && b->n_seqs > 1)
    for (std::size_t i = 0; i < numbers; ++i) b->logits[i] *= 1.0000002f;
  if (is("wrong_by_a_tenth"))
    for (std::size_t i = 0; i < numbers; ++i) b->logits[i] *= 1.1f;
  return status;
}
mekik_status wait(mekik_exec* e, std::uint64_t ticket, std::uint64_t timeout) {
  return is("any_ticket") || is("same_ticket") ? mekik_status{MEKIK_OK} : base().wait(e, ticket, timeout);
}
mekik_status state_read(mekik_exec* e, std::uint32_t what, std::uint32_t group, std::int32_t id, void* to, std::uint64_t bytes,
                        std::uint64_t* ticket) {
  const mekik_status status = base().state_read(e, what, group, is("other_block") && id > 0 ? id - 1 : id, to, bytes, ticket);
  return status;
}
mekik_status move(mekik_exec* e, const mekik_move* moves, std::uint32_t n, std::uint32_t size, std::uint64_t* ticket) {
  return base().move(e, moves, is("moves_nothing") ? 0 : n, size, ticket);
}

constexpr mekik_backend kTable = [] {
  mekik_backend t = Base::table;
  t.probe = probe;
  t.supports = supports;
  t.plan = plan;
  t.submit = submit;
  t.wait = wait;
  t.state_read = state_read;
  t.move = move;
  return t;
}();

constexpr mekik_component faulty() {
  mekik_component c = mekik::backend<Faulty>();
  c.table = &kTable;
  return c;
}

}  // namespace

MEKIK_PLUGIN("test.faulty", "1.0", faulty());
