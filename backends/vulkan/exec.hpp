// A compiled program on a device, with its weights and states. Calls follow mekik_backend; each throws Error and then has changed nothing.
#pragma once
#include <mekik/backend.hpp>

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "plan.hpp"

namespace mekik::vulkan {

DeviceLimits limits_of(const Gpu& gpu);

class Exec {
 public:
  Exec(Device& device, const mekik_program& program, const mekik_limits& limits);
  ~Exec();
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;
  mekik_status weight(const mekik_weight& weight);  // what its rows() answered, where that failed
  std::uint64_t submit(const mekik_batch& batch);
  std::uint64_t move(Strided<const mekik_move> moves);
  std::uint64_t read(std::uint32_t what, std::uint32_t group, std::int32_t id, void* to, std::uint64_t bytes);
  std::uint64_t write(std::uint32_t what, std::uint32_t group, std::int32_t id, const void* from, std::uint64_t bytes);
  bool completed(std::uint64_t ticket) const { return ticket <= ticket_; }

 private:
  // What a recorded step depends on.
  struct Shape {
    std::uint32_t tokens, seqs, rows;
    auto operator<=>(const Shape&) const = default;
  };
  // The buffers of a descriptor set: pages of the operands, a block of weights, a page of states or (-1) the temporaries.
  using SetKey = std::array<std::int32_t, 6>;
  // A piece of a state in the device's memory.
  struct Piece {
    std::uint32_t page;
    std::uint64_t offset, bytes;
  };

  // exec.cpp
  void make_buffers();
  void resolve();
  // record.cpp
  void make_sets();
  SetKey key_of(const Dispatch& d) const;
  void write_set(VkDescriptorSet set, const SetKey& key);
  VkCommandBuffer new_commands();
  void begin(VkCommandBuffer commands) const;
  void barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags wrote, VkPipelineStageFlags to,
               VkAccessFlags reads) const;
  void between_copies(VkCommandBuffer commands) const;
  VkCommandBuffer recorded(const Shape& shape);
  void record(VkCommandBuffer commands, const Shape& shape);
  void record_dispatch(VkCommandBuffer commands, const Dispatch& d, std::uint32_t rows);
  std::uint32_t rows_of(const Shape& shape, std::int64_t domain) const;
  // batch.cpp
  void check_batch(const mekik_batch& batch) const;
  void check_ids(const mekik_batch& batch) const;
  void check_blocks(const mekik_batch& batch) const;
  void check_slots(const mekik_batch& batch) const;
  // step.cpp
  void bring_in(const mekik_batch& batch);
  void bring_turns(const mekik_batch& batch);
  void bring_out(const mekik_batch& batch) const;
  // load.cpp
  mekik_status load_matrix(const mekik_weight& weight);
  mekik_status load_vector(const mekik_weight& weight);
  void upload(const Buffer& to, std::uint64_t offset, const void* data, std::uint64_t bytes);
  // states.cpp
  std::vector<Piece> pieces(std::uint32_t what, std::uint32_t group, std::int32_t id) const;
  void check_place(std::uint32_t what, std::uint32_t group, std::int32_t id) const;
  void check_bytes(std::uint32_t what, std::uint32_t group, std::uint64_t bytes) const;
  void check_move(const mekik_move& move) const;
  void carry(std::uint32_t what, std::uint32_t group, std::int32_t id, std::byte* host, bool out);
  void record_move(VkCommandBuffer commands, const Piece& from, const Piece& to) const;

  Device& device_;
  const DeviceCalls& vk_;
  ProgramCopy copy_;
  ProgramReader program_;
  mekik_limits limits_;
  Plan plan_;
  std::vector<Buffer> pages_, weight_blocks_, pools_;
  Buffer vectors_, batch_, readback_, staging_;
  std::vector<bool> loaded_;                            // by tensor
  std::map<std::uint32_t, std::vector<float>> tables_;  // rotary tables, by tensor
  VkCommandPool command_pool_ = VK_NULL_HANDLE;
  VkDescriptorPool descriptor_pool_ = VK_NULL_HANDLE;
  std::map<SetKey, VkDescriptorSet> sets_;
  std::map<Shape, VkCommandBuffer> recorded_;
  VkCommandBuffer copies_ = VK_NULL_HANDLE;
  std::uint64_t ticket_ = 0;
};

}  // namespace mekik::vulkan
