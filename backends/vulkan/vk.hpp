// Vulkan without linking to it: the loader library is opened at run time, so that the plugin loads on machines that have none.
#pragma once
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <string>

namespace mekik::vulkan {

// The functions before an instance, of an instance, and of a device: one list each.
// clang-format off
#define MEKIK_VK_GLOBAL(F) \
  F(vkCreateInstance) F(vkEnumerateInstanceVersion) F(vkEnumerateInstanceLayerProperties)
#define MEKIK_VK_INSTANCE(F) \
  F(vkDestroyInstance) F(vkEnumeratePhysicalDevices) F(vkGetPhysicalDeviceProperties2) F(vkGetPhysicalDeviceMemoryProperties2) \
  F(vkGetPhysicalDeviceQueueFamilyProperties) F(vkEnumerateDeviceExtensionProperties) F(vkCreateDevice) F(vkGetDeviceProcAddr) \
  F(vkGetPhysicalDeviceFormatProperties)
#define MEKIK_VK_DEVICE(F) \
  F(vkDestroyDevice) F(vkGetDeviceQueue) F(vkDeviceWaitIdle) F(vkAllocateMemory) F(vkFreeMemory) F(vkMapMemory) \
  F(vkCreateBuffer) F(vkDestroyBuffer) F(vkGetBufferMemoryRequirements) F(vkBindBufferMemory) F(vkCreateBufferView) \
  F(vkDestroyBufferView) F(vkCreateShaderModule) F(vkDestroyShaderModule) F(vkCreatePipelineCache) F(vkDestroyPipelineCache) \
  F(vkGetPipelineCacheData) F(vkCreateComputePipelines) F(vkDestroyPipeline) F(vkCreatePipelineLayout) \
  F(vkDestroyPipelineLayout) F(vkCreateDescriptorSetLayout) F(vkDestroyDescriptorSetLayout) F(vkCreateDescriptorPool) \
  F(vkDestroyDescriptorPool) F(vkAllocateDescriptorSets) F(vkUpdateDescriptorSets) F(vkCreateCommandPool) \
  F(vkDestroyCommandPool) F(vkAllocateCommandBuffers) F(vkFreeCommandBuffers) F(vkBeginCommandBuffer) F(vkEndCommandBuffer) \
  F(vkCmdBindPipeline) F(vkCmdBindDescriptorSets) F(vkCmdPushConstants) F(vkCmdDispatch) F(vkCmdPipelineBarrier) \
  F(vkCmdCopyBuffer) F(vkCmdFillBuffer) F(vkQueueSubmit) F(vkCreateFence) F(vkDestroyFence) F(vkWaitForFences) \
  F(vkResetFences)
// clang-format on

#define MEKIK_VK_MEMBER(name) PFN_##name name = nullptr;
struct GlobalCalls {
  MEKIK_VK_GLOBAL(MEKIK_VK_MEMBER)
  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr = nullptr;
};
struct InstanceCalls {
  MEKIK_VK_INSTANCE(MEKIK_VK_MEMBER)
};
struct DeviceCalls {
  MEKIK_VK_DEVICE(MEKIK_VK_MEMBER)
};
#undef MEKIK_VK_MEMBER

// "VK_ERROR_DEVICE_LOST", ...
const char* result_name(VkResult result);
// Throws mekik::Error with the status that fits: out of memory, device lost, or internal.
void check(VkResult result, const char* what);

}  // namespace mekik::vulkan
