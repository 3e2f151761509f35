// Tables that a tokenizer builds once and then only reads: strings in one block, and two open-addressing hash maps.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace mekik::text {

// Strings by index, in one allocation. All bytes together stay below 4 GiB (checked by who fills it).
class StringTable {
 public:
  void reserve(std::size_t strings, std::size_t bytes) {
    offsets_.reserve(strings + 1);
    bytes_.reserve(bytes);
  }
  void push(std::string_view text) {
    bytes_ += text;
    offsets_.push_back(static_cast<std::uint32_t>(bytes_.size()));
  }
  std::size_t size() const { return offsets_.size() - 1; }
  std::string_view operator[](std::size_t i) const {
    return {bytes_.data() + offsets_[i], static_cast<std::size_t>(offsets_[i + 1] - offsets_[i])};
  }

 private:
  std::string bytes_;
  std::vector<std::uint32_t> offsets_{0};
};

inline std::uint64_t mix_hash(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  return x ^ (x >> 32);
}

inline std::uint64_t hash_text(std::string_view text) {
  std::uint64_t h = text.size() * 0x9E3779B97F4A7C15u;
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    h = mix_hash(h ^ word) * 0x9FB21C651E98DF25u;
  }
  std::uint64_t tail = 0;
  if (at < text.size()) std::memcpy(&tail, text.data() + at, text.size() - at);
  return mix_hash(h ^ tail);
}

// Text -> index into a StringTable, which must outlive the calls.
class TextIndex {
 public:
  void reserve(std::size_t n) { slots_.assign(std::bit_ceil(n * 4 / 3 + 8), Slot{}); }
  // Adds `id`, whose text is strings[id]; returns the id that already has this text, or -1. At most as many as reserved.
  std::int32_t add(const StringTable& strings, std::int32_t id) {
    const std::string_view text = strings[static_cast<std::size_t>(id)];
    const std::uint64_t hash = hash_text(text);
    Slot& slot = slots_[place(strings, text, hash)];
    if (slot.id >= 0) return slot.id;
    slot = {static_cast<std::uint32_t>(hash >> 32), id};
    return -1;
  }
  std::int32_t find(const StringTable& strings, std::string_view text) const {
    return slots_.empty() ? -1 : slots_[place(strings, text, hash_text(text))].id;
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t id = -1;
  };
  std::size_t place(const StringTable& strings, std::string_view text, std::uint64_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    for (; slots_[at].id >= 0; at = (at + 1) & mask)
      if (slots_[at].hash == static_cast<std::uint32_t>(hash >> 32) && strings[static_cast<std::size_t>(slots_[at].id)] == text) break;
    return at;
  }
  std::vector<Slot> slots_;
};

// A pair of 32-bit numbers -> a value. `Value` is small and copied.
template <class Value>
class PairIndex {
 public:
  void reserve(std::size_t n) { slots_.assign(std::bit_ceil(n * 4 / 3 + 8), Slot{}); }
  // False when the pair is there already. At most as many as reserved.
  bool add(std::uint32_t a, std::uint32_t b, Value value) {
    Slot& slot = slots_[place(key(a, b))];
    if (slot.key != kEmpty) return false;
    slot = {key(a, b), value};
    return true;
  }
  const Value* find(std::uint32_t a, std::uint32_t b) const {
    const Slot& slot = slots_[place(key(a, b))];
    return slot.key == kEmpty ? nullptr : &slot.value;
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};  // no pair: ids stay below 2^31
  struct Slot {
    std::uint64_t key = kEmpty;
    Value value{};
  };
  static std::uint64_t key(std::uint32_t a, std::uint32_t b) { return (std::uint64_t{a} << 32) | b; }
  std::size_t place(std::uint64_t k) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = mix_hash(k) & mask;
    while (slots_[at].key != kEmpty && slots_[at].key != k) at = (at + 1) & mask;
    return at;
  }
  std::vector<Slot> slots_;
};

}  // namespace mekik::text
