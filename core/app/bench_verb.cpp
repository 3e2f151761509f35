// bench: how fast a model runs here, and how near to what the machine can do.
#include <charconv>
#include <cstdio>
#include <ctime>

#include "app/session.hpp"
#include "app/verbs.hpp"
#include "base/text.hpp"
#include "bench/report.hpp"

namespace mekik::app {
namespace {

constexpr std::uint32_t kMostTokens = 1u << 20, kMostSequences = 4096, kMostRuns = 1000;

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// "512,2048": numbers from `least` on.
std::vector<std::uint32_t> list_of(const Arguments& arguments, const char* option, std::uint32_t least, std::uint32_t most) {
  std::vector<std::uint32_t> out;
  const std::string& text = arguments.text(option);
  for (const char *at = text.data(), *end = at + text.size(); !text.empty();) {
    std::uint32_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || (next != end && *next != ',') || number < least || number > most)
      throw misused("--" + std::string{option} + ": give whole numbers from " + std::to_string(least) + " to " + std::to_string(most) +
                    " with commas between them, not " + mekik::quoted(text));
    out.push_back(number);
    if (next == end) break;
    at = next + 1;
  }
  return out;
}

std::vector<bench::Test> tests_of(const Arguments& arguments) {
  std::vector<std::uint32_t> prefill, decode, depths, sequences;
  Mistakes mistakes;
  mistakes.in([&] { prefill = list_of(arguments, "prefill", 1, kMostTokens); });
  mistakes.in([&] { decode = list_of(arguments, "decode", 1, kMostTokens); });
  mistakes.in([&] { depths = list_of(arguments, "depth", 0, kMostTokens); });
  mistakes.in([&] { sequences = list_of(arguments, "sequences", 1, kMostSequences); });
  if (!mistakes.any()) {
    if (prefill.empty() && decode.empty()) mistakes.in([] { throw misused("nothing to measure: --prefill and --decode are both empty"); });
    if (depths.empty()) depths = {0};
    if (sequences.empty()) sequences = {1};
  }
  mistakes.tell();
  std::vector<bench::Test> out;
  for (const std::uint32_t many : sequences)
    for (const std::uint32_t depth : depths) {
      for (const std::uint32_t n : prefill) out.push_back({bench::Test::Kind::prefill, n, depth, many});
      for (const std::uint32_t n : decode) out.push_back({bench::Test::Kind::decode, n, depth, many});
    }
  return out;
}

// Of a number, by what the scheme says of its blocks; of a scheme that has none, what the packed weights take on average.
bench::BytesOf bytes_of(plugin::Registry& registry, const engine::Model& model) {
  double numbers = 0;
  for (const auto& tensor : model.program().tensors) {
    if (tensor.role != MEKIK_ROLE_WEIGHT) continue;
    double n = 1;
    for (const auto size : tensor.shape) n *= static_cast<double>(size);
    numbers += n;
  }
  const double average = numbers > 0 ? static_cast<double>(model.plan().weight_bytes) / numbers : 0;
  return [&registry, average](const std::string& scheme) {
    if (scheme == "f32") return 4.0;
    if (scheme == "f16" || scheme == "bf16") return 2.0;
    if (scheme == "q8_head") return 1.0;
    if (scheme == "q4_head") return 0.5;
    const auto found = registry.find("scheme", scheme);
    if (!found) return average;
    const auto& table = found->table<mekik_scheme>();
    return table.block_elems == 0 ? average : static_cast<double>(table.block_bytes) / table.block_elems;
  };
}

std::optional<mekik_roof> roof_of(const engine::Model& model) {
  const mekik_backend_measure* measure = model.measure();
  if (measure == nullptr) return {};
  mekik_roof roof{};
  roof.struct_size = sizeof roof;
  need(plugin::to_status(measure->roof(model.opened_device(), model.plan().weight_bytes, &roof), "backend: roof"));
  return roof;
}

int run_bench(const Arguments& arguments) {
  const auto tests = tests_of(arguments);
  const auto runs = static_cast<std::uint32_t>(*whole_number(arguments, "runs", 1, kMostRuns));
  Session session;
  const auto pipeline = session.pipeline(arguments, arguments.operands[0]);
  if (!pipeline) return kSuccess;
  const auto model = session.open(*pipeline);
  if (model->task() != program::Task::generate)
    throw failed(unsupported(model->name() + " is not run to generate text, and bench measures nothing else"));
  if (arguments.flag("ops") && model->measure() == nullptr)
    throw failed(unsupported("the backend " + pipeline->backend.name + " does not say where its time goes (--ops)"));
  need(bench::check(tests, *model));
  session.load(*model);
  bench::Report report;
  report.machine = bench::this_machine();
  report.started = now_utc();
  report.version = MEKIK_VERSION;
  report.load_before = bench::load();
  report.model = model.get();
  report.bytes_of = bytes_of(session.registry(), *model);
  report.roof = roof_of(*model);
  report.outcomes = need(bench::run(tests, runs, arguments.flag("ops"), session.registry(), *model));
  if (report.roof) {  // before and after: machines change
    const mekik_roof after = *roof_of(*model);
    report.roof->bytes = std::max(report.roof->bytes, after.bytes);
    report.roof->int8_products = std::max(report.roof->int8_products, after.int8_products);
    report.roof->f32_products = std::max(report.roof->f32_products, after.f32_products);
  }
  report.load_after = bench::load();
  if (arguments.flag("json")) std::puts(json::serialize(bench::to_json(report)).c_str());
  else std::fputs(bench::to_text(report).c_str(), stdout);
  return kSuccess;
}

}  // namespace

const Verb kBench{"bench",
                  "MODEL-OR-PIPELINE",
                  "How fast a model reads prompts and answers, and how near that is to what the machine can do.",
                  "mekik bench model.gguf --prefill 512,2048 --decode 128 --depth 0,4096 --sequences 1,8",
                  [](po::options_description& o) {
                    o.add_options()                                                                                                      //
                        ("prefill", po::value<std::string>()->default_value("512"), "tokens of prompts to read; \"\": none")             //
                        ("decode", po::value<std::string>()->default_value("128"), "tokens of answers to make; \"\": none")              //
                        ("depth", po::value<std::string>()->default_value("0"), "tokens that are there before, each with each")          //
                        ("sequences", po::value<std::string>()->default_value("1"), "how many at once, each with each")                  //
                        ("runs", po::value<std::string>()->default_value("5"), "of each test, in turns, after one that is not counted")  //
                        ("ops", po::bool_switch(), "also where the time goes, by operation")                                             //
                        ("json", po::bool_switch(), "the report as JSON");
                  },
                  1,
                  1,
                  true,
                  run_bench};

}  // namespace mekik::app
