// The output for one sequence, computed directly, without the engine's loop: for `mekik logits`, `mekik embed` and tests.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/model.hpp"

namespace mekik::engine {

// Runs `tokens` from an empty state in steps of the model's limits. Gives the output's row (logits [vocab], or a vector) of the last
// position, or of each position in order when `all`, to `on_row`; `all` is for logits. The model must be loaded and have no engine running.
// Code::invalid for tokens outside the vocabulary and for more tokens than the context holds.
Status evaluate(Model& model, std::span<const std::int32_t> tokens, bool all, const std::function<void(std::span<const float>)>& on_row);

}  // namespace mekik::engine
