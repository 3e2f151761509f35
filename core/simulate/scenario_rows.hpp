// The keys of a scenario's own tables.
#pragma once
#include "config/table.hpp"

namespace mekik::simulate {

config::Rows scenario_rows();
config::Rows load_rows();
config::Rows cost_rows();

}  // namespace mekik::simulate
