// Text on its way through normalizers and pre-tokenizers, with the places that its bytes came from.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "text/tokenizer.hpp"

namespace mekik::text::hf {

// What the steps may make of one text. A file of a kilobyte could ask for all memory and time there is: forty times "a" for "aa".
class Bound {
 public:
  explicit Bound(std::size_t bytes)
      : bytes_(bytes), size_(std::min<std::size_t>((std::size_t{1} << 20) + 64 * bytes, 0xFFFFFFFF)), work_(16 * size_) {}
  // Throws when a version of the text has so many bytes.
  void check(std::size_t bytes) const {
    if (bytes > size_) refuse();
  }
  // Counts a finished version: short ones, made again and again, take time, too.
  void spend(std::size_t bytes) {
    check(bytes);
    if (bytes > work_) refuse();
    work_ -= bytes;
  }

 private:
  [[noreturn]] void refuse() const {
    throw TextRefused{"makes more than " + human_bytes(size_) + " of a text of " + human_bytes(bytes_) + "; that has no end in sight"};
  }
  std::size_t bytes_, size_, work_;
};

// Runs one step of a tokenizer; a refusal then names it. `where`: "tokenizer.json.normalizer".
template <class Run>
void run_step(const std::string& where, const Run& run) {
  try {
    run();
  } catch (const TextRefused& refused) {
    throw TextRefused{where + " " + refused.what()};
  }
}

// Valid UTF-8. Where `tracked`, starts[i] is the byte of the original text that byte i stands for: Metaspace's "first" asks for
// it, and whether a token lies in trusted text.
struct Text {
  std::string bytes;
  std::vector<std::uint32_t> starts;
  bool tracked = false;
  Bound* bound = nullptr;
};

// Builds the next version of a text. What is put counts as coming from the place `from` of the text before.
class Rewriter {
 public:
  explicit Rewriter(const Text& before) : before_(before) {
    after_.tracked = before.tracked;
    after_.bound = before.bound;
    after_.bytes.reserve(before.bytes.size() + before.bytes.size() / 8);
    if (before.tracked) after_.starts.reserve(after_.bytes.capacity());
  }
  void keep(std::size_t begin, std::size_t end) {
    after_.bytes.append(before_.bytes, begin, end - begin);
    check();
    if (before_.tracked)
      after_.starts.insert(after_.starts.end(), before_.starts.begin() + static_cast<std::ptrdiff_t>(begin),
                           before_.starts.begin() + static_cast<std::ptrdiff_t>(end));
  }
  void put(std::string_view text, std::size_t from) {
    after_.bytes += text;
    place(from);
  }
  void put(char32_t c, std::size_t from) {
    append_utf8(after_.bytes, c);
    place(from);
  }
  std::string& bytes() { return after_.bytes; }  // what is appended here is placed by the next call of `place`
  void place(std::size_t from) {
    check();
    if (!before_.tracked) return;
    const std::uint32_t start = before_.starts.empty() ? 0 : before_.starts[from < before_.starts.size() ? from : from - 1];
    after_.starts.resize(after_.bytes.size(), start);
  }
  std::size_t size() const { return after_.bytes.size(); }
  Text take() {
    if (after_.bound != nullptr) after_.bound->spend(after_.bytes.size());
    return std::move(after_);
  }

 private:
  void check() const {
    if (after_.bound != nullptr) after_.bound->check(after_.bytes.size());
  }
  const Text& before_;
  Text after_;
};

// A stretch of a Text: one token that was found whole, or a word for the model.
struct Span {
  std::uint32_t begin = 0, end = 0;
  std::int32_t token = -1;
};

// What the pre-tokenizers work on.
struct Spans {
  Text text;
  std::vector<Span> spans;
};

}  // namespace mekik::text::hf
