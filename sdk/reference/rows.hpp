// What operations work on: rows of a buffer, numbers of rows, stored state, and the sequences of a step. All borrow.
#pragma once
#include <mekik/plugin.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>

#include <mekik/head_form.hpp>
#include <mekik/numbers.hpp>

namespace mekik::reference {

// n rows of shape [outer][last], contiguous within the row, `stride` elements from one row to the next.
template <class T>
struct Matrix {
  T* data = nullptr;
  std::size_t n = 0, stride = 0, outer = 1, last = 1;
  std::size_t size() const { return outer * last; }
  T* row(std::size_t i) const { return data + i * stride; }
};
using Rows = Matrix<float>;
using Ids = Matrix<const std::int32_t>;

// Threads to run on; without `run`, the caller's. run() calls fn(ctx, 0 .. n-1), in any order, and returns when all are done.
struct Threads {
  void (*run)(std::uint32_t n, void (*fn)(void*, std::uint32_t), void* ctx) = nullptr;
};
inline constexpr std::size_t kMaxTasks = 64;
// f(i) for every i below n. Which thread computes what never matters: each i is computed alone, from its inputs.
template <class F>
void each(const Threads& threads, std::size_t n, F&& f) {
  struct Work {
    F* f;
    std::size_t n, tasks;
    std::exception_ptr thrown;  // of one of them: nothing may be thrown through the host's threads
    std::atomic<bool> failed{false};
  } work{&f, n, std::min(n, kMaxTasks), nullptr};
  const auto part = [](void* ctx, std::uint32_t i) {
    Work& w = *static_cast<Work*>(ctx);
    try {
      for (std::size_t j = w.n * i / w.tasks; j < w.n * (i + 1) / w.tasks; ++j) (*w.f)(j);
    } catch (...) {
      if (!w.failed.exchange(true)) w.thrown = std::current_exception();
    }
  };
  if (threads.run != nullptr && work.tasks > 1) threads.run(static_cast<std::uint32_t>(work.tasks), part, &work);
  else
    for (std::uint32_t i = 0; i < work.tasks; ++i) part(&work, i);
  if (work.thrown) std::rethrow_exception(work.thrown);
}

// One step: which sequence each token belongs to, and what of its sequence it sees.
struct Step {
  const mekik_batch* batch = nullptr;
  std::span<const std::uint32_t> seq_of;  // [n_tokens]
  std::uint32_t block_tokens = 1;
  Threads threads;

  std::uint64_t n_tokens() const { return batch->n_tokens; }
  std::uint64_t begin(std::uint32_t seq) const { return static_cast<std::uint64_t>(batch->seq_start[seq]); }
  std::uint64_t end(std::uint32_t seq) const { return static_cast<std::uint64_t>(batch->seq_start[seq + 1]); }
  std::uint64_t context(std::uint32_t seq) const { return static_cast<std::uint64_t>(batch->context_len[seq]); }
};

// How the rows of a STATE tensor are stored: as numbers, or by head as integers under a scale.
struct StateForm {
  std::uint32_t num = 0;
  const HeadForm* head = nullptr;

  // Of n numbers with a scale of their own: the key or the value of a head.
  std::size_t part_bytes(std::size_t n) const {
    return head == nullptr ? n * num_size(num) : (n * head->bits + 7) / 8 + sizeof(std::uint16_t);
  }
  // Of a key and a value that are `size` numbers together; where both are odd, codes of four bits take a byte more.
  std::size_t head_bytes(std::size_t size) const { return head == nullptr ? part_bytes(size) : part_bytes(size) + part_bytes(0) + 1; }
  std::size_t row_bytes(std::size_t heads, std::size_t size) const { return heads * head_bytes(size / heads); }
};

// The rows of one STATE tensor: in each block of its group, block_tokens rows of `size` numbers from `offset` on.
struct State {
  std::byte* pool = nullptr;
  std::uint64_t block_bytes = 0, offset = 0;
  StateForm form;
  std::uint32_t group = 0;
  std::size_t size = 0, heads = 1;

  // Where row `position` of a sequence is. Its block must have been checked.
  std::byte* row(const Step& step, std::uint32_t seq, std::uint64_t position) const {
    const std::int32_t block = step.batch->blocks[group][std::uint64_t{seq} * step.batch->max_blocks + position / step.block_tokens];
    return pool + static_cast<std::uint64_t>(block) * block_bytes + offset + position % step.block_tokens * form.row_bytes(heads, size);
  }
  // Numbers first .. first + n of a head of a row: its key (first is 0) or its value.
  void store(std::byte* row, std::size_t h, std::size_t first, std::size_t n, const float* x) const;
  void load(const std::byte* row, std::size_t h, std::size_t first, std::size_t n, float* x) const;
};

// One SLOT tensor: `size` F32 numbers in every slot.
struct Slot {
  std::byte* pool = nullptr;
  std::uint64_t slot_bytes = 0, offset = 0;
  std::size_t size = 0;
  float* at(std::int32_t slot) const { return reinterpret_cast<float*>(pool + static_cast<std::uint64_t>(slot) * slot_bytes + offset); }
};

}  // namespace mekik::reference
