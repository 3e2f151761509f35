#include "support/heap.hpp"

#include <errno.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "support/arena.hpp"

namespace mekik::validate {

namespace {

thread_local bool host_code = false;

struct Counters {
  std::atomic<std::int64_t> blocks{0}, bytes{0};
  std::atomic<std::uint64_t> allocations{0};
  std::atomic<bool> failed{false}, on{false};
  HeapMode mode;
  std::atomic<int> wrong{0};
  char what[200] = "";
};
Counters counters;

void complain(const char* what, std::size_t size) {
  if (counters.wrong.fetch_add(1) == 0) std::snprintf(counters.what, sizeof counters.what, what, size);
}

}  // namespace

HostScope::HostScope() : before_{host_code} { host_code = true; }
HostScope::~HostScope() { host_code = before_; }
PluginScope::PluginScope() : before_{host_code} { host_code = false; }
PluginScope::~PluginScope() { host_code = before_; }

bool in_host_code() { return host_code; }

void set_heap(const HeapMode& mode) {
  counters.mode = mode;
  counters.allocations = 0;
  counters.failed = false;
  counters.on = true;
}
HeapUse heap_use() { return {counters.blocks, counters.bytes, counters.allocations, counters.failed}; }
std::string heap_faults() {
  if (counters.wrong.exchange(0) == 0) return {};
  return counters.what;
}

}  // namespace mekik::validate

#ifdef MEKIK_VALIDATE_NO_HEAP
namespace mekik::validate {
bool heap_watched() { return false; }
}  // namespace mekik::validate
#else
extern "C" {
void* __libc_malloc(std::size_t);
void __libc_free(void*);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace mekik::validate {

namespace {

constexpr std::uint32_t kAlive = 0x6B656D21, kFreed = 0x64616564;
constexpr std::size_t kFrame = 16;  // marked bytes behind a block
constexpr unsigned char kMark = 0xFD;

struct Header {
  void* base;  // what to free; of a block with traps its Piece
  std::size_t size;
  std::uint32_t magic, of_plugin;
  std::uint64_t trapped;
};
static_assert(sizeof(Header) == 32);

Header* header_of(void* block) { return static_cast<Header*>(block) - 1; }

bool refuse() {
  const std::uint64_t n = ++counters.allocations;
  const HeapMode& m = counters.mode;
  if (m.fail_at == 0 || (m.fail_after ? n < m.fail_at : n != m.fail_at)) return false;
  counters.failed = true;
  errno = ENOMEM;
  return true;
}

void* make(std::size_t size, std::size_t align, bool zero) {
  const bool plugin = !host_code && counters.on;
  if (size > (std::size_t{1} << 46)) return errno = ENOMEM, nullptr;
  if (plugin && refuse()) return nullptr;
  if (align < 16) align = 16;
  Header* header = nullptr;
  char* block = nullptr;
  const std::size_t front = (sizeof(Header) + align - 1) / align * align;
  if (plugin && counters.mode.guard && size <= (1u << 20) && align <= 4096 && room() > (std::size_t{1} << 30)) {
    Piece* piece = lend(front + (size + 15) / 16 * 16, align, "a block of its own", Flush::end);
    block = static_cast<char*>(data(piece)) + front;
    std::memset(block + size, kMark, (16 - size % 16) % 16);
    header = header_of(block);
    *header = {piece, size, kAlive, 1, 1};
  } else {
    void* base = align > 16 ? __libc_memalign(align, front + size + kFrame) : __libc_malloc(front + size + kFrame);
    if (base == nullptr) return errno = ENOMEM, nullptr;
    block = static_cast<char*>(base) + front;
    std::memset(block + size, kMark, kFrame);
    header = header_of(block);
    *header = {base, size, kAlive, plugin ? 1u : 0u, 0};
  }
  if (zero) std::memset(block, 0, size);
  else if (plugin) std::memset(block, counters.mode.fill, size);
  if (plugin) ++counters.blocks, counters.bytes += static_cast<std::int64_t>(size);
  return block;
}

void drop(void* block) {
  if (block == nullptr) return;
  Header* header = header_of(block);
  if (header->magic != kAlive) return complain(header->magic == kFreed ? "freed a block twice" : "freed what is no block of the heap", 0);
  const std::size_t size = header->size, frame = header->trapped != 0 ? (16 - size % 16) % 16 : kFrame;
  for (std::size_t i = 0; i < frame; ++i)
    if (static_cast<unsigned char*>(block)[size + i] != kMark)
      complain("wrote past the end of a block of %zu bytes that it had allocated", size);
  if (header->of_plugin != 0) {
    --counters.blocks, counters.bytes -= static_cast<std::int64_t>(size);
    std::memset(block, 0xDD, size);
  }
  header->magic = kFreed;
  if (header->trapped != 0) revoke(static_cast<Piece*>(header->base));
  else __libc_free(header->base);
}

}  // namespace

bool heap_watched() { return true; }

}  // namespace mekik::validate

// The program's own, which the dynamic linker prefers to the C library's for everything that is loaded.
extern "C" {
using namespace mekik::validate;
__attribute__((visibility("default"))) void* malloc(std::size_t size) { return make(size, 16, false); }
__attribute__((visibility("default"))) void free(void* block) { drop(block); }
__attribute__((visibility("default"))) void* calloc(std::size_t n, std::size_t size) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(n, size, &all)) return errno = ENOMEM, nullptr;
  return make(all, 16, true);
}
__attribute__((visibility("default"))) void* realloc(void* block, std::size_t size) {
  if (block == nullptr) return make(size, 16, false);
  if (size == 0) return drop(block), nullptr;
  void* other = make(size, 16, false);
  if (other == nullptr) return nullptr;
  const std::size_t old = header_of(block)->size;
  std::memcpy(other, block, old < size ? old : size);
  drop(block);
  return other;
}
__attribute__((visibility("default"))) void* memalign(std::size_t align, std::size_t size) { return make(size, align, false); }
__attribute__((visibility("default"))) void* aligned_alloc(std::size_t align, std::size_t size) { return make(size, align, false); }
__attribute__((visibility("default"))) int posix_memalign(void** out, std::size_t align, std::size_t size) {
  void* block = make(size, align, false);
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}
__attribute__((visibility("default"))) std::size_t malloc_usable_size(void* block) { return block == nullptr ? 0 : header_of(block)->size; }
}
#endif
