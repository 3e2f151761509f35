#include "app/session.hpp"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "base/files.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace mekik::app {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostOperandBytes = 64u << 20;

plugin::Registry::Options registry_options() {
  plugin::Registry::Options options;
  options.directory = plugin_directory();
  if (const char* extra = std::getenv("MEKIK_PLUGIN_PATH"))
    for (const std::string& part : split(extra, ':'))
      if (!part.empty()) options.extra.emplace_back(part);
  options.threads = std::max(1u, std::thread::hardware_concurrency());
  return options;
}

// A path of the command line that is not there is a mistake of the command line; one that may not be looked at, of the file.
void need_path(const std::string& path) {
  const Status found = find_path(path);
  if (!found.ok()) throw Failure{found.code == Code::invalid ? kMisused : kFailed, path + ": " + found.text};
}

bool is_pipeline(const std::string& operand) { return fs::path{operand}.extension() == ".toml"; }

}  // namespace

Session::Session() : registry_{registry_options(), metrics_} {}

const program::Pages& Session::pages(const std::vector<std::string>& more) {
  if (const auto found = pages_.find(more); found != pages_.end()) return *found->second;
  config::Diagnostics diagnostics;
  auto loaded = program::Pages::load({more.begin(), more.end()}, diagnostics, data_directory() / "architectures");
  if (!diagnostics.ok()) throw Failure{kFailed, diagnostics.render(), true};
  return *(pages_[more] = std::move(loaded));
}

text::AnswerFormat Session::answer_format(const text::ChatTemplate& chat_template) {
  if (!formats_) {
    config::Diagnostics diagnostics;
    formats_ = text::AnswerFormats::load(data_directory() / "formats", diagnostics);
    if (!diagnostics.ok()) throw Failure{kFailed, diagnostics.render(), true};
  }
  return text::format_of(chat_template, *formats_);
}

std::optional<config::Pipeline> Session::pipeline(const Arguments& arguments, const std::string& operand) {
  need_path(operand);
  std::vector<config::Override> overrides;
  for (const std::string& text : arguments.overrides()) overrides.push_back({text});
  config::Diagnostics diagnostics;
  auto loaded = is_pipeline(operand) ? config::load_pipeline(operand, overrides, registry_, diagnostics)
                                     : config::default_pipeline(operand, overrides, registry_, diagnostics);
  if (!diagnostics.ok() || !loaded) throw Failure{kMisused, diagnostics.render(), true};
  if (!diagnostics.all().empty()) log::warning("config", diagnostics.render());
  if (arguments.flag("print-config")) {
    std::fputs(config::print_pipeline(*loaded).c_str(), stdout);
    return std::nullopt;
  }
  if (loaded->threads > 0) registry_.set_threads(loaded->threads);
  return loaded;
}

std::unique_ptr<engine::Model> Session::open(const config::Pipeline& pipeline) {
  return need(engine::Model::open(pipeline, registry_, pages(pipeline.model.pages)));
}

void Session::load(engine::Model& model) {
  log::info("model", model.name() + ": " + model.plan().render());
  for (const std::string& note : model.notes()) log::info("model", note);
  pages_.clear();  // what opening took and the program, once built, does not need: back to the system
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
  need(model.load());
}

std::unique_ptr<engine::Engine> Session::start(engine::Model& model) {
  engine::Engine::Options options;
  options.max_queue = model.pipeline().server.max_queue;
  return need(engine::Engine::start(model, registry_, metrics_, options));
}

std::unique_ptr<weights::ModelFile> Session::open_file(const Arguments& arguments, const std::string& operand) {
  std::string path = operand, loader;
  need_path(operand);
  // --set and --print-config mean the pipeline, also the one that a model alone stands for.
  if (is_pipeline(operand) || !arguments.overrides().empty() || arguments.flag("print-config")) {
    const auto loaded = pipeline(arguments, operand);
    if (!loaded) throw Failure{kSuccess, {}};
    path = loaded->model.path;
    loader = loaded->model.loader;
    file_use_ = loaded->model;
  }
  return need(weights::ModelFile::open(registry_, path, loader));
}

std::string read_operand_file(const std::string& path) {
  need_path(path);
  return need(read_file(path, kMostOperandBytes));
}

std::string read_standard_input() {
  std::string text;
  char buffer[1 << 16];
  while (std::cin.read(buffer, sizeof buffer) || std::cin.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(std::cin.gcount()));
    if (text.size() > kMostOperandBytes)
      throw Failure{kFailed, "standard input has more than " + std::to_string(kMostOperandBytes >> 20) + " MiB; give less text"};
  }
  return text;
}

}  // namespace mekik::app
