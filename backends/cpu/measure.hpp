// For `mekik bench`: what the machine can do at most.
#pragma once
#include <mekik/plugin.h>

#include <cstdint>

namespace mekik::cpu {

struct Device;

// By all threads of the device, half a second or so. `bytes`: how much memory is read, 1 GiB at most. Throws Error{MEKIK_E_NO_MEMORY}.
mekik_roof measure_roof(Device& device, std::uint64_t bytes);

}  // namespace mekik::cpu
