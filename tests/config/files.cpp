// bad/*.toml: a line "#> text" is a line of the exact complaint, "#set x=y" is a --set. good/*.toml: nothing to complain about.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/files.hpp"
#include "support/catch.hpp"
#include "support/components.hpp"
#include "support/paths.hpp"

using namespace mekik;
namespace fs = std::filesystem;

namespace {

struct Case {
  std::string name, expected;
  std::vector<config::Override> overrides;
};

std::vector<Case> cases_in(const fs::path& folder) {
  std::vector<Case> out;
  for (const auto& entry : fs::directory_iterator{folder}) {
    if (entry.path().extension() != ".toml") continue;
    Case one;
    one.name = entry.path().filename().string();
    std::istringstream lines{*read_file(entry.path())};
    for (std::string line; std::getline(lines, line);) {
      if (line.compare(0, 3, "#> ") == 0) one.expected += line.substr(3) + "\n";
      if (line.compare(0, 5, "#set ") == 0) one.overrides.push_back({line.substr(5)});
    }
    out.push_back(std::move(one));
  }
  std::sort(out.begin(), out.end(), [](const Case& a, const Case& b) { return a.name < b.name; });
  return out;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) text.replace(at, what.size(), by);
  return text;
}

// Relative names in the messages: they are as the user gave them.
class WorkingDirectory {
 public:
  explicit WorkingDirectory(const fs::path& path) : before_{fs::current_path()} { fs::current_path(path); }
  ~WorkingDirectory() { fs::current_path(before_); }

 private:
  fs::path before_;
};

}  // namespace

TEST_CASE("Each bad pipeline gets exactly its complaints") {
  const WorkingDirectory inside{test::source_directory() / "tests" / "config" / "bad"};
  const auto cases = cases_in(".");
  CHECK(cases.size() >= 25);
  for (const Case& one : cases) {
    test::FakeComponents components;
    config::Diagnostics diagnostics;
    const auto pipeline = config::load_pipeline(one.name, one.overrides, components, diagnostics);
    INFO(one.name);
    CHECK_FALSE(one.expected.empty());
    CHECK_FALSE(pipeline.has_value());
    CHECK(replaced(diagnostics.render(), fs::current_path().string(), "@DIR@") == one.expected);
  }
}

TEST_CASE("Good pipelines load without a complaint") {
  const WorkingDirectory inside{test::source_directory() / "tests" / "config" / "good"};
  for (const Case& one : cases_in(".")) {
    test::FakeComponents components;
    config::Diagnostics diagnostics;
    const auto pipeline = config::load_pipeline(one.name, one.overrides, components, diagnostics);
    INFO(one.name);
    INFO(diagnostics.render());
    CHECK(diagnostics.all().empty());
    CHECK(pipeline.has_value());
  }
}
