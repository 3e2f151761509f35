// From where a weight's numbers lie (WeightValue) to how a store makes them (WeightRecipe).
#pragma once
#include <string>

#include "program/model_reader.hpp"

namespace mekik::program {

// How an operation reads a weight: [n][k] with k its last size, one vector, or [experts][n][k].
enum class WeightUse { matrix, vector, experts };

// Row runs where whole rows can be moved without decoding, else parts. `scheme` is that of the tensor in the program; `note` is not
// empty when stored blocks have to be decoded at load.
WeightRecipe make_recipe(const WeightValue& weight, WeightUse use, const ModelMeta& meta, std::string& scheme, std::string& note);

}  // namespace mekik::program
