// Memory that is lent to a plugin: each piece ends (or begins) at a page that nobody may touch, can be made read-only, and is taken back
// for good. Whoever touches it then is caught in the act, with the name of the piece.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace mekik::validate {

struct Piece {
  std::uintptr_t begin, end;   // what was asked for
  std::uintptr_t first, last;  // its pages
  char name[48];
  enum State : std::uint8_t { writable, frozen, revoked } state;
};

enum class Flush { end, front };  // which side is next to a page that traps

// `size` may be 0: every access traps. The bytes around it within its pages are marked and looked at when it is taken back. Thread: any.
Piece* lend(std::size_t size, std::size_t align, const char* name, Flush flush = Flush::end);
inline void* data(const Piece* p) { return reinterpret_cast<void*>(p->begin); }
inline std::size_t size(const Piece* p) { return p->end - p->begin; }
void freeze(Piece* piece);
// Empty, or how the bytes beside it were changed.
std::string revoke(Piece* piece);
// What an access to this address means, or empty: not one of ours. Only reads memory of its own.
std::string explain(std::uintptr_t address, bool write);
// How much can still be lent.
std::size_t room();

}  // namespace mekik::validate
