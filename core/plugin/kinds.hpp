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

}  // namespace mekik::plugin
