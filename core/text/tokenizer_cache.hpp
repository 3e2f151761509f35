// Short words and their ids, remembered within one encode call: natural text repeats itself.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "text/tokenizer_hash.hpp"

namespace mekik::text {

// Direct-mapped: a new word takes the place of the old one. Not thread-safe; one per call.
class WordCache {
 public:
  // Appends the ids of `word`; `encode` appends those of a word that is not remembered. Always the same word, always the same ids.
  template <class Encode>
  void encode(std::string_view word, std::vector<std::int32_t>& ids, const Encode& encode_new) {
    if (slots_.empty() || word.empty() || word.size() > kLongest) return encode_new();
    Slot& slot = slots_[hash_text(word) % kSlots];
    if (slot.length == word.size() && std::memcmp(slot.text.data(), word.data(), word.size()) == 0) {
      ids.insert(ids.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
      return;
    }
    const std::size_t before = ids.size();
    encode_new();
    const std::size_t count = ids.size() - before;
    if (count > slot.ids.size()) return;
    std::memcpy(slot.text.data(), word.data(), word.size());
    std::copy(ids.end() - static_cast<std::ptrdiff_t>(count), ids.end(), slot.ids.begin());
    slot.length = static_cast<std::uint8_t>(word.size());
    slot.count = static_cast<std::uint8_t>(count);
  }
  // For a text of this many bytes: the slots cost more than they give when the text is short.
  void prepare(std::size_t bytes) {
    if (bytes >= kWorthwhile && slots_.empty()) slots_.resize(kSlots);
  }

 private:
  static constexpr std::size_t kLongest = 18, kSlots = 2048, kWorthwhile = 2000;
  struct Slot {
    std::array<char, kLongest> text;
    std::uint8_t length = 0, count = 0;
    std::array<std::int32_t, 7> ids;
  };
  std::vector<Slot> slots_;
};

}  // namespace mekik::text
