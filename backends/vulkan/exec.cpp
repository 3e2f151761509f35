#include "exec.hpp"

#include <algorithm>
#include <cstring>

namespace mekik::vulkan {

DeviceLimits limits_of(const Gpu& gpu) {
  const VkPhysicalDeviceLimits& l = gpu.properties.limits;
  // Kernels count with 32 bits, and their indices of texels are signed.
  return {std::min<std::uint64_t>(l.maxStorageBufferRange, std::uint64_t{1} << 31),
          std::min<std::uint64_t>(l.maxTexelBufferElements, (std::uint64_t{1} << 31) - 1),
          std::string{gpu.properties.deviceName} + " " + gpu.driver};
}

Exec::Exec(Device& device, const mekik_program& program, const mekik_limits& limits)
    : device_{device},
      vk_{device.vk()},
      copy_{(static_cast<void>(Plan{program, limits, limits_of(device.gpu())}), program)},  // checks before it is read
      program_{copy_.reader()},
      limits_{limits},
      plan_{program, limits, limits_of(device.gpu())},
      loaded_(program.n_tensors, false) {
  std::uint64_t all = plan_.weight_bytes() + plan_.work_bytes();
  for (const std::uint64_t bytes : plan_.pool_bytes) all += bytes;
  if (limits.device_bytes != 0 && all > limits.device_bytes)
    throw Error{MEKIK_E_NO_MEMORY, std::to_string(all) + " bytes are needed, " + std::to_string(limits.device_bytes) + " are allowed"};
  try {
    make_buffers();
    resolve();
    make_sets();
    for (const Dispatch& d : plan_.dispatches) {
      if (d.grid != Dispatch::Grid::linear) device_.pipeline(d.shader, d.constants);
      else
        for (const char* tokens : {"_1", "_4"}) device_.pipeline(d.shader + tokens, d.constants);
    }
    device_.save_cache();
  } catch (...) {
    if (command_pool_ != VK_NULL_HANDLE) vk_.vkDestroyCommandPool(device_.handle(), command_pool_, nullptr);
    if (descriptor_pool_ != VK_NULL_HANDLE) vk_.vkDestroyDescriptorPool(device_.handle(), descriptor_pool_, nullptr);
    throw;
  }
}

Exec::~Exec() {
  vk_.vkDeviceWaitIdle(device_.handle());
  vk_.vkDestroyCommandPool(device_.handle(), command_pool_, nullptr);
  vk_.vkDestroyDescriptorPool(device_.handle(), descriptor_pool_, nullptr);
}

void Exec::make_buffers() {
  Memory& memory = device_.memory();
  constexpr VkBufferUsageFlags storage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, texels = VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT;
  for (const std::uint64_t bytes : plan_.page_bytes) pages_.emplace_back(memory, bytes, storage | texels, MemoryKind::device);
  for (const std::uint64_t bytes : plan_.weight_block_bytes) weight_blocks_.emplace_back(memory, bytes, texels, MemoryKind::device);
  if (weight_blocks_.empty()) weight_blocks_.emplace_back(memory, 256, texels, MemoryKind::device);  // every binding is bound
  for (const std::uint64_t bytes : plan_.pool_bytes) pools_.emplace_back(memory, bytes, storage | texels, MemoryKind::device);
  vectors_ = Buffer{memory, plan_.vector_bytes, texels, MemoryKind::device};
  batch_ = Buffer{memory, plan_.batch.words * 4, storage, MemoryKind::upload};
  readback_ = Buffer{memory, plan_.readback_bytes, 0, MemoryKind::readback};
  std::uint64_t widest = kStagingBytes;
  for (const StatePlan& s : plan_.states) widest = std::max(widest, s.block_bytes);
  for (const SlotPlan& s : plan_.slots) widest = std::max(widest, s.numbers * sizeof(float));
  staging_ = Buffer{memory, widest, 0, MemoryKind::readback};
}

// Fills in what dispatches are told about places.
void Exec::resolve() {
  const auto word = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  for (Dispatch& d : plan_.dispatches) {
    for (const Patch& p : d.patches) {
      if (p.kind == Patch::Kind::vector) {
        const WeightPlan& w = plan_.weights[p.ref.buffer];
        d.set(p.word, word(p.ref.column == 0 ? w.vector_offset : w.permutation));
        continue;
      }
      const StepBuffer& b = plan_.buffers[p.ref.buffer];
      const std::uint64_t offset = b.offset / 4 + p.ref.column;
      d.set(p.word, word(p.kind == Patch::Kind::stride ? b.stride : p.kind == Patch::Kind::texel ? offset / 4 : offset));
    }
    if (d.weight != kNone) {
      const WeightPlan& w = plan_.weights[d.weight];
      d.set(kW0, word(w.offset / 16));
      d.set(kW1, word((w.offset + w.layout.numbers_offset()) / 4));
      d.set(kW2, word((w.offset + w.layout.table_offset()) / 4));
      d.set(kI5, word(w.scale_offset));
    }
    if (d.state == kNone) continue;
    const bool slot = program_.tensor(d.state).role == MEKIK_ROLE_SLOT;
    d.set(kW0, word(slot ? plan_.slots[d.state].offset / 4 : plan_.states[d.state].offset / 16));
  }
}

}  // namespace mekik::vulkan
