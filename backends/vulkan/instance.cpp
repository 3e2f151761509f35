#include "instance.hpp"

#include <dlfcn.h>
#include <mekik/plugin.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>

namespace mekik::vulkan {

struct Instance::Complaints {
  std::mutex mutex;
  std::string text;
};

namespace {

constexpr const char* kValidation = "VK_LAYER_KHRONOS_validation";

std::string hex(const std::uint8_t* bytes, std::size_t n) {
  std::string text;
  for (std::size_t i = 0; i < n; ++i) {
    text += "0123456789abcdef"[bytes[i] >> 4];
    text += "0123456789abcdef"[bytes[i] & 15];
  }
  return text;
}

// What every shader and buffer here relies on, beyond Vulkan 1.1.
std::string why_unfit(const VkPhysicalDeviceProperties& p, bool computes) {
  const VkPhysicalDeviceLimits& l = p.limits;
  if (p.apiVersion < VK_API_VERSION_1_1)
    return "its driver offers Vulkan " + std::to_string(VK_VERSION_MAJOR(p.apiVersion)) + "." +
           std::to_string(VK_VERSION_MINOR(p.apiVersion)) + "; 1.1 is needed: install a newer driver";
  if (!computes) return "it has no queue that computes";
  if (l.maxPerStageDescriptorStorageBuffers < 6 || l.maxPerStageDescriptorStorageImages < 5 || l.maxPerStageResources < 11)
    return "its driver binds too few buffers at once";
  if (l.maxTexelBufferElements < (1u << 24)) return "its driver's texel buffers are too small";
  return {};
}

}  // namespace

Instance::Instance(bool validation) : complaints_{std::make_unique<Complaints>()} {
  open_library();
  try {
    create(validation);
    list();
  } catch (...) {
    if (instance_ != VK_NULL_HANDLE) vk_.vkDestroyInstance(instance_, nullptr);
    dlclose(library_);
    throw;
  }
}

Instance::~Instance() {
  if (messenger_ != VK_NULL_HANDLE) {
    const auto destroy =
        reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(global_.vkGetInstanceProcAddr(instance_, "vkDestroyDebugUtilsMessengerEXT"));
    destroy(instance_, messenger_, nullptr);
  }
  vk_.vkDestroyInstance(instance_, nullptr);
  dlclose(library_);
}

void Instance::open_library() {
  for (const char* name : {"libvulkan.so.1", "libvulkan.so"})
    if ((library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL)) != nullptr) break;
  if (library_ == nullptr)
    throw Error{MEKIK_E_UNSUPPORTED,
                "no Vulkan on this machine: libvulkan.so.1 is not there (Debian: libvulkan1 and the driver of the device)"};
  const auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library_, "vkGetInstanceProcAddr"));
  global_.vkGetInstanceProcAddr = get;
#define MEKIK_VK_LOAD(name) global_.name = get != nullptr ? reinterpret_cast<PFN_##name>(get(nullptr, #name)) : nullptr;
  MEKIK_VK_GLOBAL(MEKIK_VK_LOAD)
#undef MEKIK_VK_LOAD
  if (global_.vkCreateInstance == nullptr || global_.vkEnumerateInstanceVersion == nullptr) {
    dlclose(library_);
    throw Error{MEKIK_E_UNSUPPORTED, "the Vulkan loader of this machine is too old: 1.1 is needed"};
  }
}

void Instance::create(bool validation) {
  std::uint32_t version = 0;
  global_.vkEnumerateInstanceVersion(&version);
  if (version < VK_API_VERSION_1_1) throw Error{MEKIK_E_UNSUPPORTED, "the Vulkan loader of this machine is too old: 1.1 is needed"};
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "mekik";
  application.apiVersion = std::min<std::uint32_t>(version, VK_API_VERSION_1_2);
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  if (validation) {
    std::uint32_t n = 0;
    global_.vkEnumerateInstanceLayerProperties(&n, nullptr);
    std::vector<VkLayerProperties> layers(n);
    global_.vkEnumerateInstanceLayerProperties(&n, layers.data());
    if (std::none_of(layers.begin(), layers.end(), [](const auto& l) { return std::strcmp(l.layerName, kValidation) == 0; }))
      throw Error{MEKIK_E_UNSUPPORTED, "validation = true needs the Vulkan validation layers (Debian: vulkan-validationlayers)"};
    info.enabledLayerCount = info.enabledExtensionCount = 1;
    info.ppEnabledLayerNames = &kValidation;
    info.ppEnabledExtensionNames = &extension;
  }
  if (const VkResult result = global_.vkCreateInstance(&info, nullptr, &instance_); result != VK_SUCCESS)
    throw Error{MEKIK_E_UNSUPPORTED, std::string{"no Vulkan driver can be used on this machine ("} + result_name(result) + ")"};
#define MEKIK_VK_LOAD(name) vk_.name = reinterpret_cast<PFN_##name>(global_.vkGetInstanceProcAddr(instance_, #name));
  MEKIK_VK_INSTANCE(MEKIK_VK_LOAD)
#undef MEKIK_VK_LOAD
  if (!validation) return;
  VkDebugUtilsMessengerCreateInfoEXT listen{};
  listen.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  listen.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  listen.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  listen.pfnUserCallback = [](VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) -> VkBool32 {
    auto& to = *static_cast<Complaints*>(user);
    const std::lock_guard lock{to.mutex};
    to.text += (to.text.empty() ? "" : "; ") + std::string{data->pMessage};
    return VK_FALSE;
  };
  listen.pUserData = complaints_.get();
  const auto make =
      reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(global_.vkGetInstanceProcAddr(instance_, "vkCreateDebugUtilsMessengerEXT"));
  check(make(instance_, &listen, nullptr, &messenger_), "listening to the validation layers");
}

void Instance::list() {
  std::uint32_t n = 0;
  check(vk_.vkEnumeratePhysicalDevices(instance_, &n, nullptr), "listing devices");
  std::vector<VkPhysicalDevice> handles(n);
  check(vk_.vkEnumeratePhysicalDevices(instance_, &n, handles.data()), "listing devices");
  for (std::uint32_t i = 0; i < n; ++i) {
    Gpu& gpu = gpus_.emplace_back();
    gpu.handle = handles[i];
    describe(gpu);
  }
  // Devices of their own first, the processor's emulation of one last; the driver's order within a kind.
  const auto rank = [](const Gpu& gpu) {
    switch (gpu.properties.deviceType) {
      case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return 0;
      case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return 1;
      case VK_PHYSICAL_DEVICE_TYPE_CPU:
        return 3;
      default:
        return 2;
    }
  };
  std::stable_sort(gpus_.begin(), gpus_.end(), [&](const Gpu& a, const Gpu& b) { return rank(a) < rank(b); });
}

void Instance::describe(Gpu& gpu) const {
  VkPhysicalDeviceIDProperties id{};
  id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &id;
  vk_.vkGetPhysicalDeviceProperties2(gpu.handle, &properties);
  gpu.properties = properties.properties;
  gpu.uuid = hex(id.deviceUUID, VK_UUID_SIZE);
  gpu.driver = hex(id.driverUUID, VK_UUID_SIZE) + " " + std::to_string(gpu.properties.driverVersion);
  VkPhysicalDeviceMemoryProperties2 memory{};
  memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  vk_.vkGetPhysicalDeviceMemoryProperties2(gpu.handle, &memory);
  gpu.memory = memory.memoryProperties;
  std::uint32_t n = 0;
  vk_.vkGetPhysicalDeviceQueueFamilyProperties(gpu.handle, &n, nullptr);
  std::vector<VkQueueFamilyProperties> families(n);
  vk_.vkGetPhysicalDeviceQueueFamilyProperties(gpu.handle, &n, families.data());
  // A family that only computes runs beside a desktop's drawing.
  bool computes = false;
  for (const bool draws : {false, true})
    for (std::uint32_t i = 0; i < n && !computes; ++i) {
      const VkQueueFlags flags = families[i].queueFlags;
      if ((flags & VK_QUEUE_COMPUTE_BIT) == 0 || ((flags & VK_QUEUE_GRAPHICS_BIT) != 0) != draws) continue;
      gpu.queue_family = i;
      computes = true;
    }
  std::uint32_t n_extensions = 0;
  vk_.vkEnumerateDeviceExtensionProperties(gpu.handle, nullptr, &n_extensions, nullptr);
  std::vector<VkExtensionProperties> extensions(n_extensions);
  vk_.vkEnumerateDeviceExtensionProperties(gpu.handle, nullptr, &n_extensions, extensions.data());
  for (const auto& e : extensions) gpu.budget |= std::strcmp(e.extensionName, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME) == 0;
  gpu.unfit = why_unfit(gpu.properties, computes);
}

Heaps Instance::heaps(const Gpu& gpu) const {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 memory{};
  memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  memory.pNext = gpu.budget ? &budget : nullptr;
  vk_.vkGetPhysicalDeviceMemoryProperties2(gpu.handle, &memory);
  Heaps heaps{0, 0};
  for (std::uint32_t i = 0; i < memory.memoryProperties.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = memory.memoryProperties.memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0) continue;
    heaps.total += heap.size;
    heaps.free += !gpu.budget ? heap.size : budget.heapBudget[i] > budget.heapUsage[i] ? budget.heapBudget[i] - budget.heapUsage[i] : 0;
  }
  return heaps;
}

std::string Instance::take_complaints() {
  const std::lock_guard lock{complaints_->mutex};
  return std::exchange(complaints_->text, {});
}

const char* result_name(VkResult result) {
  switch (result) {
#define MEKIK_VK_NAME(name) \
  case name:                \
    return #name;
    MEKIK_VK_NAME(VK_SUCCESS)
    MEKIK_VK_NAME(VK_TIMEOUT)
    MEKIK_VK_NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
    MEKIK_VK_NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    MEKIK_VK_NAME(VK_ERROR_INITIALIZATION_FAILED)
    MEKIK_VK_NAME(VK_ERROR_DEVICE_LOST)
    MEKIK_VK_NAME(VK_ERROR_MEMORY_MAP_FAILED)
    MEKIK_VK_NAME(VK_ERROR_LAYER_NOT_PRESENT)
    MEKIK_VK_NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
    MEKIK_VK_NAME(VK_ERROR_FEATURE_NOT_PRESENT)
    MEKIK_VK_NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
    MEKIK_VK_NAME(VK_ERROR_TOO_MANY_OBJECTS)
    MEKIK_VK_NAME(VK_ERROR_OUT_OF_POOL_MEMORY)
#undef MEKIK_VK_NAME
    default:
      return "an error without a name";
  }
}

void check(VkResult result, const char* what) {
  if (result == VK_SUCCESS) return;
  const bool memory = result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY;
  const mekik_status status = memory ? MEKIK_E_NO_MEMORY : result == VK_ERROR_DEVICE_LOST ? MEKIK_E_DEVICE_LOST : MEKIK_E_INTERNAL;
  throw Error{status, std::string{what} + ": " +
                          (memory                           ? "the device has no memory left ("
                           : result == VK_ERROR_DEVICE_LOST ? "the device is lost ("
                                                            : "Vulkan answers (") +
                          result_name(result) + ", " + std::to_string(result) + ")"};
}

}  // namespace mekik::vulkan
