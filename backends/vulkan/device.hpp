// An opened device: its queue, its memory, the kernels compiled for it. Calls on it come one at a time ([load], [engine]).
#pragma once
#include <array>
#include <map>
#include <vector>

#include "memory.hpp"

namespace mekik::vulkan {

// Bindings of every kernel, in one layout. A dispatch has up to four operands in pages of activations, a block of weights with vectors,
// a page of a state, and what the batch brought.
enum Binding : std::uint32_t { kOut, kA, kB, kC, kPool, kBatch, kTexelA, kTexelW, kScalarW, kVectors, kTexelPool, kBindings };
inline constexpr std::uint32_t kStorageBindings = 6;  // kOut .. kBatch are storage buffers, the rest storage texel buffers

// What a kernel is told at each dispatch: shaders/common.glsl has the same members in the same order.
struct Push {
  std::uint32_t rows = 0, o = 0, os = 0, a = 0, as = 0, b = 0, bs = 0, c = 0, cs = 0, w[4] = {}, n = 0, k = 0, m = 0, h = 0;
  std::int32_t i[8] = {};
  float f[4] = {};
};
static_assert(sizeof(Push) == 29 * 4 && sizeof(Push) <= 128);

struct Shader {
  const char* name;
  const std::uint32_t* code;
  std::size_t bytes;
};
extern const Shader kShaders[];  // made at build time (embed.py)
extern const std::size_t kShaderCount;

class Device {
 public:
  Device(std::shared_ptr<Instance> instance, const Gpu& gpu, std::string cache_file);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  const Gpu& gpu() const { return gpu_; }
  const DeviceCalls& vk() const { return vk_; }
  VkDevice handle() const { return device_; }
  Memory& memory() { return *memory_; }
  VkPipelineLayout layout() const { return pipeline_layout_; }
  VkDescriptorSetLayout set_layout() const { return set_layout_; }
  std::uint32_t queue_family() const { return gpu_.queue_family; }
  // The kernel `shader` (a name of kShaders) with these specialization constants, compiled once for a device.
  VkPipeline pipeline(const std::string& shader, const std::vector<std::uint32_t>& constants);
  // Runs recorded commands and returns when they are done. Throws Error; after DEVICE_LOST every later call throws it, too.
  void run(VkCommandBuffer commands);
  bool lost() const { return lost_; }
  void save_cache();

 private:
  void make_layouts();
  void load_cache();
  std::shared_ptr<Instance> instance_;
  const Gpu& gpu_;
  std::string cache_file_;
  std::size_t cached_ = 0;  // bytes of the cache as it was read
  DeviceCalls vk_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout pipeline_layout_ = VK_NULL_HANDLE;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::unique_ptr<Memory> memory_;
  std::map<std::pair<std::string, std::vector<std::uint32_t>>, VkPipeline> pipelines_;
  std::mutex mutex_;
  bool lost_ = false;
};

}  // namespace mekik::vulkan
