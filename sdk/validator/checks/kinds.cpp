// Checks of single kinds that are more than a workout.
#include <thread>

#include "checks/checks.hpp"
#include "checks/runs.hpp"
#include "kinds/files.hpp"
#include "kinds/vocab.hpp"
#include "support/instance.hpp"
#include "support/traps.hpp"

namespace mekik::validate {

namespace {

// What a chain does to one row of logits; empty: it could not be made.
std::vector<float> chain_once(Subject& subject, const mekik_component& c, const Setting& setting, const std::string& request) {
  Mode mode;
  mode.hostile = true;
  const auto table = table_of<mekik_sampler>(c);
  const Vocabulary vocab{300};
  Config config{c, setting, subject.task().folder};
  Lent lent{mode};
  mekik_chain** out = lent.out<mekik_chain*>("create's out", 1);
  *out = nullptr;
  const mekik_str json = lent.text("request_json", request);
  const Answer a = ask(mode, "create", [&] { return table.create(subject.host().raw(), config.raw(), vocab.raw(), json, out); });
  config.end();
  if (!a.ok() || *out == nullptr) return {};
  mekik_chain* self = *out;
  std::vector<float> x(300);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 37) % 100) / 10 - 5;
  const std::int32_t* seen = lent.in<std::int32_t>("tokens", {5, 9, 5});
  call(mode, "accept", [&] { table.accept(self, seen, 3, 0); });
  float* logits = lent.inout("logits", x);
  const Answer applied = ask(mode, "apply", [&] { return table.apply(self, logits, 300, 0.5); });
  std::vector<float> result;
  if (applied.ok()) result.assign(logits, logits + x.size());
  call(mode, "destroy", [&] { table.destroy(self); });
  return result;
}

void request(const Task& task, const std::string& label) {
  Subject subject{task, Mode{}};
  const mekik_component& c = subject.component(label);
  const Setting defaults{"all defaults", {}};
  const auto plain = chain_once(subject, c, defaults, "{}");
  for (const Setting& setting : settings_of(c, task.folder)) {
    if (setting.values.empty()) continue;
    const auto& [key, value] = *setting.values.begin();
    for (const OptionRow& row : rows_of(c)) {
      if (key != row.raw.key || row.has(MEKIK_OPT_LIST) || row.raw.type == MEKIK_OPT_PATH || row.raw.type == MEKIK_OPT_SIZE ||
          row.raw.type == MEKIK_OPT_DURATION)
        continue;
      const bool text = row.raw.type == MEKIK_OPT_TEXT || row.raw.type == MEKIK_OPT_CHOICE;
      const auto by_option = chain_once(subject, c, setting, "{}");
      const auto by_request = chain_once(subject, c, defaults, "{\"" + key + "\":" + (text ? "\"" + value + "\"" : value) + "}");
      if (by_option.empty() || by_request.empty() || by_option == plain) continue;
      if (by_request == plain)
        fault("ignores the request's field \"" + key + "\", which is one of its options: " + key + " = " + value +
              " in the pipeline does something, in a request nothing");
    }
  }
  subject.deinit();
}

// [any]: meta, tensors and read from several threads at once.
void loader_threads(const Task& task, const std::string& label) {
  Subject subject{task, Mode{}};
  const mekik_component& c = subject.component(label);
  const auto table = table_of<mekik_loader>(c);
  const Mode mode;
  std::vector<SampleFile> files;
  for (const std::string& given : task.samples) files.push_back({given, given, true});
  for (const SampleFile& f : known_formats(task.folder)) files.push_back(f);
  bool any = false;
  for (const SampleFile& f : files) {
    mekik_model_file* model = nullptr;
    if (!ask(mode, "open",
             [&] {
               return table.open(subject.host().raw(), {f.path.data(), f.path.size()}, &model);
             })
             .ok() ||
        model == nullptr)
      continue;
    any = true;
    std::vector<std::thread> at_once;
    std::vector<std::string> seen(4);
    for (std::string& mine : seen)
      at_once.emplace_back([&] {
        const HostScope scope;
        signal_stack();
        for (int round = 0; round < 50; ++round) {
          mekik_str json{nullptr, 0};
          const char key[] = {'c', 'o', 'n', 'f', 'i', 'g'};
          if (ask(mode, "meta", [&] { return table.meta(model, {key, sizeof key}, &json); }).ok() && json.ptr != nullptr)
            mine.assign(json.ptr, json.len);
          const mekik_part* parts = nullptr;
          std::uint32_t n = 0, size = 0;
          if (!ask(mode, "tensors", [&] { return table.tensors(model, &parts, &n, &size); }).ok()) continue;
          for (std::uint32_t i = 0; i < std::min(n, 4u); ++i) {
            std::vector<std::uint8_t> bytes(std::min<std::uint64_t>(Lent::at(parts, i, size).bytes, 4096));
            ask(mode, "read", [&] { return table.read(model, i, 0, bytes.data(), bytes.size()); });
            mine.append(bytes.begin(), bytes.end());
          }
        }
      });
    for (std::thread& t : at_once) t.join();
    for (const std::string& other : seen)
      if (other != seen[0]) fault("meta, tensors and read give something else when several threads ask at once");
    call(mode, "close", [&] { table.close(model); });
  }
  if (!any) skip("opens none of the files that are known here; --sample FILE gives one");
  subject.deinit();
}

}  // namespace

std::vector<Check> kind_checks() {
  return {{"sampler.request", "honours its options in a request as in a pipeline", "sampler", request},
          {"loader.threads", "an open file may be read from several threads at once", "loader", loader_threads}};
}

}  // namespace mekik::validate
