// What the host says about libraries that are wrong in one way each (misbehaving.c), and that it survives them.
#include <mekik/version.h>

#include <cfloat>
#include <filesystem>
#include <fstream>

#include "base/files.hpp"
#include "plugin/registry.hpp"
#include "support/catch.hpp"
#include "support/paths.hpp"

using namespace mekik;
namespace fs = std::filesystem;

namespace {

struct Fixture {
  fs::path folder = fs::weakly_canonical(test::build_directory() / MEKIK_MISBEHAVING_FOLDER);
  metrics::Metrics metrics;
  test::TemporaryDirectory scratch;
  plugin::Registry registry{{folder, {}, 1}, metrics};

  // What is said of the library, without its path in front.
  std::string complaint(const std::string& name, const std::string& kind = "cache") {
    const auto found = registry.find(kind, name);
    if (found.ok()) return "";
    const std::string path = (folder / (kind + "_" + name + ".so")).string() + ": ", text = found.status().text;
    return text.substr(0, path.size()) == path ? text.substr(path.size()) : text;
  }
  std::string complaint_of_file(const std::string& bytes) {
    config::Use use;
    use.kind = "cache";
    use.name = "x";
    use.file = (scratch.path() / "x.so").string();
    std::ofstream{use.file, std::ios::binary} << bytes;
    const auto found = registry.find(use);
    REQUIRE_FALSE(found.ok());
    return found.status().text.substr(use.file.size() + 2);
  }
};

bool subnormals_work() {
  volatile float tiny = FLT_MIN;
  volatile float half = tiny * 0.5f;
  return half != 0.0f;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "The good one loads") { CHECK(complaint("good").empty()); }

TEST_CASE_METHOD(Fixture, "The entry") {
  CHECK(complaint("major") == "built for ABI major 1, this engine speaks 0; build it again with this engine's headers");
  CHECK(registry.find("cache", "major").status().code == Code::unsupported);
  CHECK(complaint("symbol") == "is not a mekik plugin: it has no symbol mekik_plugin_v0");
  CHECK(complaint("magic") == "its entry does not begin with the magic number of a mekik plugin");
  CHECK(complaint("short") == "its entry has 24 bytes, the first revision already has 88");
  CHECK(complaint("null") == "its entry lacks an id or a function");
  CHECK(complaint("init") == "init failed: the moon is not full");
}

TEST_CASE_METHOD(Fixture, "Components") {
  CHECK(complaint("mismatch") == "has no cache \"mismatch\"; it has cache \"other\"");
  CHECK(complaint("count") == "it counts 4000000000 components; at most 4096");
  CHECK(complaint("component") == "component 0 of 1 is not there");
  CHECK(complaint("short_table") ==
        "cache \"short_table\" cannot be used: its function table has 16 bytes, the first revision of mekik.cache/1 already has 72");
  CHECK(complaint("no_function") == "cache \"no_function\" cannot be used: its function table lacks victims");
  CHECK(complaint("half_tier") ==
        "cache \"half_tier\" cannot be used: its slower tier is incomplete: has, store, fetch and cancel go together");
  CHECK(complaint("core_key") == "cache \"core_key\" cannot be used: option 'block_tokens' is a key of the core in this kind of table");
  CHECK(complaint("stride") == "cache \"stride\" cannot be used: options have rows of 16 bytes; the first revision already has 72");
  CHECK(complaint("revision") == "cache \"revision\" cannot be used: it is of kind mekik.cache/2, this engine speaks mekik.cache/1");
  CHECK(complaint("kind") == "has no cache \"kind\"; it has nothing that can be used");
  CHECK(complaint("draft", "drafter") ==
        "drafter \"draft\" cannot be used: the kind mekik.drafter/0 is a draft, and its library is built for engine version \"0.0.1\", "
        "this one is " MEKIK_VERSION);
}

TEST_CASE_METHOD(Fixture, "A library that changes the floating-point mode is refused, each time, and the mode is put back") {
  for (const char* name : {"mode", "fast_math"}) {
    if (!fs::exists(folder / ("cache_" + std::string{name} + ".so"))) continue;
    for (int again = 0; again < 2; ++again)
      CHECK(complaint(name) == "changes the floating-point mode when it is loaded; link it without -ffast-math (and -Ofast)");
    CHECK(subnormals_work());
  }
  CHECK(complaint("rounding") == "changes the floating-point mode when it is initialised");
  CHECK(subnormals_work());
  volatile float one = 1.0f, least = FLT_MIN;
  CHECK(one + least == 1.0f);
}

TEST_CASE_METHOD(Fixture, "Files that are no libraries") {
  const std::string good = *read_file(folder / "cache_good.so");
  CHECK(complaint_of_file("") == "is not an ELF file, so not a plugin");
  CHECK(complaint_of_file("#!/bin/sh\n") == "is not an ELF file, so not a plugin");
  CHECK(complaint_of_file(good.substr(0, 40)) == "is truncated: its headers speak of more than its 40 bytes");
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{1000}, good.size() / 2, good.size() - 1})
    CHECK(complaint_of_file(good.substr(0, bytes)) ==
          "is truncated: its headers speak of more than its " + std::to_string(bytes) + " bytes");
  std::string other = good;
  other[18] = 8;  // e_machine: MIPS
  CHECK(complaint_of_file(other) == "is built for another kind of machine");
  config::Use use;
  use.kind = "cache";
  use.name = "x";
  use.file = (scratch.path() / "absent.so").string();
  CHECK(registry.find(use).status().text == use.file + ": no such file");
  use.file = scratch.path().string();
  CHECK(registry.find(use).status().text == use.file + ": is not a regular file");
}

TEST_CASE_METHOD(Fixture, "Headers with any byte wrong end in an answer, not in a crash") {
  const std::string good = *read_file(folder / "cache_good.so");
  config::Use use;
  use.kind = "cache";
  use.name = "x";
  for (std::size_t at = 18; at < 64; ++at) {
    // The table of segments, the entry point and the flags are the dynamic loader's business.
    if (at >= 20 && at < 40) continue;
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x81);
    use.file = (scratch.path() / (std::to_string(at) + ".so")).string();  // one that was loaded must not be written again
    std::ofstream{use.file, std::ios::binary} << bytes;
    const auto found = registry.find(use);
    if (at < 48 || at >= 56) CHECK_FALSE(found.ok());
  }
}

TEST_CASE_METHOD(Fixture, "A listing names each problem once and goes on") {
  std::vector<std::string> problems;
  bool good = false;
  for (const auto& component : registry.installed(&problems)) good = good || std::string{component.raw->name} == "good";
  CHECK(good);
  CHECK(problems.size() >= 17);
}

TEST_CASE("The SDK's version is the project's") { CHECK(std::string{MEKIK_VERSION} == MEKIK_PROJECT_VERSION); }
