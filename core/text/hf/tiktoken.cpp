// Vocabulary files of tiktoken (tiktoken.model, or a tokenizer.model of that kind): lines of a token in base64 and its rank, which is its
// id. They are described as the tokenizer.json that transformers would make of them.
#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "base/text.hpp"
#include "text/hf/charsmap.hpp"
#include "text/hf/files.hpp"
#include "text/hf/normalizers.hpp"

namespace mekik::text::hf {

namespace {

using Ranks = std::unordered_map<std::string, std::uint32_t>;

// How text is cut does not stand in the file. This is what transformers takes, and most models; Kimi's keeps Chinese apart.
constexpr std::string_view kUsual =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kKimi =
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Line {
  std::string token;
  std::uint32_t rank = 0;
};

std::optional<Line> read_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos) return std::nullopt;
  Line out;
  const auto [end, error] = std::from_chars(line.data() + space + 1, line.data() + line.size(), out.rank);
  auto token = decode_base64(line.substr(0, space));
  if (error != std::errc{} || end != line.data() + line.size() || !token || token->empty()) return std::nullopt;
  out.token = std::move(*token);
  return out;
}

// Each token is spelled in GPT-2's alphabet.
std::string spelled(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) out += letter_of_byte(static_cast<unsigned char>(byte));
  return out;
}

using Parts = std::pair<std::string, std::string>;

// What a token is merged of while only tokens before it are there: as a pair meets it, too. Where that leads to no pair, all pairs that it
// falls into.
std::vector<Parts> parts_of(const std::string& token, std::uint32_t rank, const Ranks& ranks) {
  std::vector<std::string> parts;
  for (const char byte : token) parts.emplace_back(1, byte);
  while (parts.size() > 2) {
    std::size_t best = 0;
    std::uint32_t least = rank;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
      if (const auto found = ranks.find(parts[i] + parts[i + 1]); found != ranks.end() && found->second < least) {
        best = i;
        least = found->second;
      }
    if (least == rank) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  if (parts.size() == 2) return {{std::move(parts[0]), std::move(parts[1])}};
  std::vector<Parts> all;
  for (std::size_t at = 1; at < token.size(); ++at)
    if (Parts pair{token.substr(0, at), token.substr(at)}; ranks.count(pair.first) != 0 && ranks.count(pair.second) != 0)
      all.push_back(std::move(pair));
  return all;
}

Status read_ranks(std::string_view text, std::vector<Line>& lines, Ranks& ranks) {
  constexpr std::size_t kMostTokens = std::size_t{1} << 22, kLongest = 1024;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view raw = text.substr(at, end - at);
    at = end + 1;
    if (raw.empty()) continue;
    const auto wrong = [&](const std::string& what) {
      return invalid("line " + std::to_string(number + 1) + " of the tiktoken vocabulary " + what);
    };
    auto line = read_line(raw);
    if (!line) return wrong("is not a token in base64, a space and its number; fetch the file again");
    if (line->token.size() > kLongest) return wrong("has a token of more than " + std::to_string(kLongest) + " bytes");
    if (line->rank >= kMostTokens) return wrong("has the number " + std::to_string(line->rank) + ", of which no vocabulary has as many");
    if (!ranks.emplace(line->token, line->rank).second) return wrong("has a token that was there before");
    lines.push_back(std::move(*line));
  }
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.rank < b.rank; });
  for (std::size_t i = 1; i < lines.size(); ++i)
    if (lines[i].rank == lines[i - 1].rank)
      return invalid("two tokens of the tiktoken vocabulary have the number " + std::to_string(lines[i].rank));
  return {};
}

json::object split_by(std::string_view pattern) {
  return {{"type", "Split"}, {"pattern", json::object{{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}

// The tokens behind the vocabulary, as tokenizer_config.json lists them; what it leaves out between them is reserved.
json::array added_tokens(std::int64_t first, const TokenConfig& config) {
  constexpr std::int64_t kMost = 1 << 20;
  json::array out;
  for (const AddedToken& token : config.listed()) {  // by their ids
    if (token.id < first || token.id > first + kMost) continue;
    for (auto id = first + static_cast<std::int64_t>(out.size()); id < token.id; ++id)
      out.push_back(
          json::object{{"id", id}, {"content", "<|reserved_token_" + std::to_string(id) + "|>"}, {"special", true}, {"normalized", false}});
    out.push_back(json::object{{"id", token.id}, {"content", token.content}, {"special", token.special}, {"normalized", false}});
  }
  return out;
}

}  // namespace

bool is_tiktoken(std::string_view bytes) { return read_line(bytes.substr(0, bytes.find('\n'))).has_value(); }

Result<json::object> describe_tiktoken(std::string_view bytes, const TokenConfig& config) {
  std::vector<Line> lines;
  Ranks ranks;
  MEKIK_CHECK_OK(read_ranks(bytes, lines, ranks));
  json::object vocab;
  json::array merges;
  vocab.reserve(lines.size());
  for (const Line& line : lines) {
    vocab[spelled(line.token)] = static_cast<std::int64_t>(line.rank);
    if (line.token.size() < 2) continue;
    for (const auto& [left, right] : parts_of(line.token, line.rank, ranks))
      merges.push_back(json::array{json::value(spelled(left)), json::value(spelled(right))});
  }
  const json::object bytes_only{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  json::object ids;
  for (const AddedToken& token : config.listed()) ids[token.content] = static_cast<std::int64_t>(token.id);
  MEKIK_TRY(around, flag_template(config, ids, config.content("bos_token"), config.content("eos_token")));
  json::object whole;
  whole["pre_tokenizer"] =
      json::object{{"type", "Sequence"},
                   {"pretokenizers", json::array{split_by(config.tokenizer_class() == "TikTokenTokenizer" ? kKimi : kUsual), bytes_only}}};
  whole["added_tokens"] = added_tokens(lines.empty() ? 0 : static_cast<std::int64_t>(lines.back().rank) + 1, config);
  whole["decoder"] = bytes_only;
  whole["post_processor"] = std::move(around);
  whole["model"] = json::object{{"type", "BPE"}, {"vocab", std::move(vocab)}, {"merges", std::move(merges)}, {"ignore_merges", true}};
  return whole;
}

}  // namespace mekik::text::hf
