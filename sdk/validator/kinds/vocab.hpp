// A vocabulary of made-up pieces, in memory that outlives whoever was created with it, and no longer.
#pragma once
#include <mekik/plugin.h>

#include <string>
#include <vector>

#include "run/shared.hpp"
#include "support/call.hpp"
#include "support/heap.hpp"
#include "support/lent.hpp"

namespace mekik::validate {

class Vocabulary {
 public:
  explicit Vocabulary(std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) {
      std::string piece = i < 256 ? std::string(1, static_cast<char>(i)) : (i % 2 != 0 ? " w" : "w") + std::to_string(i);
      if (i == n - 1) piece = "<end>";
      pieces_.push_back(lend(piece.size(), 1, "a piece of the vocabulary"));
      piece.copy(static_cast<char*>(data(pieces_.back())), piece.size());
      freeze(pieces_.back());
    }
    table_ = lend(sizeof(mekik_vocab), alignof(mekik_vocab), "mekik_vocab");
    const mekik_vocab raw{sizeof(mekik_vocab), n, this, piece, flags};
    std::memcpy(data(table_), &raw, sizeof raw);
    freeze(table_);
  }
  ~Vocabulary() {
    for (Piece* p : pieces_) revoke(p);
    revoke(table_);
  }
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;
  const mekik_vocab* raw() const { return static_cast<const mekik_vocab*>(data(table_)); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(pieces_.size()); }

 private:
  static const Vocabulary* of(const void* self, std::int32_t id) {
    const auto* v = static_cast<const Vocabulary*>(self);
    if (id >= 0 && static_cast<std::size_t>(id) < v->pieces_.size()) return v;
    fault(called() + ": asked the vocabulary for token " + std::to_string(id) + " of " + std::to_string(v->pieces_.size()));
    return nullptr;
  }
  static mekik_str piece(const void* self, std::int32_t id) {
    const HostScope scope;
    const Vocabulary* v = of(self, id);
    if (v == nullptr) return {"", 0};
    const Piece* p = v->pieces_[static_cast<std::size_t>(id)];
    return {static_cast<const char*>(data(p)), validate::size(p)};
  }
  static std::uint32_t flags(const void* self, std::int32_t id) {
    const HostScope scope;
    const Vocabulary* v = of(self, id);
    return v != nullptr && static_cast<std::uint32_t>(id) + 1 == v->size() ? MEKIK_TOKEN_END | MEKIK_TOKEN_SPECIAL : 0;
  }
  std::vector<Piece*> pieces_;
  Piece* table_ = nullptr;
};

}  // namespace mekik::validate
