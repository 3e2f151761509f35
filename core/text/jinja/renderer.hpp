// Walks a parsed template.
#pragma once
#include "text/jinja/ast.hpp"

namespace mekik::text::jinja {

// `variables`: the context. Throws TemplateError; one with a known place names it. [any thread, each with its own budget]
Text render(const Body& body, std::unordered_map<std::string, Value> variables, Budget& budget);

}  // namespace mekik::text::jinja
