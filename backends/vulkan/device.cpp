#include "device.hpp"

#include <unistd.h>
#include <mekik/plugin.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace mekik::vulkan {

Device::Device(std::shared_ptr<Instance> instance, const Gpu& gpu, std::string cache_file)
    : instance_{std::move(instance)}, gpu_{gpu}, cache_file_{std::move(cache_file)} {
  const InstanceCalls& vk = instance_->vk();
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = gpu_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  check(vk.vkCreateDevice(gpu_.handle, &info, nullptr, &device_), "opening the device");
#define MEKIK_VK_LOAD(name) vk_.name = reinterpret_cast<PFN_##name>(vk.vkGetDeviceProcAddr(device_, #name));
  MEKIK_VK_DEVICE(MEKIK_VK_LOAD)
#undef MEKIK_VK_LOAD
  vk_.vkGetDeviceQueue(device_, gpu_.queue_family, 0, &queue_);
  memory_ = std::make_unique<Memory>(*instance_, gpu_, device_, vk_);
  VkFenceCreateInfo fence{};
  fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  check(vk_.vkCreateFence(device_, &fence, nullptr, &fence_), "making a fence");
  make_layouts();
  load_cache();
}

Device::~Device() {
  vk_.vkDeviceWaitIdle(device_);
  save_cache();
  for (const auto& [key, pipeline] : pipelines_) vk_.vkDestroyPipeline(device_, pipeline, nullptr);
  vk_.vkDestroyPipelineCache(device_, cache_, nullptr);
  vk_.vkDestroyPipelineLayout(device_, pipeline_layout_, nullptr);
  vk_.vkDestroyDescriptorSetLayout(device_, set_layout_, nullptr);
  vk_.vkDestroyFence(device_, fence_, nullptr);
  memory_.reset();
  vk_.vkDestroyDevice(device_, nullptr);
}

void Device::make_layouts() {
  std::array<VkDescriptorSetLayoutBinding, kBindings> bindings{};
  for (std::uint32_t i = 0; i < kBindings; ++i)
    bindings[i] = {i, i < kStorageBindings ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, 1,
                   VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo set{};
  set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set.bindingCount = kBindings;
  set.pBindings = bindings.data();
  check(vk_.vkCreateDescriptorSetLayout(device_, &set, nullptr, &set_layout_), "making a layout");
  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(Push)};
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &set_layout_;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &push;
  check(vk_.vkCreatePipelineLayout(device_, &layout, nullptr, &pipeline_layout_), "making a layout");
}

// A file that is not there, cut off or another driver's costs the time to compile again, nothing else: drivers check what they are given,
// and the header (length, version, maker, device, cache UUID) is compared here as well.
void Device::load_cache() {
  std::string data;
  if (!cache_file_.empty()) {
    std::ifstream file{cache_file_, std::ios::binary};
    data.assign(std::istreambuf_iterator<char>{file}, {});
    std::uint32_t header[4] = {};
    if (data.size() >= 32) std::memcpy(header, data.data(), sizeof header);
    const VkPhysicalDeviceProperties& p = gpu_.properties;
    if (data.size() < 32 || header[0] != 32 || header[1] != VK_PIPELINE_CACHE_HEADER_VERSION_ONE || header[2] != p.vendorID ||
        header[3] != p.deviceID || std::memcmp(data.data() + 16, p.pipelineCacheUUID, VK_UUID_SIZE) != 0)
      data.clear();
  }
  cached_ = data.size();
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = data.size();
  info.pInitialData = data.data();
  check(vk_.vkCreatePipelineCache(device_, &info, nullptr, &cache_), "making a cache of kernels");
}

void Device::save_cache() {
  if (cache_file_.empty() || lost_) return;
  std::size_t size = 0;
  if (vk_.vkGetPipelineCacheData(device_, cache_, &size, nullptr) != VK_SUCCESS || size == cached_ || size == 0) return;
  std::string data(size, '\0');
  if (vk_.vkGetPipelineCacheData(device_, cache_, &size, data.data()) != VK_SUCCESS) return;
  // Beside it first, so that another process never reads half of one.
  const std::string beside = cache_file_ + "." + std::to_string(getpid());
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path{cache_file_}.parent_path(), failed);
  {
    std::ofstream file{beside, std::ios::binary};
    file.write(data.data(), static_cast<std::streamsize>(size));
    if (!file) return void(std::filesystem::remove(beside, failed));
  }
  std::filesystem::rename(beside, cache_file_, failed);
  cached_ = size;
}

VkPipeline Device::pipeline(const std::string& shader, const std::vector<std::uint32_t>& constants) {
  const std::lock_guard lock{mutex_};
  VkPipeline& pipeline = pipelines_[{shader, constants}];
  if (pipeline != VK_NULL_HANDLE) return pipeline;
  const Shader* end = kShaders + kShaderCount;
  const Shader* code = std::find_if(kShaders, end, [&](const Shader& s) { return shader == s.name; });
  if (code == end) throw Error{MEKIK_E_INTERNAL, "there is no kernel " + shader};
  VkShaderModuleCreateInfo module_info{};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = code->bytes;
  module_info.pCode = code->code;
  VkShaderModule module = VK_NULL_HANDLE;
  check(vk_.vkCreateShaderModule(device_, &module_info, nullptr, &module), "making a kernel");
  std::vector<VkSpecializationMapEntry> entries;
  for (std::uint32_t i = 0; i < constants.size(); ++i) entries.push_back({i, i * 4, 4});
  const VkSpecializationInfo special{static_cast<std::uint32_t>(entries.size()), entries.data(), constants.size() * 4, constants.data()};
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &special;
  info.layout = pipeline_layout_;
  const VkResult result = vk_.vkCreateComputePipelines(device_, cache_, 1, &info, nullptr, &pipeline);
  vk_.vkDestroyShaderModule(device_, module, nullptr);
  check(result, "compiling a kernel");
  return pipeline;
}

void Device::run(VkCommandBuffer commands) {
  const std::lock_guard lock{mutex_};
  const auto checked = [&](VkResult result, const char* what) {
    lost_ |= result == VK_ERROR_DEVICE_LOST;
    check(result, what);
  };
  if (lost_) check(VK_ERROR_DEVICE_LOST, "running a step");
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  checked(vk_.vkQueueSubmit(queue_, 1, &info, fence_), "running a step");
  checked(vk_.vkWaitForFences(device_, 1, &fence_, VK_TRUE, ~std::uint64_t{0}), "waiting for a step");
  checked(vk_.vkResetFences(device_, 1, &fence_), "waiting for a step");
  if (const std::string said = instance_->take_complaints(); !said.empty())
    throw Error{MEKIK_E_INTERNAL, "the validation layers say: " + said};
}

}  // namespace mekik::vulkan
