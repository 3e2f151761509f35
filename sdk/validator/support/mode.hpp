// One way to be a host: every check of behaviour runs a component's workout under one or several of these.
#pragma once
#include <cstdint>
#include <random>
#include <set>
#include <string>

#include "support/arena.hpp"

namespace mekik::validate {

using Random = std::mt19937_64;
inline std::uint64_t below(Random& r, std::uint64_t n) { return n == 0 ? 0 : r() % n; }

struct Mode {
  std::uint64_t seed = 1;
  Flush flush = Flush::end;       // where the trap of lent memory lies
  std::uint32_t extra = 0;        // bytes more in every element of an array of structs, filled with 0xDE
  unsigned char poison = 0xDE;    // what outputs hold before the call
  bool moving = false;            // every call comes from another thread
  bool hostile = false;           // calls may fail, if they say why
  std::set<std::string> missing;  // services the host lacks
  std::uint32_t width = 2;        // of mekik.tasks/1
  bool backwards = false;         // tasks run in falling order
  std::uint64_t fail_alloc = 0;   // this call of mekik.memory/1 answers NULL, from 1
  double scale = 1;               // how much of the workout is done
};

}  // namespace mekik::validate
