// Steps as recorded commands: one recording for each shape of a batch.
#include <set>

#include "exec.hpp"

namespace mekik::vulkan {

namespace {
constexpr std::size_t kMostRecorded = 64;
constexpr std::uint32_t kMostGroups = 65535;  // in a dimension, on every device
std::uint32_t whole(std::uint64_t n, std::uint64_t each) { return static_cast<std::uint32_t>((n + each - 1) / each); }
}  // namespace

Exec::SetKey Exec::key_of(const Dispatch& d) const {
  SetKey key{};
  for (std::size_t i = 0; i < 4; ++i) key[i] = d.operand[i] != kNone ? static_cast<std::int32_t>(plan_.buffers[d.operand[i]].page) : 0;
  key[4] = d.weight != kNone ? static_cast<std::int32_t>(plan_.weights[d.weight].block) : 0;
  const bool slot = d.state != kNone && program_.tensor(d.state).role == MEKIK_ROLE_SLOT;
  key[5] = d.state == kNone ? -1 : static_cast<std::int32_t>(slot ? plan_.slots[d.state].page : plan_.states[d.state].page);
  return key;
}

void Exec::make_sets() {
  std::set<SetKey> keys;
  for (const Dispatch& d : plan_.dispatches) keys.insert(key_of(d));
  const auto n = static_cast<std::uint32_t>(keys.size());
  const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, n * kStorageBindings + 1},
                                        {VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, n * (kBindings - kStorageBindings) + 1}};
  VkDescriptorPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  pool.maxSets = n + 1;
  pool.poolSizeCount = 2;
  pool.pPoolSizes = sizes;
  check(vk_.vkCreateDescriptorPool(device_.handle(), &pool, nullptr, &descriptor_pool_), "making descriptors");
  const VkDescriptorSetLayout layout = device_.set_layout();
  for (const SetKey& key : keys) {
    VkDescriptorSetAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    info.descriptorPool = descriptor_pool_;
    info.descriptorSetCount = 1;
    info.pSetLayouts = &layout;
    VkDescriptorSet set = VK_NULL_HANDLE;
    check(vk_.vkAllocateDescriptorSets(device_.handle(), &info, &set), "making descriptors");
    write_set(set, key);
    sets_.emplace(key, set);
  }
  VkCommandPoolCreateInfo commands{};
  commands.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  commands.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  commands.queueFamilyIndex = device_.queue_family();
  check(vk_.vkCreateCommandPool(device_.handle(), &commands, nullptr, &command_pool_), "making commands");
  copies_ = new_commands();
}

void Exec::write_set(VkDescriptorSet set, const SetKey& key) {
  const auto page = [&](std::size_t i) -> Buffer& { return pages_[static_cast<std::size_t>(key[i])]; };
  Buffer& pool = key[5] < 0 ? pages_[0] : pools_[static_cast<std::size_t>(key[5])];
  Buffer& weights = weight_blocks_[static_cast<std::size_t>(key[4])];
  const Buffer* storage[] = {&page(0), &page(1), &page(2), &page(3), &pool, &batch_};
  const VkBufferView texels[] = {page(1).view(VK_FORMAT_R32G32B32A32_SFLOAT), weights.view(VK_FORMAT_R32G32B32A32_UINT),
                                 weights.view(VK_FORMAT_R32_UINT), vectors_.view(VK_FORMAT_R32_UINT),
                                 pool.view(VK_FORMAT_R32G32B32A32_UINT)};
  std::array<VkDescriptorBufferInfo, kStorageBindings> infos{};
  std::array<VkWriteDescriptorSet, kBindings> writes{};
  for (std::uint32_t i = 0; i < kBindings; ++i) {
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstSet = set;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    if (i < kStorageBindings) {
      infos[i] = {storage[i]->handle(), 0, storage[i]->bytes()};
      writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      writes[i].pBufferInfo = &infos[i];
    } else {
      writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER;
      writes[i].pTexelBufferView = &texels[i - kStorageBindings];
    }
  }
  vk_.vkUpdateDescriptorSets(device_.handle(), kBindings, writes.data(), 0, nullptr);
}

VkCommandBuffer Exec::new_commands() {
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = command_pool_;
  info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  check(vk_.vkAllocateCommandBuffers(device_.handle(), &info, &commands), "making commands");
  return commands;
}

void Exec::begin(VkCommandBuffer commands) const {
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  check(vk_.vkBeginCommandBuffer(commands, &info), "recording a step");
}

void Exec::barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags wrote, VkPipelineStageFlags to,
                   VkAccessFlags reads) const {
  VkMemoryBarrier all{};
  all.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  all.srcAccessMask = wrote;
  all.dstAccessMask = reads;
  vk_.vkCmdPipelineBarrier(commands, from, to, 0, 1, &all, 0, nullptr, 0, nullptr);
}

void Exec::between_copies(VkCommandBuffer commands) const {
  constexpr VkAccessFlags both = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, both, VK_PIPELINE_STAGE_TRANSFER_BIT, both);
}

std::uint32_t Exec::rows_of(const Shape& shape, std::int64_t domain) const {
  return domain == MEKIK_DIM_TOKENS ? shape.tokens : domain == MEKIK_DIM_SEQS ? shape.seqs : shape.rows;
}

VkCommandBuffer Exec::recorded(const Shape& shape) {
  if (const auto known = recorded_.find(shape); known != recorded_.end()) return known->second;
  if (recorded_.size() >= kMostRecorded) {
    for (const auto& [old, commands] : recorded_) vk_.vkFreeCommandBuffers(device_.handle(), command_pool_, 1, &commands);
    recorded_.clear();
  }
  const VkCommandBuffer commands = new_commands();
  try {
    record(commands, shape);
  } catch (...) {
    vk_.vkFreeCommandBuffers(device_.handle(), command_pool_, 1, &commands);
    throw;
  }
  return recorded_[shape] = commands;
}

void Exec::record(VkCommandBuffer commands, const Shape& shape) {
  constexpr VkPipelineStageFlags compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, copying = VK_PIPELINE_STAGE_TRANSFER_BIT;
  constexpr VkAccessFlags both = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  begin(commands);
  barrier(commands, compute | copying, both | VK_ACCESS_TRANSFER_WRITE_BIT, compute, both);
  bool first = true;
  for (const Dispatch& d : plan_.dispatches) {
    const std::uint32_t rows = rows_of(shape, d.domain);
    if (rows == 0) continue;
    if (!first && !d.joins) barrier(commands, compute, both, compute, both);
    first = false;
    record_dispatch(commands, d, rows);
  }
  barrier(commands, compute, VK_ACCESS_SHADER_WRITE_BIT, copying, VK_ACCESS_TRANSFER_READ_BIT);
  std::uint64_t at = 0;
  for (const StepBuffer& b : plan_.buffers) {
    if (!b.output) continue;
    std::uint64_t rows = 0;
    for (std::uint32_t t = 0; t < program_.n_tensors(); ++t)
      if (plan_.buffer_of[t] != kNone && &plan_.buffers[plan_.buffer_of[t]] == &b) rows = rows_of(shape, program_.tensor(t).shape[0]);
    const VkBufferCopy copy{0, at, rows * b.stride * sizeof(float)};
    if (copy.size != 0) vk_.vkCmdCopyBuffer(commands, pages_[b.page].handle(), readback_.handle(), 1, &copy);
    at += round_up(b.bytes, 256);
  }
  barrier(commands, copying, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  check(vk_.vkEndCommandBuffer(commands), "recording a step");
}

void Exec::record_dispatch(VkCommandBuffer commands, const Dispatch& d, std::uint32_t rows) {
  using Grid = Dispatch::Grid;
  std::uint32_t x = 1, y = 1, z = 1;
  std::string shader = d.shader;
  if (d.grid == Grid::linear || d.grid == Grid::experts) {
    x = whole(plan_.weights[d.weight].layout.tiles(), 4);
    const std::uint32_t tokens = rows > 1 ? 4 : 1;
    if (d.grid == Grid::linear) {
      shader += tokens == 1 ? "_1" : "_4";
      y = whole(rows, tokens);
    } else {
      const std::uint64_t entries = rows * d.each;
      y = static_cast<std::uint32_t>(std::min<std::uint64_t>(entries, kMostGroups));
      z = whole(entries, y);
    }
  } else {
    const std::uint64_t each = d.grid == Grid::columns ? d.each : rows * d.each;
    const std::uint32_t groups = d.grid == Grid::groups ? static_cast<std::uint32_t>(each) : whole(each, d.local);
    x = std::min(groups, kMostGroups);
    y = whole(groups, x);
  }
  Push push = d.push;
  push.rows = rows;
  vk_.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, device_.pipeline(shader, d.constants));
  vk_.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, device_.layout(), 0, 1, &sets_.at(key_of(d)), 0, nullptr);
  vk_.vkCmdPushConstants(commands, device_.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
  vk_.vkCmdDispatch(commands, x, y, z);
}

}  // namespace mekik::vulkan
