// The Vulkan loader, an instance, and the devices that this backend can use. Thread: one at a time ([load]).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "vk.hpp"

namespace mekik::vulkan {

// One physical device and what it offers of what is used here.
struct Gpu {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceMemoryProperties memory{};
  std::string uuid, driver;        // uuid: 32 hexadecimal digits; driver: name and version
  std::uint32_t queue_family = 0;  // computes
  bool budget = false;             // VK_EXT_memory_budget
  std::string unfit;               // why it cannot be used; empty: it can
};

// Bytes of the device's own heaps: all, and what is left to this process by the driver's budget where it tells.
struct Heaps {
  std::uint64_t total, free;
};

class Instance {
 public:
  // Throws Error where there is no Vulkan on this machine, or no validation layer where that is asked for.
  explicit Instance(bool validation);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  const InstanceCalls& vk() const { return vk_; }
  const std::vector<Gpu>& gpus() const { return gpus_; }
  Heaps heaps(const Gpu& gpu) const;
  // What the validation layers said since the last call; empty: nothing.
  std::string take_complaints();

 private:
  struct Complaints;
  void open_library();
  void create(bool validation);
  void list();
  void describe(Gpu& gpu) const;
  void* library_ = nullptr;
  GlobalCalls global_;
  InstanceCalls vk_;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::unique_ptr<Complaints> complaints_;
  std::vector<Gpu> gpus_;
};

}  // namespace mekik::vulkan
