// The heap of a check: what the plugin takes from malloc is told apart from the validator's own, counted, framed, filled, refused at the
// n-th time, or given pages of its own that trap. Without interposition (sanitizers) all of this does nothing.
#pragma once
#include <cstdint>
#include <string>

namespace mekik::validate {

struct HeapMode {
  unsigned char fill = 0xA5;  // fresh memory of the plugin
  std::uint64_t fail_at = 0;  // this allocation of the plugin fails, counted from 1; 0: none
  bool fail_after = false;    // and all behind it
  bool guard = false;         // a trap behind each block, and freed ones stay gone
};
void set_heap(const HeapMode& mode);  // also starts counting anew

struct HeapUse {
  std::int64_t blocks, bytes;  // of the plugin, not freed
  std::uint64_t allocations;   // since set_heap
  bool failed;                 // an allocation was refused since set_heap
};
HeapUse heap_use();
// Errors with blocks (freed twice, written past) since the last call.
std::string heap_faults();
bool heap_watched();
bool in_host_code();  // this thread is not in the plugin

// Threads belong to the plugin unless they say otherwise: its own threads never do.
class HostScope {  // the validator's code runs
 public:
  HostScope();
  ~HostScope();
  HostScope(const HostScope&) = delete;
  HostScope& operator=(const HostScope&) = delete;

 private:
  bool before_;
};
class PluginScope {  // the plugin's code runs
 public:
  PluginScope();
  ~PluginScope();
  PluginScope(const PluginScope&) = delete;
  PluginScope& operator=(const PluginScope&) = delete;

 private:
  bool before_;
};

}  // namespace mekik::validate
