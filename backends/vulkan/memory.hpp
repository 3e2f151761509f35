// Buffers of one device: few large allocations, cut up first fit. Thread: one at a time (a device's execs share it under its mutex).
#pragma once
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "instance.hpp"

namespace mekik::vulkan {

enum class MemoryKind : std::uint8_t {
  device,    // fast for shaders
  upload,    // written by the host, read by the device; mapped
  readback,  // written by the device, read by the host; mapped, cached where the device has that
};

class Memory;

// A VkBuffer with its place in an allocation; freed with it. Movable.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Memory& memory, std::uint64_t bytes, VkBufferUsageFlags usage, MemoryKind kind);
  ~Buffer();
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  VkBuffer handle() const { return buffer_; }
  std::uint64_t bytes() const { return bytes_; }
  std::byte* data() const { return data_; }  // nullptr: not mapped
  // A view of whole texels of `format` over all of it; lives as long as the buffer.
  VkBufferView view(VkFormat format);

 private:
  friend class Memory;
  void swap(Buffer& other) noexcept;
  Memory* memory_ = nullptr;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  std::uint64_t bytes_ = 0;
  std::byte* data_ = nullptr;
  std::size_t block_ = 0;
  std::uint64_t offset_ = 0, size_ = 0;
  std::map<VkFormat, VkBufferView> views_;
};

class Memory {
 public:
  Memory(const Instance& instance, const Gpu& gpu, VkDevice device, const DeviceCalls& vk)
      : instance_{instance}, gpu_{gpu}, device_{device}, vk_{vk} {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  const Gpu& gpu() const { return gpu_; }
  VkDevice device() const { return device_; }
  const DeviceCalls& vk() const { return vk_; }

 private:
  friend class Buffer;
  struct Block {
    VkDeviceMemory memory = VK_NULL_HANDLE;
    std::uint64_t size = 0;
    std::uint32_t type = 0;
    std::byte* data = nullptr;
    std::map<std::uint64_t, std::uint64_t> free;  // offset -> bytes
  };
  void place(Buffer& buffer, MemoryKind kind);
  void release(Buffer& buffer);
  bool place_in(std::size_t block, const VkMemoryRequirements& needs, Buffer& buffer);
  std::uint32_t type_of(std::uint32_t allowed, MemoryKind kind) const;
  std::size_t new_block(std::uint64_t bytes, std::uint32_t type, bool mapped);
  const Instance& instance_;
  const Gpu& gpu_;
  VkDevice device_;
  const DeviceCalls& vk_;
  std::mutex mutex_;
  std::vector<Block> blocks_;
};

}  // namespace mekik::vulkan
