// Unit tests with the fake host of the SDK: no engine, no model.
#include <mekik/program.hpp>
#include <mekik/testing_kinds.hpp>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace mekik::testing;
namespace fs = std::filesystem;

#define CHECK(x)                                                       \
  if (!(x)) throw std::runtime_error {                                 \
      std::string{__FILE__} + ":" + std::to_string(__LINE__) + ": " #x \
    }

// A component of this project's build, by its kind and name.
struct Plugin {
  Plugin(const char* kind, const std::string& name)
      : library{std::string{MEKIK_PLUGIN_FOLDER "/"} + std::string{kind}.substr(6, std::string{kind}.find('/') - 6) + "_" + name + ".so",
                host},
        component{library.component(kind, name)} {
    host.configure(component);
  }
  FakeHost host;
  Library library;
  const mekik_component& component;
};

void shortest_first() {
  Plugin p{MEKIK_KIND_SCHEDULER, "shortest"};
  Scheduler s{p.host, p.component};
  // A step of 64 tokens: who decodes, then the prompt of 10, then a part of the one of 100.
  auto plan = s.plan({waiting(1, 100, 1), waiting(2, 10, 2), decoding(3)}, {.max_tokens = 64});
  CHECK(plan.size() == 3 && plan[0].seq == 2 && plan[0].tokens == 1);
  CHECK(plan[1].seq == 1 && plan[1].tokens == 10 && plan[2].seq == 0 && plan[2].tokens == 53);
  // After ten seconds the long one goes first.
  plan = s.plan({waiting(1, 100, 1), waiting(2, 10, 9'000'000'000)}, {.max_tokens = 64, .now_ns = 10'500'000'000});
  CHECK(plan.size() == 1 && plan[0].seq == 0 && plan[0].tokens == 64);
}

void csv_rows() {
  const fs::path path = fs::temp_directory_path() / "mekik-unit.csv";
  fs::remove(path);
  Plugin p{MEKIK_KIND_SINK, "csv"};
  {
    p.host.options().set("path", path.string());
    Sink s{p.host, p.component};
    s.event("request_finished", {text_field("id", "r1"), number_field("prompt_tokens", 7), number_field("total_seconds", 0.5)});
  }
  std::stringstream text;
  text << std::ifstream{path}.rdbuf();
  CHECK(text.str() == "r1,,7,,,0.5\n");
  p.host.options().set("path", "/nowhere/at/all.csv");
  try {
    Sink s{p.host, p.component};
    CHECK(!"a file that cannot be opened is refused");
  } catch (const Failed& e) {
    CHECK(std::string{e.what()}.find("path") != std::string::npos);
  }
}

void int8_rows_is_exact() {
  Plugin p{MEKIK_KIND_SCHEME, "int8_rows"};
  const float scales[] = {0.5f, 0.1f};
  Stored stored;
  stored.add("x.weight", MEKIK_I8, {2, 3}, {1, 255, 127, 128, 0, 5})
      .add("x.weight_scale", MEKIK_F32, {2},
           {reinterpret_cast<const std::uint8_t*>(scales), reinterpret_cast<const std::uint8_t*>(scales + 2)});
  const Scheme scheme{p.component};
  const mekik_parts parts = stored.parts(1, 2, 3);
  std::int64_t shape[4];
  std::uint32_t rank = 0;
  CHECK(scheme.table().claims(&parts) == 100);
  check(scheme.table().shape(&parts, shape, &rank));
  CHECK(rank == 2 && shape[0] == 2 && shape[1] == 3);
  CHECK((scheme.decode(parts) == std::vector<float>{0.5f, -0.5f, 63.5f, 0.1f * -128, 0, 0.1f * 5}));
  CHECK(scheme.decode(parts) == scheme.decode_form(parts));
}

void npy_folder() {
  const fs::path folder = fs::temp_directory_path() / "mekik-unit-npy";
  fs::create_directories(folder);
  std::ofstream{folder / "config.json"} << R"({"hidden_size": 2})";
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }";
  header.resize(117, ' ');
  std::ofstream{folder / "a.weight.npy", std::ios::binary} << std::string{"\x93NUMPY\x01\0\x76\0", 10} << header << '\n'
                                                           << std::string(12, '\1');
  Plugin p{MEKIK_KIND_LOADER, "npy"};
  Loader loader{p.host, p.component, folder.string()};
  CHECK(loader.meta("format") == "\"hf\"" && loader.meta("config") == R"({"hidden_size": 2})");
  const auto tensors = loader.tensors();
  CHECK(tensors.size() == 1 && tensors[0].name == std::string{"a.weight"} && tensors[0].rank == 2 && tensors[0].shape[0] == 3);
  CHECK(loader.read(0, 4, 8) == std::vector<std::uint8_t>(8, 1));
  try {
    loader.read(0, 8, 8);
    CHECK(!"what lies behind a tensor is not read");
  } catch (const Failed& e) {
    CHECK(e.code == MEKIK_E_INVALID);
  }
}

void least_used_goes() {
  Plugin p{MEKIK_KIND_CACHE, "lfu"};
  Cache cache{p.host, p.component};
  std::vector<mekik_node> nodes(3);
  for (std::uint32_t i = 0; i < 3; ++i) nodes[i].bytes = 100, nodes[i].uses = 3 - i, nodes[i].last_use_ns = i;
  CHECK(cache.victims(nodes, 150) == (std::vector<std::uint32_t>{2, 1}));
  CHECK(cache.victims(nodes, 0).empty());
}

void no_run_twice() {
  Plugin p{MEKIK_KIND_SAMPLER, "no_repeat"};
  const Vocab vocab{{"a", "b", "c"}};
  Sampler s{p.host, p.component, vocab, R"({"no_repeat_ngram_size":2})"};
  s.accept({0, 1}, true);
  s.accept({0}, false);
  const auto logits = s.apply({1, 1, 1});
  CHECK(logits[0] == 1 && std::isinf(logits[1]) && logits[2] == 1);  // "a b" was there
}

void banned_in_c() {
  Plugin p{MEKIK_KIND_SAMPLER, "ban"};
  p.host.options().set("ban_from", "2");
  const Vocab vocab{{"a", "b", "c"}};
  CHECK(std::isinf(Sampler(p.host, p.component, vocab).apply({1, 1, 1})[2]));
  CHECK(std::isinf(Sampler(p.host, p.component, vocab, R"({"ban_from":1})").apply({1, 1, 1})[1]));
}

void says_it_again() {
  Plugin p{MEKIK_KIND_DRAFTER, "again"};
  const Vocab vocab{{"a", "b", "c", "d"}};
  Drafter d{p.host, p.component, vocab};
  CHECK((d.propose({0, 1, 2, 3, 0, 1}, 3) == std::vector<std::int32_t>{2, 3, 0}));
  CHECK(d.propose({0, 1, 2, 3}, 3).empty());
}

void has_a_device() {
  if (!fs::exists(MEKIK_PLUGIN_FOLDER "/backend_thin.so")) return;  // OpenSSL was not there
  Plugin p{MEKIK_KIND_BACKEND, "thin"};
  const auto& table = *static_cast<const mekik_backend*>(p.component.table);
  mekik_device_info info{};
  info.struct_size = sizeof info;
  check(table.probe(0, &info));
  CHECK(info.device_kind == MEKIK_DEVICE_CPU && table.probe(1, &info) == MEKIK_E_INVALID);
  mekik_device* device = nullptr;
  const std::uint32_t first = 0;
  check(table.open(p.host.get(), &first, 1, p.host.config(), &device));
  table.close(device);
  CHECK(p.host.bytes_in_use() == 0);
}

int main() {
  int failed = 0;
  const std::pair<const char*, void (*)()> tests[] = {{"scheduler shortest", shortest_first},
                                                      {"sink csv", csv_rows},
                                                      {"scheme int8_rows", int8_rows_is_exact},
                                                      {"loader npy", npy_folder},
                                                      {"cache lfu", least_used_goes},
                                                      {"sampler no_repeat", no_run_twice},
                                                      {"sampler ban", banned_in_c},
                                                      {"drafter again", says_it_again},
                                                      {"backend thin", has_a_device}};
  for (const auto& [name, test] : tests) {
    try {
      test();
      std::printf("ok      %s\n", name);
    } catch (const std::exception& e) {
      ++failed;
      std::printf("FAILED  %s: %s\n", name, e.what());
    }
  }
  return failed == 0 ? 0 : 1;
}
