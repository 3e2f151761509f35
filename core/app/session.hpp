// What the verbs share: the registry of plugins, the pages, and the way from an operand to an opened model.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/command_line.hpp"
#include "config/pipeline.hpp"
#include "engine/engine.hpp"
#include "engine/model.hpp"
#include "metrics/metrics.hpp"
#include "plugin/registry.hpp"
#include "program/page.hpp"
#include "text/answer/format.hpp"

namespace mekik::app {

// One per run of the program. Not thread-safe.
class Session {
 public:
  Session();

  metrics::Metrics& metrics() { return metrics_; }
  plugin::Registry& registry() { return registry_; }
  // Ours and those of more folders, which replace ours of the same name. Loaded at first use; throws Failure.
  const program::Pages& pages(const std::vector<std::string>& more);
  // How a model's answers are taken apart, by its template. Throws Failure when the formats have mistakes.
  text::AnswerFormat answer_format(const text::ChatTemplate& chat_template);

  // The pipeline that an operand means: a .toml file, or a model. Nothing when --print-config was asked for and printed.
  // Throws Failure (exit code 2) with every mistake.
  std::optional<config::Pipeline> pipeline(const Arguments& arguments, const std::string& operand);
  // Opens the model of a pipeline: checked, planned, not loaded. Throws Failure (exit code 1).
  std::unique_ptr<engine::Model> open(const config::Pipeline& pipeline);
  // Reads its weights. The plan and the notes go to the log before.
  void load(engine::Model& model);
  std::unique_ptr<engine::Engine> start(engine::Model& model);
  // An open file of the model that an operand (a pipeline or a model) names, for the verbs that need no backend.
  std::unique_ptr<weights::ModelFile> open_file(const Arguments& arguments, const std::string& operand);
  const program::Pages& pages_of_file() { return pages(file_use_.pages); }  // for the file that was opened last
  const std::string& page_of_file() const { return file_use_.page; }        // that its pipeline names; empty: none

 private:
  metrics::Metrics metrics_;
  plugin::Registry registry_;
  std::map<std::vector<std::string>, std::unique_ptr<program::Pages>> pages_;
  config::ModelUse file_use_;
  std::optional<text::AnswerFormats> formats_;
};

// The value of a Result, or its failure as exit code 1.
template <class T>
T need(Result<T> result) {
  if (!result.ok()) throw failed(result.status());
  return std::move(*result);
}
inline void need(const Status& status) {
  if (!status.ok()) throw failed(status);
}

// The text of a file named on the command line; one that does not exist is exit code 2.
std::string read_operand_file(const std::string& path);
std::string read_standard_input();  // to its end, with the same limit

}  // namespace mekik::app
