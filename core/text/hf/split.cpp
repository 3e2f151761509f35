#include "text/hf/split.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace mekik::text::hf {

namespace {

// Delimiters join the part before them, or, read backwards, the one after them.
std::vector<Part> joined(const std::vector<Part>& parts, bool contiguous) {
  std::vector<Part> out;
  bool before = false;
  for (const Part& part : parts) {
    const bool joins = contiguous ? part.match == before : part.match && !before;
    if (joins && !out.empty()) {
      out.back().begin = std::min(out.back().begin, part.begin);
      out.back().end = std::max(out.back().end, part.end);
    } else {
      out.push_back(part);
    }
    before = part.match;
  }
  return out;
}

}  // namespace

Result<Delimiters> read_delimiters(const Section& section, std::string_view key, Delimiters fallback) {
  constexpr std::array<std::pair<std::string_view, Delimiters>, 5> kNames{{{"Removed", Delimiters::removed},
                                                                           {"Isolated", Delimiters::isolated},
                                                                           {"MergedWithPrevious", Delimiters::merged_with_previous},
                                                                           {"MergedWithNext", Delimiters::merged_with_next},
                                                                           {"Contiguous", Delimiters::contiguous}}};
  if (!section.has(key)) return fallback;
  MEKIK_TRY(name, section.need_text(key));
  for (const auto& [known, value] : kNames)
    if (name == known) return value;
  return section.wrong(key, "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

void arrange(const std::vector<Part>& parts, Delimiters how, std::uint32_t base, std::vector<Span>& out) {
  const auto put = [&](const Part& part) {
    if (part.end > part.begin) out.push_back({base + part.begin, base + part.end, -1});
  };
  if (how == Delimiters::removed || how == Delimiters::isolated) {
    for (const Part& part : parts)
      if (!part.match || how == Delimiters::isolated) put(part);
  } else if (how == Delimiters::merged_with_next) {
    const std::vector<Part> backwards = joined({parts.rbegin(), parts.rend()}, false);
    std::for_each(backwards.rbegin(), backwards.rend(), put);
  } else {
    const std::vector<Part> forwards = joined(parts, how == Delimiters::contiguous);
    std::for_each(forwards.begin(), forwards.end(), put);
  }
}

}  // namespace mekik::text::hf
