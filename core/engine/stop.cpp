#include "engine/stop.hpp"

#include <algorithm>

namespace mekik::engine {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_{std::move(stops)} {}

std::string StopMatcher::push(std::string_view text, bool visible) {
  held_ += text;
  visible_.resize(held_.size(), visible);
  const std::string_view held = held_;
  for (std::size_t end = searched_ + 1; end <= held.size(); ++end) {
    std::size_t longest = 0;
    for (const auto& s : stops_)
      if (held.substr(0, end).ends_with(s)) longest = std::max(longest, s.size());
    if (longest == 0) continue;
    stopped_ = true;
    auto out = take(end - longest);
    held_.clear();
    visible_.clear();
    return out;
  }
  // The longest end of the text that may still become a stop string stays.
  std::size_t keep = 0;
  for (const auto& s : stops_) {
    for (std::size_t n = std::min(s.size() - 1, held.size()); n > keep; --n) {
      if (held.ends_with(std::string_view{s}.substr(0, n))) keep = n;
    }
  }
  auto out = take(held.size() - keep);
  searched_ = held_.size();
  return out;
}

std::string StopMatcher::finish() { return take(held_.size()); }

std::string StopMatcher::take(std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i)
    if (visible_[i]) out += held_[i];
  held_.erase(0, bytes);
  visible_.erase(visible_.begin(), visible_.begin() + static_cast<std::ptrdiff_t>(bytes));
  searched_ = 0;
  return out;
}

}  // namespace mekik::engine
