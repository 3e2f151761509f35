// Checked tables of the core as what the engine and the server read.
#pragma once
#include "config/pipeline.hpp"
#include "config/table.hpp"

namespace mekik::config {

ServerUse server_of(const Table& table);
ModelUse model_of(const Table& table);

}  // namespace mekik::config
