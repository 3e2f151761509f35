// Rotary frequencies from a recipe (linear, dynamic NTK, YaRN, LongRoPE, Llama 3), as the reference implementations compute them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "program/datum.hpp"

namespace mekik::program {

// Two of the kinds by name; the second divides by wavelength.
inline constexpr const char *kLongRope = "longrope", *kByWavelength = "llama3";

struct RopeRequest {
  std::int64_t dim = 0;  // an odd one turns one column more, at its own frequencies
  double base = 10000;
  double context = 0;              // positions the model was made for; 0: unknown
  double planned = 0;              // positions a sequence may have
  std::optional<double> original;  // said outside of the group, which it goes before
  std::optional<double> attention_factor;
  bool truncate = true;                                // of YaRN's ramp, unless the group says otherwise
  bool has_short_long = false;                         // LongRoPE's divisors are tensors of the file
  bool flat = false;                                   // GGUF: a factor without a kind is linear
  std::vector<std::pair<std::string, Datum>> scaling;  // the model's group of keys, either spelling; may be empty
};

struct RopeRecipe {
  std::vector<double> frequencies;  // [ceil(dim / 2)]
  double magnitude = 1;
  enum class Divide { nothing, by_short, by_long } divide = Divide::nothing;  // by which tensor of the file
  double reach = 0;    // positions to which dynamic scaling stretches the model's own; 0: it stretches none
  std::string choice;  // "longrope long": what was chosen by the planned length; empty: the table does not depend on it
};

// Whether some recipe knows a key of a scaling group.
bool rope_key_known(std::string_view key);

// Errors: an unknown kind or key, a missing or impossible number; the text names it.
Result<RopeRecipe> rope_recipe(const RopeRequest& request);

}  // namespace mekik::program
