#include "memory.hpp"

#include <mekik/plugin.hpp>

#include <algorithm>
#include <utility>

namespace mekik::vulkan {

namespace {

constexpr std::uint64_t kBlock = std::uint64_t{64} << 20;  // of an allocation that several buffers share

std::uint64_t round_up(std::uint64_t x, std::uint64_t to) { return (x + to - 1) / to * to; }

}  // namespace

Buffer::Buffer(Memory& memory, std::uint64_t bytes, VkBufferUsageFlags usage, MemoryKind kind)
    : memory_{&memory}, bytes_{round_up(std::max<std::uint64_t>(bytes, 16), 16)} {
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes_;
  info.usage = usage | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  check(memory.vk_.vkCreateBuffer(memory.device_, &info, nullptr, &buffer_), "making a buffer");
  try {
    memory.place(*this, kind);
  } catch (...) {
    memory.vk_.vkDestroyBuffer(memory.device_, buffer_, nullptr);
    throw;
  }
}

Buffer::~Buffer() {
  if (buffer_ == VK_NULL_HANDLE) return;
  for (const auto& [format, view] : views_) memory_->vk_.vkDestroyBufferView(memory_->device_, view, nullptr);
  memory_->vk_.vkDestroyBuffer(memory_->device_, buffer_, nullptr);
  memory_->release(*this);
}

void Buffer::swap(Buffer& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(buffer_, other.buffer_);
  std::swap(bytes_, other.bytes_);
  std::swap(data_, other.data_);
  std::swap(block_, other.block_);
  std::swap(offset_, other.offset_);
  std::swap(size_, other.size_);
  std::swap(views_, other.views_);
}

VkBufferView Buffer::view(VkFormat format) {
  VkBufferView& view = views_[format];
  if (view != VK_NULL_HANDLE) return view;
  VkBufferViewCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO;
  info.buffer = buffer_;
  info.format = format;
  info.range = bytes_;
  check(memory_->vk_.vkCreateBufferView(memory_->device_, &info, nullptr, &view), "making a view of a buffer");
  return view;
}

Memory::~Memory() {
  for (const Block& block : blocks_)
    if (block.memory != VK_NULL_HANDLE) vk_.vkFreeMemory(device_, block.memory, nullptr);
}

// The first type that has all that is wished for, else the first that has what is needed.
std::uint32_t Memory::type_of(std::uint32_t allowed, MemoryKind kind) const {
  constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
                                  mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkMemoryPropertyFlags need = kind == MemoryKind::device ? 0 : mapped;
  const VkMemoryPropertyFlags wish = kind == MemoryKind::readback ? need | cached : kind == MemoryKind::device ? local : need | local;
  for (const VkMemoryPropertyFlags flags : {wish, need})
    for (std::uint32_t i = 0; i < gpu_.memory.memoryTypeCount; ++i)
      if ((allowed >> i & 1) != 0 && (gpu_.memory.memoryTypes[i].propertyFlags & flags) == flags) return i;
  throw Error{MEKIK_E_UNSUPPORTED, "the device has no memory of the kind that is needed"};
}

bool Memory::place_in(std::size_t index, const VkMemoryRequirements& needs, Buffer& buffer) {
  Block& block = blocks_[index];
  for (auto at = block.free.begin(); at != block.free.end(); ++at) {
    const auto [offset, bytes] = *at;
    const std::uint64_t start = round_up(offset, needs.alignment);
    if (start + needs.size > offset + bytes) continue;
    check(vk_.vkBindBufferMemory(device_, buffer.buffer_, block.memory, start), "binding memory");
    block.free.erase(at);
    if (start > offset) block.free.emplace(offset, start - offset);
    if (offset + bytes > start + needs.size) block.free.emplace(start + needs.size, offset + bytes - start - needs.size);
    buffer.block_ = index;
    buffer.offset_ = start;
    buffer.size_ = needs.size;
    buffer.data_ = block.data != nullptr ? block.data + start : nullptr;
    return true;
  }
  return false;
}

std::size_t Memory::new_block(std::uint64_t bytes, std::uint32_t type, bool mapped) {
  const VkMemoryHeap& heap = gpu_.memory.memoryHeaps[gpu_.memory.memoryTypes[type].heapIndex];
  if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0)
    if (const Heaps heaps = instance_.heaps(gpu_); bytes > heaps.free)
      throw Error{MEKIK_E_NO_MEMORY, "the device has " + std::to_string(heaps.free) + " bytes left for this process; " +
                                         std::to_string(bytes) + " are needed"};
  Block block;
  block.size = bytes;
  block.type = type;
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.allocationSize = bytes;
  info.memoryTypeIndex = type;
  check(vk_.vkAllocateMemory(device_, &info, nullptr, &block.memory), "allocating memory of the device");
  if (mapped) {
    void* data = nullptr;
    const VkResult result = vk_.vkMapMemory(device_, block.memory, 0, VK_WHOLE_SIZE, 0, &data);
    if (result != VK_SUCCESS) vk_.vkFreeMemory(device_, block.memory, nullptr);
    check(result, "mapping memory of the device");
    block.data = static_cast<std::byte*>(data);
  }
  block.free.emplace(0, bytes);
  const auto gone = std::find_if(blocks_.begin(), blocks_.end(), [](const Block& b) { return b.memory == VK_NULL_HANDLE; });
  if (gone == blocks_.end()) return blocks_.push_back(std::move(block)), blocks_.size() - 1;
  *gone = std::move(block);
  return static_cast<std::size_t>(gone - blocks_.begin());
}

void Memory::place(Buffer& buffer, MemoryKind kind) {
  const std::lock_guard lock{mutex_};
  VkMemoryRequirements needs{};
  vk_.vkGetBufferMemoryRequirements(device_, buffer.buffer_, &needs);
  needs.alignment = std::max<VkDeviceSize>(needs.alignment, 256);
  const std::uint32_t type = type_of(needs.memoryTypeBits, kind);
  const bool mapped = kind != MemoryKind::device;
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    if (blocks_[i].memory != VK_NULL_HANDLE && blocks_[i].type == type && (blocks_[i].data != nullptr) == mapped &&
        place_in(i, needs, buffer))
      return;
  // Large buffers get an allocation of their own size, so that what a plan promises is what is taken.
  const std::uint64_t small = std::min<std::uint64_t>(kBlock, round_up(needs.size, std::uint64_t{1} << 20));
  const std::size_t block = new_block(std::max<std::uint64_t>(round_up(needs.size, 256), small), type, mapped);
  if (!place_in(block, needs, buffer)) throw Error{MEKIK_E_INTERNAL, "a buffer does not fit its own allocation"};
}

void Memory::release(Buffer& buffer) {
  const std::lock_guard lock{mutex_};
  Block& block = blocks_[buffer.block_];
  auto at = block.free.emplace(buffer.offset_, buffer.size_).first;
  if (const auto next = std::next(at); next != block.free.end() && at->first + at->second == next->first) {
    at->second += next->second;
    block.free.erase(next);
  }
  if (at != block.free.begin())
    if (const auto before = std::prev(at); before->first + before->second == at->first) {
      before->second += at->second;
      block.free.erase(at);
      at = before;
    }
  if (at->first != 0 || at->second != block.size) return;
  vk_.vkFreeMemory(device_, block.memory, nullptr);
  block = {};
}

}  // namespace mekik::vulkan
