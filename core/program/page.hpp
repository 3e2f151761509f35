// Architecture pages: finding the page of a model, and building its program. The language: docs/architecture-pages.md.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "config/value.hpp"
#include "program/model_meta.hpp"
#include "program/program.hpp"
#include "program/transcript.hpp"

namespace mekik::program {

// What pool(x, kind) knows, in the order of the kinds of op_pool.
const std::vector<std::string>& poolings();

struct BuildOptions {
  std::vector<std::string> outputs{"logits"};  // empty: the one that `task` means
  // generate: logits; embed: embedding; score: score, or logits where the page has none. automatic: score where the model has what makes
  // it; embedding where there are no logits, or where the model itself says how it pools; else logits.
  Task task = Task::automatic;
  std::string pooling;        // what the page's symbol "pooling" is to be instead: one of poolings()
  std::uint64_t context = 0;  // planned tokens a sequence; 0: the model's own. LongRoPE and dynamic NTK choose by it, once
  std::string kv = "f16";     // scheme of STATE tensors
  std::string page;           // by name; empty: the page that matches
};

// All pages under the given directories. Any thread.
class Pages {
 public:
  // Later directories override pages of the same name. Mistakes of any page are in `diagnostics`. Before them comes `installed`, whose
  // pages are read when a model needs them, so that their mistakes are those of build().
  static std::unique_ptr<Pages> load(const std::vector<std::filesystem::path>& directories, config::Diagnostics& diagnostics,
                                     const std::filesystem::path& installed = {});
  ~Pages();
  std::vector<std::string> names() const;
  // Builds the (not yet folded) program of a model: page found, hyperparameters read, every shape of every layer checked against the
  // tensor headers, unused tensors reported. Touches no weights. Failures: all of them rendered with file, line and column.
  Result<Program> build(const ModelMeta& model, const BuildOptions& options) const;
  // The same model in `format` ("gguf", "hf"), by the page turned around. What cannot be said there is an error that names it; that both
  // are one model is checked by building the program of the result, too. `page`: as in BuildOptions.
  Result<Transcript> transcribe(const ModelMeta& model, const std::string& format, const ReadVector& read,
                                const std::string& page = {}) const;

 private:
  struct Impl;
  explicit Pages(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace mekik::program
