#include "kinds/backend_session.hpp"

#include <numeric>

#include "support/heap.hpp"

namespace mekik::validate {

std::vector<std::int32_t> some_tokens(std::size_t n, std::uint64_t seed) {
  Random random{seed};
  std::vector<std::int32_t> tokens(n);
  for (auto& t : tokens) t = static_cast<std::int32_t>(random() % 62);  // 62 and 63 of the programs' vocabulary are NaN and infinite
  return tokens;
}

Device::Device(const WorkoutPlan& plan) : plan_{plan}, table_{table_of<mekik_backend>(plan.component)} {
  raw_ = create<mekik_device>(plan_, [&](auto host, auto config, auto out) {
    const HostScope scope;
    Lent lent{plan_.mode};
    const std::uint32_t* index = lent.in<std::uint32_t>("indices", {0});
    const PluginScope theirs;
    return table_.open(host, index, 1, config, out);
  });
}
Device::~Device() {
  if (raw_ != nullptr) call(plan_.mode, "close", [&] { table_.close(raw_); });
}

const mekik_program* lend_program(Lent& lent, test::ProgramBuilder& b) {
  const mekik_program& from = *b.get();
  std::vector<mekik_tensor> tensors(from.tensors, from.tensors + from.n_tensors);
  for (mekik_tensor& t : tensors) {
    t.name = lent.c_str("a tensor's name", t.name);
    t.scheme = lent.c_str("a tensor's scheme", t.scheme);
    if (t.form != nullptr) t.form = lent.one("mekik_form", *t.form);
  }
  std::vector<mekik_op> ops(from.ops, from.ops + from.n_ops);
  for (mekik_op& o : ops) {
    o.in = lent.in("operands", std::vector<std::uint32_t>(o.in, o.in + o.n_in));
    o.out = lent.in("results", std::vector<std::uint32_t>(o.out, o.out + o.n_out));
    o.ints = lent.in("ints", std::vector<std::int64_t>(o.ints, o.ints + o.n_ints));
    o.reals = lent.in("reals", std::vector<double>(o.reals, o.reals + o.n_reals));
  }
  mekik_program program = from;
  program.tensors = lent.rows("tensors", tensors, program.tensor_size);
  program.ops = lent.rows("ops", ops, program.op_size);
  return lent.one("mekik_program", program);
}

mekik_limits limits_for(test::ProgramBuilder& b, const SessionSizes& sizes) {
  mekik_limits l{};
  l.struct_size = sizeof l;
  l.max_tokens = l.max_rows = sizes.max_tokens;
  l.max_seqs = sizes.max_seqs;
  l.block_tokens = sizes.block_tokens;
  l.max_blocks = sizes.n_blocks;
  l.n_slots = b.has_slots() ? sizes.n_slots : 0;
  for (std::uint32_t g = 0; g < b.get()->n_groups; ++g) l.n_blocks[g] = sizes.n_blocks;
  return l;
}

bool Device::supports(test::ProgramBuilder& b, std::string* why) const {
  Lent lent{plan_.mode};
  const mekik_program* program = lend_program(lent, b);
  for (std::uint32_t i = 0; i < program->n_ops; ++i) {
    int answer = 0;
    Failure said;
    call(plan_.mode, "supports", [&] {
      answer = table_.supports(raw_, program, i);
      said = take_failure();
    });
    if (answer != 0 && answer != 1) rule("supports: answered " + std::to_string(answer) + "; 0 or 1 is right");
    if (answer == 1) continue;
    if (!said.said || said.why.empty()) rule("supports: answered 0 without saying why (" + describe_op(ProgramReader{*b.get()}, i) + ")");
    *why = describe_op(ProgramReader{*b.get()}, i) + ": " + said.why;
    return false;
  }
  return true;
}

Session::Session(Device& device, test::ProgramBuilder& b, const SessionSizes& sizes, bool weights)
    : device_{device}, mode_{device.plan().mode} {
  const mekik_program& raw = *b.get();
  n_groups_ = raw.n_groups;
  has_slots_ = b.has_slots();
  for (std::uint32_t i = 0; i < raw.n_tensors; ++i)
    if (raw.tensors[i].role == MEKIK_ROLE_OUTPUT) width_ = row_size(raw.tensors[i]);
  limits_ = limits_for(b, sizes);
  {
    Lent lent{mode_};
    const mekik_program* program = lend_program(lent, b);
    const mekik_limits* limits = lent.one("mekik_limits", limits_);
    std::uint32_t ignored = 0;
    mekik_plan* plan = lent.out_rows<mekik_plan>("mekik_plan", 1, ignored);
    plan->struct_size = sizeof(mekik_plan);
    if (!expect_ok(mode_, "plan", ask(mode_, "plan", [&] { return device.table().plan(device.raw(), program, limits, plan); }))) return;
    plan_ = *plan;
  }
  Lent lent{mode_};
  const mekik_program* program = lend_program(lent, b);
  const mekik_limits* limits = lent.one("mekik_limits", limits_);
  mekik_exec** out = lent.out<mekik_exec*>("compile's out", 1);
  *out = nullptr;
  const Answer a = ask(mode_, "compile", [&] { return device.table().compile(device.raw(), program, limits, out); });
  mekik_exec* made = *out;
  lent.end();
  if (!expect_ok(mode_, "compile", a)) return;
  if (made == nullptr) {
    rule("compile: answered OK and gave no program");
    return;
  }
  exec_ = made;
  if (weights) load(b);
}

Session::~Session() {
  if (exec_ != nullptr) call(mode_, "exec_free", [&] { device_.table().exec_free(exec_); });
}

namespace {

// What a backend asks of a weight's rows, looked at before it gets them.
struct Source {
  const test::TestWeight* weight;
  static mekik_status rows(void* self, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, const mekik_form_rows* out) {
    const HostScope scope;
    const auto& w = *static_cast<Source*>(self)->weight;
    const mekik_form& f = w.form();
    if (expert >= f.experts || n0 > n1 || n1 > f.n || n0 % f.row_step != 0 || (n1 % f.row_step != 0 && n1 != f.n))
      rule("weight: asks rows() for expert " + std::to_string(expert) + ", rows " + std::to_string(n0) + " to " + std::to_string(n1) +
           " of a weight of " + std::to_string(f.experts) + " x " + std::to_string(f.n) + " rows in steps of " +
           std::to_string(f.row_step));
    if (out == nullptr) return rule("weight: asks rows() for nothing"), MEKIK_E_INVALID;
    return w.rows(expert, n0, n1, *out);
  }
};

}  // namespace

void Session::load(test::ProgramBuilder& b) {
  for (const auto& [tensor, weight] : b.weights()) {
    Lent lent{mode_};
    Source source{weight.get()};
    mekik_weight w = weight->abi(tensor);
    mekik_form form = *w.form;
    w.form = lent.one("mekik_form", form);
    w.self = &source;
    w.rows = Source::rows;
    const mekik_weight* lent_weight = lent.one("mekik_weight", w);
    if (!expect_ok(mode_, "weight", ask(mode_, "weight", [&] { return device_.table().weight(exec_, lent_weight); }))) {
      call(mode_, "exec_free", [&] { device_.table().exec_free(exec_); });
      exec_ = nullptr;
      return;
    }
  }
}

Answer Session::wait(std::uint64_t ticket) {
  if (any_ticket_ && ticket <= last_)
    rule("submit: ticket " + std::to_string(ticket) + " came after " + std::to_string(last_) + "; tickets ascend");
  any_ticket_ = true;
  last_ = ticket;
  return ask(mode_, "wait", [&] { return device_.table().wait(exec_, ticket, 60'000'000'000); });
}

Answer Session::submit(const std::vector<StepPart>& parts, const Spoil& spoil, std::vector<float>* out) {
  std::vector<std::int32_t> tokens, positions, seq_start{0}, context, state_in, state_out, table(parts.size() * limits_.max_blocks, -1);
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const StepPart& p = parts[s];
    for (std::size_t i = 0; i < p.tokens.size(); ++i) {
      tokens.push_back(p.tokens[i]);
      positions.push_back(p.context + static_cast<std::int32_t>(i));
      state_out.push_back(i + 1 == p.tokens.size() ? p.state_out : -1);
    }
    seq_start.push_back(static_cast<std::int32_t>(tokens.size()));
    context.push_back(p.context);
    state_in.push_back(p.state_in);
    std::copy(p.blocks.begin(), p.blocks.end(), table.begin() + static_cast<std::ptrdiff_t>(s * limits_.max_blocks));
  }
  if (spoil.token != -1) tokens[0] = spoil.token;
  if (spoil.block != -2) table[0] = spoil.block;
  if (spoil.state != -2) state_in[0] = spoil.state;
  std::vector<std::int32_t> rows(tokens.size());
  std::iota(rows.begin(), rows.end(), 0);
  Lent lent{mode_};
  const std::vector<const std::int32_t*> tables(n_groups_, lent.in("a block table", table));
  mekik_batch raw{};
  raw.struct_size = sizeof raw;
  raw.n_tokens = raw.n_rows = static_cast<std::uint32_t>(tokens.size()) + spoil.more_tokens;
  raw.n_seqs = static_cast<std::uint32_t>(parts.size());
  raw.max_blocks = limits_.max_blocks;
  raw.n_axes = 1;
  raw.uses = spoil.uses;
  raw.token_ids = lent.in("token_ids", tokens);
  raw.positions = lent.in("positions", positions);
  raw.seq_start = lent.in("seq_start", seq_start);
  raw.context_len = lent.in("context_len", context);
  raw.blocks = lent.in("blocks", tables);
  raw.rows = lent.in("rows", rows);
  if (has_slots_) raw.state_in = lent.in("state_in", state_in), raw.state_out = lent.in("state_out", state_out);
  raw.logits = lent.out<float>("logits", tokens.size() * width_);
  const mekik_batch* batch = lent.one("mekik_batch", raw);
  std::uint64_t* ticket = lent.out<std::uint64_t>("ticket", 1);
  Answer a = ask(mode_, "submit", [&] { return device_.table().submit(exec_, batch, ticket); });
  if (!a.ok()) return a;
  a = wait(*ticket);
  if (a.ok() && out != nullptr) out->assign(raw.logits, raw.logits + tokens.size() * width_);
  return a;
}

std::vector<float> Session::step(const std::vector<StepPart>& parts) {
  std::vector<float> out;
  if (exec_ == nullptr) return out;
  expect_ok(mode_, "submit", submit(parts, {}, &out));
  return out;
}

Answer Session::state(bool write, std::uint32_t what, std::int32_t id, std::vector<std::uint8_t>& bytes) {
  Lent lent{mode_};
  std::uint64_t* ticket = lent.out<std::uint64_t>("ticket", 1);
  const void* from = write ? lent.in("state", bytes) : nullptr;
  auto* to = write ? nullptr : lent.out<std::uint8_t>("state", bytes.size());
  const char* name = write ? "state_write" : "state_read";
  Answer a = ask(mode_, name, [&] {
    return write ? device_.table().state_write(exec_, what, 0, id, from, bytes.size(), ticket)
                 : device_.table().state_read(exec_, what, 0, id, to, bytes.size(), ticket);
  });
  if (a.ok()) a = wait(*ticket);
  if (a.ok() && !write) bytes.assign(to, to + bytes.size());
  return a;
}

Answer Session::move(const std::vector<mekik_move>& moves) {
  Lent lent{mode_};
  std::uint64_t* ticket = lent.out<std::uint64_t>("ticket", 1);
  std::uint32_t stride = 0;
  const mekik_move* in = lent.rows("moves", moves, stride);
  Answer a = ask(mode_, "move", [&] { return device_.table().move(exec_, in, static_cast<std::uint32_t>(moves.size()), stride, ticket); });
  if (a.ok()) a = wait(*ticket);
  return a;
}

}  // namespace mekik::validate
