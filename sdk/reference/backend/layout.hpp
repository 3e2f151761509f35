// Where everything of a program goes: activations in one arena, state rows in blocks, recurrent states in slots.
#pragma once
#include <mekik/plugin.hpp>
#include <mekik/program.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace mekik::reference_backend {

inline constexpr std::uint64_t kAllRows = ~std::uint64_t{0};

struct Layout {
  std::vector<std::uint64_t> offset;        // by tensor, bytes: TEMP and OUTPUT in the arena, STATE in a block, SLOT in a slot
  std::vector<std::uint64_t> weight_bytes;  // by tensor; 0: no weight
  std::uint64_t arena_bytes = 0, scratch_bytes = 0, all_weight_bytes = 0, slot_bytes = 0, slot_pool_bytes = 0, kv_bytes = 0;
  std::array<std::uint64_t, MEKIK_MAX_GROUPS> block_bytes{};
  std::array<std::uint64_t, MEKIK_MAX_GROUPS> look_back{};  // rows before a token's own that something reads; kAllRows
  bool has_slots = false;
  std::uint64_t work_bytes() const { return arena_bytes + scratch_bytes; }
};

// Checks the whole program and the limits, and lays it out. Throws mekik::Error naming the operation or the tensor.
Layout lay_out(const mekik_program& program, const mekik_limits& limits);
// SHA-256 of what shapes stored state, and of what can change a bit. kernels: name and revision of those that are not the reference's.
void identify(const mekik_program& program, const mekik_limits& limits, const std::string& kernels, std::uint8_t layout_id[32],
              std::uint8_t numeric_id[32]);

}  // namespace mekik::reference_backend
