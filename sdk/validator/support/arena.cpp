#include "support/arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mekik::validate {

namespace {

constexpr std::size_t kSpace = std::size_t{1} << 38;  // of addresses, which are never used twice; memory comes page by page
constexpr std::size_t kPieces = std::size_t{1} << 22;
constexpr unsigned char kMark = 0xC5;

struct State {
  std::uintptr_t base = 0;
  Piece* pieces = nullptr;
  std::atomic<std::size_t> used{0}, n{0};
  std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

  State() {
    void* space = mmap(nullptr, kSpace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void* list = mmap(nullptr, kPieces * sizeof(Piece), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED || list == MAP_FAILED) std::abort();
    base = reinterpret_cast<std::uintptr_t>(space);
    pieces = static_cast<Piece*>(list);
  }
};
State& state() {
  static State s;
  return s;
}

void protect(const Piece* p, int how) { mprotect(reinterpret_cast<void*>(p->first), p->last - p->first, how); }

bool marked(std::uintptr_t from, std::uintptr_t to, std::uintptr_t& where) {
  for (std::uintptr_t at = from; at < to; ++at)
    if (*reinterpret_cast<const unsigned char*>(at) != kMark) {
      where = at;
      return false;
    }
  return true;
}

std::string bytes(std::uintptr_t n) { return std::to_string(n) + (n == 1 ? " byte" : " bytes"); }

}  // namespace

std::size_t room() {
  const State& s = state();
  return s.n.load() + 1 >= kPieces ? 0 : kSpace - s.used.load();
}

Piece* lend(std::size_t size, std::size_t align, const char* name, Flush flush) {
  State& s = state();
  if (align == 0) align = 1;
  const std::size_t pages = (size + align + s.page - 1) / s.page + (align > s.page ? align / s.page : 0);
  const std::size_t whole = (pages + 1) * s.page;  // and a page that traps behind it; the one before belongs to the piece before
  const std::size_t at = s.used.fetch_add(whole);
  const std::size_t index = s.n.fetch_add(1);
  if (at + whole + s.page > kSpace || index >= kPieces) std::abort();
  Piece* p = &s.pieces[index];
  p->first = s.base + s.page + at;
  p->last = p->first + pages * s.page;
  if (flush == Flush::end) p->begin = (p->last - size) / align * align;
  else p->begin = (p->first + align - 1) / align * align;
  p->end = p->begin + size;
  std::snprintf(p->name, sizeof p->name, "%s", name);
  p->state = Piece::writable;
  protect(p, PROT_READ | PROT_WRITE);
  if (pages <= 64) {  // larger ones are marked by the page of zeros beside them: not worth touching
    std::memset(reinterpret_cast<void*>(p->first), kMark, p->begin - p->first);
    std::memset(reinterpret_cast<void*>(p->end), kMark, p->last - p->end);
  }
  return p;
}

void freeze(Piece* piece) {
  if (piece->state != Piece::writable) return;
  protect(piece, PROT_READ);
  piece->state = Piece::frozen;
}

std::string revoke(Piece* piece) {
  std::string out;
  if (piece->state == Piece::revoked) return out;
  std::uintptr_t where = 0;
  if (piece->state == Piece::writable && (piece->last - piece->first) / state().page <= 64) {
    if (!marked(piece->end, piece->last, where)) out = "wrote " + bytes(where - piece->end) + " past the end of `" + piece->name + "`";
    else if (!marked(piece->first, piece->begin, where)) out = "wrote before the beginning of `" + std::string{piece->name} + "`";
  }
  piece->state = Piece::revoked;
  protect(piece, PROT_NONE);
  madvise(reinterpret_cast<void*>(piece->first), piece->last - piece->first, MADV_DONTNEED);
  return out;
}

std::string explain(std::uintptr_t address, bool write) {
  const State& s = state();
  if (address < s.base || address >= s.base + kSpace) return {};
  const std::string verb = write ? "wrote to" : "read";
  const Piece* before = nullptr;
  const std::size_t n = s.n.load();
  for (std::size_t i = n; i > 0; --i) {
    const Piece& p = s.pieces[i - 1];
    if (address >= p.first && address < p.last) {
      if (p.state == Piece::revoked) return verb + " `" + p.name + "` after it was taken back: the pointer was kept";
      if (p.state == Piece::frozen) return "wrote to `" + std::string{p.name} + "`, which is not its own to change";
    }
    if (p.first <= address && (before == nullptr || p.first > before->first)) before = &p;
    // Flush to the front: the trap lies before the piece.
    if (address < p.first && p.first - address <= s.page && p.begin == p.first && p.state != Piece::revoked)
      return verb + " " + bytes(p.begin - address) + " before the beginning of `" + p.name + "`";
  }
  if (before == nullptr) return verb + " memory that is nobody's";
  if (before->state == Piece::revoked) return verb + " `" + before->name + "` after it was taken back: the pointer was kept";
  return verb + " " + bytes(address - before->end) + " past the end of `" + before->name + "` (" + bytes(before->end - before->begin) + ")";
}

}  // namespace mekik::validate
