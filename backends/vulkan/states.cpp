// Blocks and slots: copied, read out, written back.
#include <algorithm>
#include <cstring>

#include "exec.hpp"

namespace mekik::vulkan {

void Exec::check_place(std::uint32_t what, std::uint32_t group, std::int32_t id) const {
  const bool block = what == MEKIK_WHAT_BLOCK;
  if (!block && what != MEKIK_WHAT_SLOT) throw Error{MEKIK_E_INVALID, "what " + std::to_string(what) + " is not a block or a slot"};
  if (block && group >= program_.raw().n_groups) throw Error{MEKIK_E_INVALID, "there is no group " + std::to_string(group)};
  const std::uint64_t count = block ? limits_.n_blocks[group] : limits_.n_slots;
  if (id < 0 || static_cast<std::uint64_t>(id) >= count)
    throw Error{MEKIK_E_INVALID, std::string{block ? "block " : "slot "} + std::to_string(id) + " of " + std::to_string(count)};
}

void Exec::check_bytes(std::uint32_t what, std::uint32_t group, std::uint64_t bytes) const {
  const std::uint64_t each = what == MEKIK_WHAT_BLOCK ? plan_.block_bytes[group] : plan_.slot_bytes;
  if (bytes != each) throw Error{MEKIK_E_INVALID, std::to_string(bytes) + " bytes where it has " + std::to_string(each)};
}

// Of a block: its rows of each state of the group. Of a slot: its numbers of each.
std::vector<Exec::Piece> Exec::pieces(std::uint32_t what, std::uint32_t group, std::int32_t id) const {
  std::vector<Piece> all;
  const auto n = static_cast<std::uint64_t>(id);
  for (std::uint32_t i = 0; i < program_.n_tensors(); ++i) {
    const mekik_tensor& t = program_.tensor(i);
    if (what == MEKIK_WHAT_SLOT && t.role == MEKIK_ROLE_SLOT) {
      const SlotPlan& s = plan_.slots[i];
      all.push_back({s.page, s.offset + n * s.numbers * 4, s.numbers * 4});
    } else if (what == MEKIK_WHAT_BLOCK && t.role == MEKIK_ROLE_STATE && t.group == group) {
      const StatePlan& s = plan_.states[i];
      all.push_back({s.page, s.offset + n * s.block_bytes, s.block_bytes});
    }
  }
  return all;
}

// Between a block or slot and the host, as many pieces at a time as the staging buffer holds.
void Exec::carry(std::uint32_t what, std::uint32_t group, std::int32_t id, std::byte* host, bool out) {
  const std::vector<Piece> all = pieces(what, group, id);
  for (std::size_t first = 0; first < all.size();) {
    std::uint64_t bytes = 0;
    std::size_t last = first;
    for (; last < all.size() && bytes + all[last].bytes <= staging_.bytes(); ++last) bytes += all[last].bytes;
    if (!out) std::memcpy(staging_.data(), host, bytes);
    begin(copies_);
    constexpr VkAccessFlags wrote = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier(copies_, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, wrote, VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
    std::uint64_t at = 0;
    for (std::size_t i = first; i < last; at += all[i++].bytes) {
      const VkBuffer pool = pools_[all[i].page].handle();
      const VkBufferCopy copy = out ? VkBufferCopy{all[i].offset, at, all[i].bytes} : VkBufferCopy{at, all[i].offset, all[i].bytes};
      vk_.vkCmdCopyBuffer(copies_, out ? pool : staging_.handle(), out ? staging_.handle() : pool, 1, &copy);
    }
    barrier(copies_, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    check(vk_.vkEndCommandBuffer(copies_), "recording a copy");
    device_.run(copies_);
    if (out) std::memcpy(host, staging_.data(), bytes);
    host += bytes;
    first = last;
  }
}

std::uint64_t Exec::read(std::uint32_t what, std::uint32_t group, std::int32_t id, void* to, std::uint64_t bytes) {
  check_place(what, group, id);
  check_bytes(what, group, bytes);
  carry(what, group, id, static_cast<std::byte*>(to), true);
  return ++ticket_;
}

std::uint64_t Exec::write(std::uint32_t what, std::uint32_t group, std::int32_t id, const void* from, std::uint64_t bytes) {
  check_place(what, group, id);
  check_bytes(what, group, bytes);
  carry(what, group, id, const_cast<std::byte*>(static_cast<const std::byte*>(from)), false);  // only read
  return ++ticket_;
}

void Exec::check_move(const mekik_move& m) const {
  const bool rows = m.what == MEKIK_WHAT_ROWS;
  const std::uint32_t what = rows ? std::uint32_t{MEKIK_WHAT_BLOCK} : m.what;
  check_place(what, m.group, m.from);
  check_place(what, m.group, m.to);
  const std::uint64_t size = limits_.block_tokens;
  if (rows && (m.n_rows > size || m.from_row > size - m.n_rows || m.to_row > size - m.n_rows))
    throw Error{MEKIK_E_INVALID, "rows past the end of a block of " + std::to_string(size)};
}

void Exec::record_move(VkCommandBuffer commands, const Piece& from, const Piece& to) const {
  const VkBuffer pool = pools_[from.page].handle();
  if (from.bytes == 0 || from.offset == to.offset) return;
  const bool overlap = from.offset < to.offset + to.bytes && to.offset < from.offset + from.bytes;
  between_copies(commands);
  if (!overlap) {
    const VkBufferCopy copy{from.offset, to.offset, from.bytes};
    return vk_.vkCmdCopyBuffer(commands, pool, pool, 1, &copy);
  }
  const VkBufferCopy away{from.offset, 0, from.bytes}, back{0, to.offset, from.bytes};
  vk_.vkCmdCopyBuffer(commands, pool, staging_.handle(), 1, &away);
  between_copies(commands);
  vk_.vkCmdCopyBuffer(commands, staging_.handle(), pool, 1, &back);
}

std::uint64_t Exec::move(Strided<const mekik_move> moves) {
  for (std::size_t i = 0; i < moves.size(); ++i) check_move(moves[i]);
  begin(copies_);
  constexpr VkAccessFlags both = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier(copies_, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
          VK_PIPELINE_STAGE_TRANSFER_BIT, both);
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const mekik_move& m = moves[i];
    const bool rows = m.what == MEKIK_WHAT_ROWS;
    const std::uint32_t what = rows ? std::uint32_t{MEKIK_WHAT_BLOCK} : m.what;
    std::vector<Piece> from = pieces(what, m.group, m.from), to = pieces(what, m.group, m.to);
    for (std::size_t j = 0; j < from.size(); ++j) {
      if (rows) {
        const std::uint64_t row = from[j].bytes / limits_.block_tokens;
        from[j].offset += m.from_row * row;
        to[j].offset += m.to_row * row;
        from[j].bytes = to[j].bytes = m.n_rows * row;
      }
      record_move(copies_, from[j], to[j]);
    }
  }
  check(vk_.vkEndCommandBuffer(copies_), "recording a copy");
  device_.run(copies_);
  return ++ticket_;
}

}  // namespace mekik::vulkan
