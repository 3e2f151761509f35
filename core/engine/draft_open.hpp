// Opens the model of a drafter that wants one.
#pragma once
#include <memory>

#include "engine/model.hpp"

namespace mekik::engine {

// Null when the pipeline has no drafter, or one without a model. `model`: what it drafts for, whose pipeline, as it was given, is
// `pipeline`. Code::misconfigured when both do not fit together, or not into the machine; what differs and does no harm goes to `notes`.
Result<std::unique_ptr<Model>> open_draft(const config::Pipeline& pipeline, const Model& model, plugin::Registry& registry,
                                          const program::Pages& pages, std::vector<std::string>& notes);

}  // namespace mekik::engine
