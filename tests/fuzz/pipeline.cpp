// A pipeline file, two files that it may extend (b.toml, c.toml), and --set texts, between zero bytes: a pipeline or complaints. What is
// accepted can be printed, and what is printed means the same; a key called api_key is never shown.
#include <algorithm>

#include "base/text.hpp"
#include "files.hpp"
#include "support/components.hpp"

namespace {

using namespace mekik;
using fuzz::require;

const fuzz::Folder& folder() {
  static const fuzz::Folder made;
  return made;
}

void check_complaints(const config::Diagnostics& diagnostics) {
  const std::string text = diagnostics.render();
  require(is_utf8(text));
  require(diagnostics.ok() || !text.empty());
  for (const config::Diagnostic& one : diagnostics.all()) {
    require(!one.message.empty());
    if (one.at.source)
      require(one.at.line <= static_cast<std::uint32_t>(std::count(one.at.source->text.begin(), one.at.source->text.end(), '\n')) + 1);
  }
}

// Secrets are printed as asterisks, and paths as absolute ones, so only the printed forms are equal.
void check_printed(const config::Pipeline& pipeline) {
  const std::string printed = config::print_pipeline(pipeline);
  require(is_utf8(printed));
  for (const config::Setting& setting : pipeline.settings) {
    if (setting.key != "api_key" && setting.key != "api_keys") continue;
    for (const std::string& key : pipeline.server.api_keys)
      require(key.find_first_of("*123456789") != std::string::npos || setting.value.find(key) == std::string::npos);
  }
  test::FakeComponents components;
  config::Diagnostics diagnostics;
  const auto again = config::load_pipeline(folder().write("printed.toml", printed), {}, components, diagnostics);
  require(again.has_value() && again->settings.size() == pipeline.settings.size());
  for (std::size_t i = 0; i < again->settings.size(); ++i) {
    require(again->settings[i].table == pipeline.settings[i].table && again->settings[i].key == pipeline.settings[i].key);
    require(again->settings[i].value == pipeline.settings[i].value);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto texts = fuzz::pieces({reinterpret_cast<const char*>(data), size});
  const std::string path = folder().write("a.toml", texts[0]);
  folder().write("b.toml", texts.size() > 1 ? texts[1] : "");
  folder().write("c.toml", texts.size() > 2 ? texts[2] : "");
  std::vector<config::Override> overrides;
  for (std::size_t i = 3; i < texts.size() && i < 16; ++i) overrides.push_back({std::string{texts[i]}});
  test::FakeComponents components;
  config::Diagnostics diagnostics;
  const auto pipeline = config::load_pipeline(path, overrides, components, diagnostics);
  check_complaints(diagnostics);
  require(pipeline.has_value() == diagnostics.ok());
  if (pipeline) check_printed(*pipeline);
  config::Diagnostics more;
  check_complaints((config::default_pipeline(path, overrides, components, more), more));
  return 0;
}
