#include "session.hpp"

#include <cstring>
#include <numeric>
#include <stdexcept>

#include "support/paths.hpp"
#ifdef MEKIK_TEST_STATIC
#include "plugin/static.hpp"
#endif

namespace mekik::test {

namespace {

std::unique_ptr<testing::Library> load(const std::string& name, testing::FakeHost& host) {
  const std::string file = "backend_" + name;
#ifdef MEKIK_TEST_STATIC
  for (const auto& entry : plugin::static_entries())
    if (entry.name == file) return std::make_unique<testing::Library>(entry.entry, file, host);
  throw std::runtime_error{file + " is not part of this program"};
#else
  return std::make_unique<testing::Library>((build_directory() / "lib" / "mekik" / (file + ".so")).string(), host);
#endif
}

}  // namespace

Backend::Backend(const std::string& name, const std::vector<std::string>& settings)
    : library_{load(name, host_)},
      component_{&library_->component(MEKIK_KIND_BACKEND, name)},
      table_{static_cast<const mekik_backend*>(component_->table)},
      name_{name} {
  host_.configure(*component_);
  for (const std::string& s : settings) {
    const std::size_t at = s.find('=');
    host_.options().set(s.substr(0, at), s.substr(at + 1));
  }
}

bool Backend::row_invariant() const {
  mekik_device_info info{};
  info.struct_size = sizeof info;
  return table_->probe(0, &info) == MEKIK_OK && (info.caps & MEKIK_CAP_ROW_INVARIANT) != 0;
}

std::unique_ptr<mekik_device, void (*)(mekik_device*)> Backend::open() {
  const std::uint32_t first = 0;
  mekik_device* device = nullptr;
  if (table_->open(host_.get(), &first, 1, host_.config(), &device) != MEKIK_OK)
    throw std::runtime_error{"open: " + testing::FakeHost::take_failure()};
  return {device, table_->close};
}

Session::Session(Backend& backend, ProgramBuilder& builder, const Sizes& sizes) : backend_{backend}, device_{backend.open()} {
  const mekik_program* program = builder.get();
  n_groups_ = program->n_groups;
  has_slots_ = builder.has_slots();
  for (std::uint32_t i = 0; i < program->n_tensors; ++i)
    if (program->tensors[i].role == MEKIK_ROLE_OUTPUT) width_ = row_size(program->tensors[i]);
  limits_.struct_size = sizeof limits_;
  limits_.max_tokens = limits_.max_rows = sizes.max_tokens;
  limits_.max_seqs = sizes.max_seqs;
  limits_.block_tokens = sizes.block_tokens;
  limits_.max_blocks = sizes.n_blocks;
  limits_.n_slots = has_slots_ ? sizes.n_slots : 0;
  for (std::uint32_t g = 0; g < n_groups_; ++g) limits_.n_blocks[g] = sizes.n_blocks;
  plan_.struct_size = sizeof plan_;
  check(backend.table().plan(device_.get(), program, &limits_, &plan_), "plan");
  check(backend.table().compile(device_.get(), program, &limits_, &exec_), "compile");
  for (const auto& [tensor, weight] : builder.weights()) {
    const mekik_weight w = weight->abi(tensor);
    check(backend.table().weight(exec_, &w), "weight");
  }
}

Session::~Session() {
  if (exec_ != nullptr) backend_.table().exec_free(exec_);
}

void Session::check(mekik_status status, const std::string& what) const {
  if (status != MEKIK_OK)
    throw std::runtime_error{backend_.name() + ": " + what + " answers " + std::to_string(status) + ": " +
                             testing::FakeHost::take_failure()};
}

std::unique_ptr<Session::Batch> Session::batch(const std::vector<Part>& parts) const {
  auto b = std::make_unique<Batch>();
  b->seq_start.push_back(0);
  b->table.assign(parts.size() * limits_.max_blocks, -1);
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const Part& p = parts[s];
    for (std::size_t i = 0; i < p.tokens.size(); ++i) {
      b->tokens.push_back(p.tokens[i]);
      b->positions.push_back(p.context + static_cast<std::int32_t>(i));
      b->state_out.push_back(i + 1 == p.tokens.size() ? p.state_out : -1);
    }
    b->seq_start.push_back(static_cast<std::int32_t>(b->tokens.size()));
    b->context.push_back(p.context);
    b->state_in.push_back(p.state_in);
    std::copy(p.blocks.begin(), p.blocks.end(), b->table.begin() + static_cast<std::ptrdiff_t>(s * limits_.max_blocks));
  }
  b->rows.resize(b->tokens.size());
  std::iota(b->rows.begin(), b->rows.end(), 0);
  b->tables.assign(n_groups_, b->table.data());
  b->logits.assign(b->tokens.size() * width_, 0.0f);
  mekik_batch& raw = b->raw;
  raw.struct_size = sizeof raw;
  raw.n_tokens = raw.n_rows = static_cast<std::uint32_t>(b->tokens.size());
  raw.n_seqs = static_cast<std::uint32_t>(parts.size());
  raw.max_blocks = limits_.max_blocks;
  raw.n_axes = 1;
  raw.token_ids = b->tokens.data();
  raw.positions = b->positions.data();
  raw.seq_start = b->seq_start.data();
  raw.context_len = b->context.data();
  raw.blocks = b->tables.data();
  raw.rows = b->rows.data();
  if (has_slots_) raw.state_in = b->state_in.data(), raw.state_out = b->state_out.data();
  raw.logits = b->logits.data();
  return b;
}

mekik_status Session::submit(const mekik_batch& raw, std::uint64_t* out) {
  std::uint64_t ticket = 0;
  const mekik_status status = backend_.table().submit(exec_, &raw, &ticket);
  if (status != MEKIK_OK) return status;
  if (out != nullptr) *out = ticket;
  return backend_.table().wait(exec_, ticket, 60'000'000'000);
}

std::vector<float> Session::step(const std::vector<Part>& parts) {
  const auto b = batch(parts);
  check(submit(b->raw), "submit");
  return std::move(b->logits);
}

void Session::fill_states(std::uint8_t byte) {
  std::uint64_t ticket = 0;
  const auto fill = [&](std::uint32_t what, std::uint32_t group, std::uint32_t n, std::uint64_t bytes) {
    const std::vector<std::uint8_t> data(bytes, byte);
    for (std::uint32_t i = 0; i < n; ++i) {
      check(backend_.table().state_write(exec_, what, group, static_cast<std::int32_t>(i), data.data(), bytes, &ticket), "state_write");
      check(backend_.table().wait(exec_, ticket, 60'000'000'000), "wait");
    }
  };
  for (std::uint32_t g = 0; g < n_groups_; ++g) fill(MEKIK_WHAT_BLOCK, g, limits_.n_blocks[g], plan_.block_bytes[g]);
  fill(MEKIK_WHAT_SLOT, 0, limits_.n_slots, plan_.slot_bytes);
}

bool supports_all(Backend& backend, ProgramBuilder& builder, std::string* why) {
  const auto device = backend.open();
  const mekik_program* program = builder.get();
  for (std::uint32_t i = 0; i < program->n_ops; ++i)
    if (backend.table().supports(device.get(), program, i) == 0) {
      *why = describe_op(ProgramReader{*program}, i) + ": " + testing::FakeHost::take_failure();
      return false;
    }
  return true;
}

}  // namespace mekik::test
