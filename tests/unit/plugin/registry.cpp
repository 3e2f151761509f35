#include "plugin/registry.hpp"

#include <filesystem>
#include <fstream>

#include "base/files.hpp"
#include "base/text.hpp"
#include "config/core_rows.hpp"
#include "plugin/static.hpp"
#include "support/catch.hpp"
#include "support/paths.hpp"

using namespace mekik;
namespace fs = std::filesystem;

namespace {

struct Fixture {
  metrics::Metrics metrics;
  test::TemporaryDirectory scratch;
  plugin::Registry registry{{test::build_directory() / "lib" / "mekik", {}, 2}, metrics};
};

bool shared() { return plugin::static_entries().empty(); }

}  // namespace

TEST_CASE_METHOD(Fixture, "A component is found by kind and name, with the table of its kind") {
  const auto found = registry.find("cache", "none");
  INFO(found.status().text);
  REQUIRE(found.ok());
  CHECK(std::string{found->raw->kind} == MEKIK_KIND_CACHE);
  CHECK(found->table<mekik_cache_policy>().victims != nullptr);
  CHECK((found->library == "(built in)") != shared());
  CHECK(registry.find("cache", "none")->raw == found->raw);
  CHECK(std::string{found->host->name} == "mekik");
}

TEST_CASE_METHOD(Fixture, "A component that does not exist: what is installed, and what was meant") {
  const auto found = registry.find("cache", "nome");
  REQUIRE_FALSE(found.ok());
  CHECK(found.status().code == Code::invalid);
  CHECK(found.status().text.find("there is no cache \"nome\"; did you mean \"none\"? Installed: none") == 0);
  CHECK(registry.find("cash", "none").status().text.find("there is no cash \"none\"; none is installed") == 0);
}

TEST_CASE_METHOD(Fixture, "Everything installed is listed") {
  std::vector<std::string> problems;
  bool none = false;
  for (const auto& component : registry.installed(&problems))
    if (config::kind_of(component.raw->kind) == "cache" && std::string{component.raw->name} == "none") none = true;
  CHECK(none);
}

TEST_CASE_METHOD(Fixture, "The same file reached by another path is loaded once") {
  if (!shared()) return;
  const fs::path file = test::build_directory() / "lib" / "mekik" / "cache_none.so";
  fs::create_symlink(fs::absolute(file), scratch.path() / "cache_other.so");
  const auto first = registry.find("cache", "none");
  REQUIRE(first.ok());
  config::Use use;
  use.kind = "cache";
  use.name = "none";
  use.file = (scratch.path() / "cache_other.so").string();
  const auto second = registry.find(use);
  INFO(second.status().text);
  REQUIRE(second.ok());
  CHECK(second->raw == first->raw);
}

TEST_CASE_METHOD(Fixture, "sha256 pins a library") {
  if (!shared()) return;
  const fs::path file = test::build_directory() / "lib" / "mekik" / "cache_none.so";
  const std::string digest = sha256_hex(*read_file(file));
  config::Use use;
  use.kind = "cache";
  use.name = "none";
  use.sha256 = std::string(64, '0');
  CHECK(registry.find(use).status().text == fs::weakly_canonical(file).string() + ": has the SHA-256 " + digest + ", not " + use.sha256);
  use.sha256 = digest;
  CHECK(registry.find(use).ok());
  use.file = file.string();
  CHECK(registry.find(use).ok());
}

TEST_CASE("Libraries are looked up in the install, then [plugins] dirs, then MEKIK_PLUGIN_PATH, never in the working directory") {
  if (!shared()) return;
  metrics::Metrics metrics;
  test::TemporaryDirectory scratch;
  const fs::path install = scratch.path() / "install", extra = scratch.path() / "extra", dirs = scratch.path() / "dirs";
  for (const fs::path& path : {install, extra, dirs}) fs::create_directory(path);
  const fs::path file = test::build_directory() / "lib" / "mekik" / "cache_none.so";
  const fs::path before = fs::current_path();
  {
    fs::copy_file(file, scratch.path() / "cache_none.so");
    fs::current_path(scratch.path());
    plugin::Registry registry{{install, {extra, "", "."}, 1}, metrics};
    CHECK_FALSE(registry.find("cache", "none").ok());
    fs::current_path(before);
  }
  fs::copy_file(file, extra / "cache_none.so");
  {
    plugin::Registry registry{{install, {extra}, 1}, metrics};
    CHECK(registry.find("cache", "none")->library == (extra / "cache_none.so").string());
  }
  fs::copy_file(file, dirs / "cache_none.so");
  {
    plugin::Registry registry{{install, {extra}, 1}, metrics};
    CHECK(registry.add({}, {dirs.string()}).ok());
    CHECK(registry.find("cache", "none")->library == (dirs / "cache_none.so").string());
    CHECK(registry.add({}, {(dirs / "absent").string()}).text == (dirs / "absent").string() + ": no such folder");
    CHECK(registry.add({"absent"}, {}).text == "there is no library absent.so in the plugin folders");
  }
  fs::copy_file(file, install / "cache_none.so");
  {
    plugin::Registry registry{{install, {extra}, 1}, metrics};
    REQUIRE(registry.add({}, {dirs.string()}).ok());
    CHECK(registry.find("cache", "none")->library == (install / "cache_none.so").string());
  }
}

TEST_CASE_METHOD(Fixture, "Two files with one plugin id are an error that names both") {
  if (!shared()) return;
  const fs::path file = test::build_directory() / "lib" / "mekik" / "cache_none.so", copy = scratch.path() / "cache_none.so";
  fs::copy_file(file, copy);
  REQUIRE(registry.find("cache", "none").ok());
  config::Use use;
  use.kind = "cache";
  use.name = "none";
  use.file = copy.string();
  CHECK(registry.find(use).status().text ==
        copy.string() + " and " + fs::weakly_canonical(file).string() + " both have the plugin id \"mekik.cache.none\"");
}
