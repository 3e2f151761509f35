#include "server/openai/chat_logprobs.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "server/openai/answer.hpp"

namespace mekik::server::openai {

namespace {

json::array byte_list(std::string_view bytes) {
  json::array list;
  for (const char c : bytes) list.emplace_back(static_cast<unsigned>(static_cast<unsigned char>(c)));
  return list;
}

}  // namespace

// token, logprob, bytes. A special token that the text does not show has no bytes.
json::object ChatLogprobs::entry(std::int32_t id, float logprob) const {
  json::object out;
  const bool known = id >= 0 && static_cast<std::uint32_t>(id) < tokenizer_.size();
  const bool special = known && (tokenizer_.flags(id) & text::kTokenSpecial) != 0;
  const std::string_view bytes = !known ? std::string_view{} : special ? tokenizer_.token(id) : tokenizer_.piece(id);
  out["token"] = utf8_replace_invalid(bytes);
  out["logprob"] = logprob_number(logprob);
  out["bytes"] = nullptr;
  if (known && (!special || show_special_)) out["bytes"] = byte_list(bytes);
  return out;
}

json::object ChatLogprobs::entry(const Waiting& of, const std::string& bytes, bool whole) const {
  json::object out = entry(of.token.id, of.token.logprob);
  if (!whole && out["bytes"].is_array()) out["bytes"] = byte_list(bytes);
  json::array top;
  for (const engine::TokenLogprob& other : of.token.top) top.push_back(entry(other.id, other.logprob));
  out["top_logprobs"] = std::move(top);
  return out;
}

json::array ChatLogprobs::take(std::size_t bytes, bool final) {
  json::array out;
  for (; !waiting_.empty(); waiting_.pop_front()) {
    const Waiting& front = waiting_.front();
    // A part of a character is where the character's text is.
    const std::size_t begin = front.place.begin, end = std::max(front.place.end, begin + 1);
    if (end > bytes && !final) break;
    while (!content_.empty() && content_.front().end <= begin) content_.pop_front();
    std::string shown;
    bool there = false;
    for (const Content& piece : content_) {
      if (piece.begin >= end) break;
      there = true;
      if (piece.text.empty()) continue;
      const std::size_t from = std::max(begin, piece.begin), to = std::min(front.place.end, piece.end);
      if (from < to) shown += piece.text.substr(from - piece.begin, to - from);
    }
    const bool whole = !front.place.cut && shown.size() == front.place.end - begin;
    // Behind the last text there are only parts of characters, and tokens that were never shown.
    if (there || (final && front.place.end == begin && content_.empty() && begin >= bytes)) out.push_back(entry(front, shown, whole));
  }
  return out;
}

}  // namespace mekik::server::openai
