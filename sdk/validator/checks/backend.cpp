// Backends against the reference operations, and what they promise about rows, memory and refusals.
#include <cmath>
#include <cstring>

#include "checks/checks.hpp"
#include "checks/runs.hpp"
#include "kinds/backend_session.hpp"
#include "programs.hpp"

extern "C" const mekik_plugin mekik_plugin_v0_backend_reference;  // part of this program: the truth

namespace mekik::validate {

namespace {

struct Oracle {
  Oracle() : host{Mode{}} {
    const HostScope scope;
    mekik_plugin_v0_backend_reference.init(host.raw(), {"", 0});
  }
  Host host;
  const mekik_component& component() const { return *mekik_plugin_v0_backend_reference.component(0); }
};

// The device under test or the oracle's.
class Bench {
 public:
  Bench(const Task& task, const std::string& label)
      : runs_{task, label}, plan_{runs_.subject(), runs_.component(), runs_.mode(task.seed), {"all defaults", {}}} {
    mekik_device_info info{};
    info.struct_size = sizeof info;
    const mekik_backend table = table_of<mekik_backend>(plan_.component);
    if (!ask(plan_.mode, "probe", [&] { return table.probe(0, &info); }).ok()) return;
    info_ = info;
    device_ = std::make_unique<Device>(plan_);
    oracle_device_ = std::make_unique<Device>(WorkoutPlan{runs_.subject(), oracle_.component(), plan_.mode, {"all defaults", {}}});
    there_ = static_cast<bool>(*device_) && static_cast<bool>(*oracle_device_);
  }
  explicit operator bool() const {
    if (!there_) skip("there is no device of this backend here");
    return there_;
  }
  Device& device() { return *device_; }
  Device& oracle() { return *oracle_device_; }
  Runs& runs() { return runs_; }
  const mekik_device_info& info() const { return info_; }
  void close() {
    device_.reset();
    oracle_device_.reset();
    runs_.close();
  }

 private:
  Oracle oracle_;
  Runs runs_;
  WorkoutPlan plan_;
  mekik_device_info info_{};
  std::unique_ptr<Device> device_, oracle_device_;
  bool there_ = false;
};

StepPart part(const std::vector<std::int32_t>& all, std::int32_t a, std::int32_t b, std::vector<std::int32_t> blocks, std::int32_t slot) {
  return {{all.begin() + a, all.begin() + b}, a, std::move(blocks), a == 0 ? -1 : slot, slot};
}

std::vector<float> run_few(Device& device, test::ProgramBuilder& b, bool whole) {
  Session session{device, b};
  const auto first = some_tokens(12, 7), second = some_tokens(12, 8);
  std::vector<float> all;
  const auto add = [&](const std::vector<StepPart>& parts) {
    const auto rows = session.step(parts);
    all.insert(all.end(), rows.begin(), rows.end());
  };
  add({part(first, 0, 7, {5, 2, 9}, 3), part(second, 0, 3, {1, 0, 7}, 0)});
  if (whole) return all;
  add({part(second, 3, 10, {1, 0, 7}, 0), part(first, 7, 8, {5, 2, 9}, 3)});
  add({part(first, 8, 9, {5, 2, 9}, 3), part(second, 10, 11, {1, 0, 7}, 0)});
  return all;
}

// Largest difference in units of the row's largest value, or of the typical one, and the relative error of all.
std::pair<double, double> differences(const std::vector<float>& got, const std::vector<float>& truth, std::size_t width) {
  if (got.size() != truth.size()) return {INFINITY, INFINITY};
  double wrong = 0, all = 0, squares = 1e-12, numbers = 1, worst = 0;
  for (const float x : truth)
    if (std::isfinite(x)) squares += static_cast<double>(x) * x, ++numbers;
  for (std::size_t row = 0; row < truth.size() / width; ++row) {
    double largest = std::sqrt(squares / numbers);
    for (std::size_t j = 0; j < width; ++j) largest = std::fmax(largest, std::fabs(truth[row * width + j]));
    for (std::size_t j = 0; j < width; ++j) {
      const double a = got[row * width + j], b = truth[row * width + j];
      if (std::isnan(a) != std::isnan(b)) return {INFINITY, INFINITY};
      if (a == b || std::isnan(a)) continue;
      worst = std::fmax(worst, std::fabs(a - b) / largest);
      wrong += (a - b) * (a - b), all += b * b;
    }
  }
  return {worst, all > 0 ? std::sqrt(wrong / all) : worst};
}

void compare_case(Bench& bench, const test::OpCase& c) {
  test::ProgramBuilder b{11};
  const auto [rows, size] = c.build(b);
  test::finish(b, rows, size);
  std::string why;
  now_calling(c.name);
  if (!bench.device().supports(b, &why)) {
    if (c.every_backend && c.name.find("_head") == std::string::npos && c.name.find("bf16") == std::string::npos)
      fault("lacks an operation that every backend has: " + c.name + " (" + why + ")");
    return;
  }
  const auto got = run_few(bench.device(), b, c.whole), truth = run_few(bench.oracle(), b, c.whole);
  const auto [worst, relative] = differences(got, truth, static_cast<std::size_t>(size));
  // Activations rounded to eight bits are within a percent; what computes something else is not.
  if (!(relative < 0.03))
    fault(c.name + ": differs from the reference by " + std::to_string(relative) + " of the whole, " + std::to_string(worst) +
          " of a row's largest value");
}

void devices(const Task& task, const std::string& label) {
  Subject subject{task, Mode{}};
  const auto table = table_of<mekik_backend>(subject.component(label));
  const Mode mode;
  const auto probe = [&](std::uint32_t i, mekik_device_info& info) {
    Lent lent{mode};
    std::uint32_t stride = 0;
    mekik_device_info* out = lent.out_rows<mekik_device_info>("mekik_device_info", 1, stride);
    out->struct_size = sizeof *out;
    const Answer a = ask(mode, "probe", [&] { return table.probe(i, out); });
    info = *out;
    return a;
  };
  std::uint32_t n = 0;
  mekik_device_info info{};
  for (; n < 64; ++n) {
    const Answer a = probe(n, info);
    if (!a.ok()) {
      if (a.code != MEKIK_E_INVALID) fault("probe: answered " + std::string{code_name(a.code)} + " past the last device; INVALID is right");
      break;
    }
    const std::string which = "device " + std::to_string(n);
    if (std::memchr(info.name, 0, sizeof info.name) == nullptr || std::memchr(info.uid, 0, sizeof info.uid) == nullptr)
      fault(which + " has a name or uid without an end");
    else if (info.name[0] == '\0') fault(which + " has no name");
    if (info.bytes_free > info.bytes_total) fault(which + " has more bytes free than it has");
    if (info.alignment == 0 || (info.alignment & (info.alignment - 1)) != 0)
      fault(which + " has an alignment of " + std::to_string(info.alignment));
    if (info.device_kind < MEKIK_DEVICE_CPU || info.device_kind > MEKIK_DEVICE_OTHER)
      fault(which + " is of the kind " + std::to_string(info.device_kind));
    if ((info.caps & ~std::uint64_t{31}) != 0) fault(which + " has capabilities that mean nothing");
  }
  if (probe(0xFFFFFFFFu, info).ok()) fault("probe: answered OK for device 4294967295");
  WorkoutPlan plan{subject, subject.component(label), Mode{}, {"all defaults", {}}};
  Config config{plan.component, plan.setting, task.folder};
  const std::uint32_t past = n + 5;
  mekik_device* device = nullptr;
  if (ask(mode, "open", [&] { return table.open(subject.host().raw(), &past, 1, config.raw(), &device); }).ok())
    fault("open: answered OK for device " + std::to_string(past) + " of " + std::to_string(n));
  subject.deinit();
}

void operations(const Task& task, const std::string& label) {
  Bench bench{task, label};
  if (!bench) return;
  for (const auto& cases : {test::basic_cases(), test::composite_cases(), test::family_cases(), test::expert_cases(),
                            test::recurrent_cases(), test::latent_cases(), test::encoder_cases()})
    for (const test::OpCase& c : cases) compare_case(bench, c);
  bench.close();
}

void forms(const Task& task, const std::string& label) {
  Bench bench{task, label};
  if (!bench) return;
  for (const std::string& form : test::form_names()) {
    const std::uint64_t step = test::form_multiple(form);
    for (const auto& [n, blocks] : {std::pair<std::uint64_t, std::uint64_t>{1, 1}, {17, 3}}) {
      test::OpCase c = test::linear_case(form, n, step == 1 ? blocks * 37 : blocks * step);
      c.every_backend = form == "f32" || form == "q8_0";
      compare_case(bench, c);
    }
  }
  bench.close();
}

// Alone, in a batch, in pieces: bits where rows are invariant, close where they are not.
void rows(const Task& task, const std::string& label) {
  Bench bench{task, label};
  if (!bench) return;
  const bool invariant = (bench.info().caps & MEKIK_CAP_ROW_INVARIANT) != 0;
  for (const char* form : {"f32", "q8_0", "q4_0"}) {
    test::ProgramBuilder b{5};
    test::build_llama(b, form, "f16", 0);
    std::string why;
    if (!bench.device().supports(b, &why)) continue;
    const auto mine = some_tokens(11, 3), others = some_tokens(20, 4);
    Session session{bench.device(), b};
    if (!session.ready()) break;
    const auto alone = session.step({part(mine, 0, 11, {5, 2, 9}, 0)});
    std::vector<float> cut;
    for (std::int32_t at = 0; at < 11;) {
      const std::int32_t to = std::min(11, at + 1 + at % 4);
      const bool last = at % 2 == 0;  // behind the rows of another sequence, or before them
      std::vector<StepPart> parts{part(others, at, at + 3, {30, 31, 32, 33, 34, 35}, 1), part(others, at, at + 1, {40, 41, 42, 43, 44}, 2)};
      parts.insert(parts.begin() + (last ? 1 : 0), part(mine, at, to, {6, 3, 8}, 0));
      const auto rows = session.step(parts);
      const std::size_t width = session.width(), first = last ? 3 : 0;
      if (rows.empty()) break;
      cut.insert(cut.end(), rows.begin() + static_cast<std::ptrdiff_t>(first * width),
                 rows.begin() + static_cast<std::ptrdiff_t>((first + static_cast<std::size_t>(to - at)) * width));
      at = to;
    }
    const auto [worst, relative] = differences(cut, alone, session.width());
    if (invariant && (cut.size() != alone.size() || std::memcmp(cut.data(), alone.data(), cut.size() * sizeof(float)) != 0))
      fault(std::string{"says that its rows are invariant, but a sequence in a batch, in pieces, is not what it is alone ("} + form + ", " +
            std::to_string(worst) + " of a row's largest value)");
    else if (!(relative < 0.03))
      fault(std::string{"a sequence in a batch, in pieces, is another than alone ("} + form + ", " + std::to_string(relative) +
            " of the whole)");
  }
  bench.close();
}

void supports(const Task& task, const std::string& label) {
  Bench bench{task, label};
  if (!bench) return;
  const mekik_backend& table = bench.device().table();
  const Mode mode;
  for (const unsigned change : {0u, 1u, 2u, 3u}) {
    test::ProgramBuilder b{7};
    const auto x = test::random_rows(b, {8}), y = b.temp({test::kT, 8});
    std::vector<std::uint32_t> in{x};
    std::vector<double> reals{0.5, 0};
    if (change == 2) reals.push_back(1);
    if (change == 3) in.push_back(x);
    b.op(change == 1 ? 9999u : std::uint32_t{op::scale}, in, {y}, {}, reals);
    test::finish(b, y, 8);
    Lent lent{mode};
    const mekik_program* program = lend_program(lent, b);
    int first = 0, second = 0;
    Failure said;
    call(mode, "supports", [&] {
      first = table.supports(bench.device().raw(), program, 1);
      said = take_failure();
      second = table.supports(bench.device().raw(), program, 1);
      take_failure();
    });
    if (first != second) fault("supports: answers differently when it is asked again");
    if (change == 0) {
      if (first != 1) fault("supports: lacks scale, which every backend has: " + said.why);
      continue;
    }
    static constexpr const char* kWhat[] = {"", "an operation that does not exist", "an attribute too many", "an operand too many"};
    if (first == 1) fault(std::string{"supports: answered 1 for "} + kWhat[change]);
    else if (!said.said) fault(std::string{"supports: answered 0 without saying why for "} + kWhat[change]);
    const mekik_limits limits = limits_for(b, {});
    mekik_exec* exec = nullptr;
    const Answer a = ask(mode, "compile", [&] { return table.compile(bench.device().raw(), program, &limits, &exec); });
    if (a.ok()) {
      fault(std::string{"compile: answered OK for a program with "} + kWhat[change]);
      if (exec != nullptr) call(mode, "exec_free", [&] { table.exec_free(exec); });
    }
  }
  bench.close();
}

// plan() is pure, and no more host memory is taken than it said.
void memory(const Task& task, const std::string& label) {
  Bench bench{task, label};
  if (!bench) return;
  const mekik_backend& table = bench.device().table();
  const Mode mode;
  test::ProgramBuilder b{5};
  test::build_llama(b, "q8_0", "f16", 0);
  const SessionSizes sizes{.max_tokens = 256, .n_blocks = 512};
  const auto plan_of = [&](const mekik_limits& l) {
    Lent lent{mode};
    std::uint32_t ignored = 0;
    mekik_plan* out = lent.out_rows<mekik_plan>("mekik_plan", 1, ignored);
    out->struct_size = sizeof *out;
    const mekik_program* program = lend_program(lent, b);
    const mekik_limits* limits = lent.one("mekik_limits", l);
    expect_ok(mode, "plan", ask(mode, "plan", [&] { return table.plan(bench.device().raw(), program, limits, out); }));
    return *out;
  };
  mekik_limits limits = limits_for(b, sizes), unknown = limits;
  std::memset(unknown.n_blocks, 0, sizeof unknown.n_blocks);
  const mekik_plan first = plan_of(unknown), second = plan_of(limits), third = plan_of(limits);
  if (std::memcmp(&second, &third, sizeof second) != 0) fault("plan: answers differently when it is asked again");
  if (first.block_bytes[0] == 0 || first.block_bytes[0] != second.block_bytes[0])
    fault("plan: block_bytes are " + std::to_string(first.block_bytes[0]) + " while n_blocks is 0, and " +
          std::to_string(second.block_bytes[0]) + " after");
  if (second.max_in_flight == 0) fault("plan: max_in_flight is 0");
  const auto zeros = [](const std::uint8_t* id) { return std::all_of(id, id + 32, [](std::uint8_t x) { return x == 0; }); };
  if (zeros(second.layout_id) || zeros(second.numeric_id)) fault("plan: layout_id or numeric_id is all zeros");
  mekik_limits larger = limits;
  larger.block_tokens *= 2;
  if (plan_of(larger).block_bytes[0] <= second.block_bytes[0]) fault("plan: a block of twice as many tokens takes no more bytes");
  Host& host = bench.runs().subject().host();
  const std::int64_t before = host.bytes();
  host.reset_peak();
  {
    Session session{bench.device(), b, sizes};
    session.step({part(
        some_tokens(200, 2), 0, 200,
        [] {
          std::vector<std::int32_t> blocks;
          for (std::int32_t i = 0; i < 50; ++i) blocks.push_back(i);
          return blocks;
        }(),
        0)});
    const auto said = static_cast<std::int64_t>(second.weight_bytes + second.peak_load_bytes + second.work_bytes + second.host_bytes +
                                                second.block_bytes[0] * sizes.n_blocks) +
                      (1 << 20);
    if (host.peak_bytes() - before > said)
      fault("takes " + std::to_string(host.peak_bytes() - before) + " bytes of mekik.memory/1, " + std::to_string(said) +
            " are what its plan says, and a MiB");
  }
  if (host.bytes() > before) fault("exec_free: " + std::to_string(host.bytes() - before) + " bytes of mekik.memory/1 are still held");
  bench.close();
}

}  // namespace

std::vector<Check> backend_checks() {
  return {{"backend.devices", "probe describes its devices and ends", "backend", devices},
          {"backend.operations", "every operation meets the reference", "backend", operations},
          {"backend.forms", "linear meets the reference in every form of weights", "backend", forms},
          {"backend.rows", "a sequence is the same in a batch, in pieces and alone", "backend", rows},
          {"backend.supports", "supports is pure, says why, and compile agrees", "backend", supports},
          {"backend.memory", "plan is pure, and what it says is kept to", "backend", memory}};
}

}  // namespace mekik::validate
