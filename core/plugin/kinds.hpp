// The kinds of components that this engine knows, and what their tables must have.
#pragma once
#include <mekik/plugin.h>

#include <string>
#include <vector>

#include "base/status.hpp"

namespace mekik::plugin {

const std::vector<std::string>& kinds();  // "backend", "scheme", ...
// Whether a component can be used: identity, kind revision, table, required functions, option rows. `built_for` is its library's.
Status check_component(const mekik_component& component, const char* built_for);
// How a backend can store keys and values, the one that "auto" means first; of other kinds none.
std::vector<mekik_kv_form> kv_forms(const mekik_component& component);

}  // namespace mekik::plugin
