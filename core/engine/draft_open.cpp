#include "engine/draft_open.hpp"

#include <algorithm>
#include <filesystem>

#include "base/text.hpp"
#include "config/table.hpp"

namespace mekik::engine {
namespace {

// The path that the drafter's options name; empty: it wants no model.
Result<std::string> path_of(const config::Pipeline& pipeline, plugin::Registry& registry) {
  if (!pipeline.draft) return std::string{};
  MEKIK_TRY(component, registry.find(*pipeline.draft));
  if ((component.table<mekik_drafter>().wants & MEKIK_WANT_MODEL) == 0) return std::string{};
  if (!pipeline.draft->options || pipeline.draft->options->find("model") == nullptr)
    return invalid("the drafter " + pipeline.draft->name + " wants a model, but has no option that names one");
  return std::string{pipeline.draft->options->text("model")};
}

config::Pipeline pipeline_of(const std::string& path, const config::Pipeline& pipeline, const MemoryPlan& plan) {
  config::Pipeline out = pipeline;
  out.model = {};
  out.model.path = path;
  out.model.dense = pipeline.model.dense;
  out.model.pages = pipeline.model.pages;
  out.model.prepared = pipeline.model.prepared;
  out.model.prepared_folder = pipeline.model.prepared_folder;
  out.model.origin = pipeline.draft->origin;
  out.draft.reset();
  out.max_drafts = 0;
  out.cache_bytes = 0;
  out.cache_tokens = std::max<std::uint64_t>(plan.pool_tokens, plan.context);
  return out;
}

// Whether a token means the same to both. Null: none. One may have tokens behind those of the other, as vocabularies are padded to some
// length: what only one has is neither followed nor proposed.
Status check_same_vocabulary(const text::Tokenizer* tokenizer, const text::Tokenizer* drafts, std::vector<std::string>& notes) {
  if (tokenizer == nullptr || drafts == nullptr)
    return invalid(std::string{tokenizer == nullptr ? "the model" : "the draft model"} +
                   " has no tokenizer, so nobody can tell whether both have the same vocabulary");
  for (std::uint32_t i = 0; i < std::min(tokenizer->size(), drafts->size()); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    if (tokenizer->token(id) != drafts->token(id))
      return invalid("token " + std::to_string(i) + " is " + mekik::quoted(std::string{drafts->token(id)}) + " for the draft model and " +
                     mekik::quoted(std::string{tokenizer->token(id)}) + " for the model; both must have the same vocabulary");
  }
  if (tokenizer->size() != drafts->size())
    notes.push_back("the draft model has " + std::to_string(drafts->size()) + " tokens, the model " + std::to_string(tokenizer->size()) +
                    "; those that both have are the same, and the others are not proposed");
  if (tokenizer->encode("a", true, false) != drafts->encode("a", true, false))
    notes.emplace_back("the draft model's file marks the beginning or end of a text in another way; the model's way holds for both");
  return {};
}

}  // namespace

Result<std::unique_ptr<Model>> open_draft(const config::Pipeline& pipeline, const Model& model, plugin::Registry& registry,
                                          const program::Pages& pages, std::vector<std::string>& notes) {
  MEKIK_TRY(path, path_of(pipeline, registry));
  if (path.empty()) return std::unique_ptr<Model>{};
  const auto wrong = [&](const std::string& what) { return config::misconfigured(pipeline, "[draft]", "model", what); };
  if (std::error_code error; !std::filesystem::exists(path, error)) return wrong("there is no file or folder " + path);
  auto draft = Model::open(pipeline_of(path, pipeline, model.plan()), registry, pages);
  if (!draft) return wrong(draft.status().text);
  if (const Status same = check_same_vocabulary(model.tokenizer(), (*draft)->tokenizer(), notes); !same.ok()) return wrong(same.text);
  if ((*draft)->task() != program::Task::generate) return wrong("the model is not made to generate text");
  if ((*draft)->program().n_slots > 0 || program::needs_whole_sequences((*draft)->program()))
    return wrong("the model keeps recurrent states, which cannot be taken back to an earlier token; take one that has none");
  const std::uint64_t both = model.plan().total() + (*draft)->plan().total();
  if (both > model.plan().budget_bytes)
    return wrong("both models need " + human_bytes(both) + ", and 85% of this machine are " + human_bytes(model.plan().budget_bytes) +
                 "; lower memory in [cache], or take a smaller draft model");
  for (const std::string& note : (*draft)->notes()) notes.push_back("draft model: " + note);
  if ((*draft)->context() < model.context())
    notes.push_back("the draft model follows texts of up to " + std::to_string((*draft)->context()) +
                    " tokens; longer ones run without drafts");
  return std::move(*draft);
}

}  // namespace mekik::engine
