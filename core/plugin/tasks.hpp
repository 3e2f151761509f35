// The threads behind mekik.tasks/1.
#pragma once
#include <cstdint>
#include <memory>

namespace mekik::plugin {

// `width` threads, the caller's included. They start at first use and sleep while there is nothing to do.
class Tasks {
 public:
  explicit Tasks(std::uint32_t width);
  ~Tasks();
  std::uint32_t width() const { return width_; }
  void set_width(std::uint32_t width);  // before the first parallel()
  // Runs fn(ctx, 0 .. n-1), each once, and returns when all are done. [any thread]: while another caller's tasks run, or from inside a
  // task, the calling thread does all of them itself. Every pool thread computes in the default floating-point mode.
  void parallel(std::uint32_t n, void (*fn)(void* ctx, std::uint32_t i), void* ctx);

 private:
  struct Pool;
  std::uint32_t width_ = 1;
  std::unique_ptr<Pool> pool_;
};

}  // namespace mekik::plugin
