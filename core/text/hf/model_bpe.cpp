// Byte pair encoding of a tokenizer.json: characters of a word merge by rank, leftmost first.
#include <algorithm>
#include <atomic>

#include "base/log.hpp"
#include "base/text.hpp"
#include "text/hf/models.hpp"

namespace mekik::text::hf {

namespace {

struct RankedToken {
  std::uint32_t rank = Merge::kNone;
  std::int32_t id = -1;
};

struct BpeOptions {
  std::string prefix, suffix;  // of what continues a word, of what ends one
  std::int32_t unknown = -1;
  bool fuse_unknown = false, byte_fallback = false, ignore_merges = false;
};

class Bpe final : public Model {
 public:
  Bpe(TokenTable tokens, PairIndex<RankedToken> merges, BpeOptions options)
      : Model(std::move(tokens)), merges_(std::move(merges)), options_(std::move(options)), of_byte_(this->tokens().byte_ids()) {}

  std::string kind() const override { return options_.byte_fallback ? "bpe with bytes" : "bpe"; }
  std::int32_t unknown() const override { return options_.unknown; }
  bool reads_all() const override {
    const bool bytes = options_.byte_fallback && std::count(of_byte_.begin(), of_byte_.end(), -1) == 0;
    return bytes || (options_.unknown >= 0 && !options_.fuse_unknown);
  }

  void encode(std::string_view word, std::vector<std::int32_t>& ids, ModelScratch& scratch) const override {
    scratch.merge.words.encode(word, ids, [&] { encode_new(word, ids, scratch); });
  }

 private:
  void encode_new(std::string_view word, std::vector<std::int32_t>& ids, ModelScratch& scratch) const {
    if (options_.ignore_merges)
      if (const std::int32_t id = tokens().find(word); id >= 0) {
        ids.push_back(id);
        return;
      }
    spell(word, scratch);
    merge_symbols(scratch.merge, [this](const Symbol& left, const Symbol& right) -> Merge {
      const RankedToken* merge = merges_.find(static_cast<std::uint32_t>(left.id), static_cast<std::uint32_t>(right.id));
      return merge == nullptr ? Merge{} : Merge{merge->rank, merge->id};
    });
    for (const Symbol& symbol : scratch.merge.symbols) ids.push_back(symbol.id);
  }

  // The characters as symbols. Unknown ones wait until a known one follows; bytes do not release them, as in the library.
  void spell(std::string_view word, ModelScratch& scratch) const {
    auto& symbols = scratch.merge.symbols;
    symbols.clear();
    std::uint32_t waiting = 0;  // bytes of unknown characters
    const auto release = [&] {
      if (waiting > 0) symbols.push_back({0, waiting, options_.unknown});
      waiting = 0;
    };
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t from = at;
      next_code_point(word, at);
      std::string_view text = word.substr(from, at - from);
      const bool continues = from > 0 && !options_.prefix.empty(), ends = at == word.size() && !options_.suffix.empty();
      if (continues || ends) {
        scratch.text = continues ? options_.prefix : std::string{};
        scratch.text += text;
        if (ends) scratch.text += options_.suffix;
        text = scratch.text;
      }
      const std::uint32_t length = static_cast<std::uint32_t>(at - from);
      if (const std::int32_t id = tokens().find(text); id >= 0) {
        release();
        symbols.push_back({0, length, id});
      } else if (!(options_.byte_fallback && spell_bytes(text, symbols))) {
        if (options_.unknown < 0) warn_of_loss(text);
        if (options_.unknown >= 0 && !options_.fuse_unknown) release();
        waiting += options_.unknown >= 0 ? length : 0;
      }
    }
    release();
  }

  bool spell_bytes(std::string_view text, std::vector<Symbol>& symbols) const {
    for (const char c : text)
      if (of_byte_[static_cast<unsigned char>(c)] < 0) return false;
    for (const char c : text) symbols.push_back({0, 1, of_byte_[static_cast<unsigned char>(c)]});
    return true;
  }

  // Said once, and only when it happens.
  void warn_of_loss(std::string_view text) const {
    if (warned_.test_and_set()) return;
    log::warning("tokenizer",
                 "the vocabulary has neither a token for " + quoted(text) + " nor one for unknown characters; texts lose what it lacks");
  }

  PairIndex<RankedToken> merges_;
  BpeOptions options_;
  std::array<std::int32_t, 256> of_byte_;
  mutable std::atomic_flag warned_{};
};

struct MergePair {
  std::string_view left, right;
};

// ["a b", ..] as the first versions wrote them, or [["a", "b"], ..].
Result<std::vector<MergePair>> read_pairs(const Section& section) {
  constexpr std::size_t kMaxMerges = std::size_t{1} << 23;
  MEKIK_TRY(list, section.need_array("merges"));
  if (list->size() > kMaxMerges) return section.wrong("merges", "a list of at most " + std::to_string(kMaxMerges) + " entries");
  std::vector<MergePair> pairs;
  pairs.reserve(list->size());
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto wrong = [&](std::string_view what) {
      return invalid(section.path("merges") + "[" + std::to_string(i) + "] " + std::string{what});
    };
    if (const json::string* joined = (*list)[i].if_string(); joined != nullptr) {
      const std::string_view text{joined->data(), joined->size()};
      if (text.starts_with("#version")) continue;
      const std::size_t space = text.find(' ');
      if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
        return wrong("is " + quoted(text) + ", not two tokens and a space");
      pairs.push_back({text.substr(0, space), text.substr(space + 1)});
      continue;
    }
    const json::array* both = (*list)[i].if_array();
    if (both == nullptr || both->size() != 2 || !(*both)[0].is_string() || !(*both)[1].is_string()) return wrong("is not a pair of tokens");
    const json::string &left = (*both)[0].get_string(), &right = (*both)[1].get_string();
    pairs.push_back({{left.data(), left.size()}, {right.data(), right.size()}});
  }
  return pairs;
}

Result<PairIndex<RankedToken>> read_merges(const Section& section, const TokenTable& tokens, std::size_t prefix) {
  MEKIK_TRY(pairs, read_pairs(section));
  PairIndex<RankedToken> merges;
  merges.reserve(pairs.size());
  std::string joined;
  for (std::size_t i = pairs.size(); i-- > 0;) {  // of a pair that is listed twice, the last counts
    const auto& [left, right] = pairs[i];
    joined.assign(left).append(right.substr(std::min(prefix, right.size())));
    const std::int32_t l = tokens.find(left), r = tokens.find(right), whole = tokens.find(joined);
    if (l < 0 || r < 0 || whole < 0 || right.size() < prefix)
      return invalid(section.path("merges") + ": " + quoted(left) + " and " + quoted(right) + ": the vocabulary lacks " +
                     quoted(l < 0   ? left
                            : r < 0 ? right
                                    : joined));
    merges.add(static_cast<std::uint32_t>(l), static_cast<std::uint32_t>(r), {static_cast<std::uint32_t>(i), whole});
  }
  return merges;
}

}  // namespace

Result<std::unique_ptr<Model>> read_bpe(const Section& section) {
  MEKIK_TRY(tokens, read_token_ids(section));
  BpeOptions options;
  MEKIK_TRY(prefix, section.text("continuing_subword_prefix", ""));
  MEKIK_TRY(suffix, section.text("end_of_word_suffix", ""));
  MEKIK_TRY(unknown, section.text("unk_token", ""));
  MEKIK_TRY(fuse, section.flag("fuse_unk", false));
  MEKIK_TRY(bytes, section.flag("byte_fallback", false));
  MEKIK_TRY(ignore, section.flag("ignore_merges", false));
  options = {prefix, suffix, unknown.empty() ? -1 : tokens.find(unknown), fuse, bytes, ignore};
  if (const json::value* dropout = section.find("dropout"); dropout != nullptr) {
    if (!dropout->is_number()) return section.wrong("dropout", "a number");
    if (dropout->to_number<double>() != 0)
      log::warning("tokenizer",
                   "the tokenizer's dropout makes training texts vary; here every text has one tokenization, as with dropout 0");
  }
  MEKIK_TRY(merges, read_merges(section, tokens, prefix.size()));
  return std::unique_ptr<Model>{std::make_unique<Bpe>(std::move(tokens), std::move(merges), std::move(options))};
}

}  // namespace mekik::text::hf
