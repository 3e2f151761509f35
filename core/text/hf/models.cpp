#include "text/hf/models.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "base/text.hpp"

namespace mekik::text::hf {

namespace {

constexpr std::size_t kMaxTokens = std::size_t{1} << 22, kMaxTokenBytes = std::size_t{1} << 16, kMaxBytes = std::size_t{1} << 25;
constexpr std::int64_t kMaxId = std::int64_t{1} << 24;

// The longest piece that begins the rest of the word, again and again; a word with a rest that no piece begins is unknown.
class WordPiece final : public Model {
 public:
  WordPiece(TokenTable tokens, std::int32_t unknown, std::string prefix, std::size_t longest_word)
      : Model(std::move(tokens)), unknown_(unknown), prefix_(std::move(prefix)), longest_word_(longest_word) {}
  std::string kind() const override { return "wordpiece"; }
  std::int32_t unknown() const override { return unknown_; }
  void encode(std::string_view word, std::vector<std::int32_t>& ids, ModelScratch& scratch) const override {
    const std::size_t before = ids.size();
    bool good = utf8_length(word) <= longest_word_;
    for (std::size_t begin = 0; good && begin < word.size();) {
      scratch.text = begin == 0 ? std::string{} : prefix_;
      const std::size_t head = scratch.text.size();
      const std::size_t room = tokens().longest() > head ? tokens().longest() - head : 0;
      scratch.text += word.substr(begin, room);
      std::int32_t id = -1;
      std::size_t length = scratch.text.size();
      for (; length > head; --length) {
        const bool boundary =
            begin + length - head == word.size() || (static_cast<unsigned char>(word[begin + length - head]) & 0xC0) != 0x80;
        if (boundary && (id = tokens().find(std::string_view{scratch.text}.substr(0, length))) >= 0) break;
      }
      if ((good = id >= 0)) ids.push_back(id);
      begin += length - head;
    }
    if (good) return;
    ids.resize(before);
    if (unknown_ >= 0) ids.push_back(unknown_);
  }

 private:
  std::int32_t unknown_;
  std::string prefix_;
  std::size_t longest_word_;
};

class WordLevel final : public Model {
 public:
  WordLevel(TokenTable tokens, std::int32_t unknown) : Model(std::move(tokens)), unknown_(unknown) {}
  std::string kind() const override { return "wordlevel"; }
  std::int32_t unknown() const override { return unknown_; }
  void encode(std::string_view word, std::vector<std::int32_t>& ids, ModelScratch&) const override {
    const std::int32_t id = tokens().find(word);
    if (id >= 0 || unknown_ >= 0) ids.push_back(id >= 0 ? id : unknown_);
  }

 private:
  std::int32_t unknown_;
};

// The library refuses a text with an unknown word where there is no such token.
Result<std::int32_t> need_unknown(const Section& section, const TokenTable& tokens) {
  MEKIK_TRY(text, section.need_text("unk_token"));
  const std::int32_t id = tokens.find(text);
  if (id < 0)
    log::warning("tokenizer", section.path("unk_token") + " " + quoted(text) + " is not in the vocabulary; texts lose unknown words");
  return id;
}

Result<std::unique_ptr<Model>> read_wordpiece(const Section& section) {
  MEKIK_TRY(tokens, read_token_ids(section));
  MEKIK_TRY(unknown, need_unknown(section, tokens));
  MEKIK_TRY(prefix, section.text("continuing_subword_prefix", "##"));
  MEKIK_TRY(longest, section.integer("max_input_chars_per_word", 100));
  if (longest < 0) return section.wrong("max_input_chars_per_word", "at least 0");
  return std::unique_ptr<Model>{std::make_unique<WordPiece>(std::move(tokens), unknown, prefix, static_cast<std::size_t>(longest))};
}

Result<std::unique_ptr<Model>> read_word_level(const Section& section) {
  MEKIK_TRY(tokens, read_token_ids(section));
  MEKIK_TRY(unknown, need_unknown(section, tokens));
  return std::unique_ptr<Model>{std::make_unique<WordLevel>(std::move(tokens), unknown)};
}

// Files of the first versions do not name the kind.
std::string kind_without_type(const Section& section) {
  if (section.has("merges")) return "BPE";
  if (section.has("continuing_subword_prefix")) return "WordPiece";
  const json::value* vocab = section.find("vocab");
  return vocab != nullptr && vocab->is_array() ? "Unigram" : "WordLevel";
}

}  // namespace

Result<TokenTable> TokenTable::build(const std::vector<std::pair<std::string_view, std::int64_t>>& entries, std::string_view where) {
  const auto wrong = [&](const std::string& what) { return invalid(std::string{where} + " " + what); };
  if (entries.empty() || entries.size() > kMaxTokens)
    return wrong("has " + std::to_string(entries.size()) + " entries; it must have 1 to " + std::to_string(kMaxTokens));
  TokenTable table;
  std::size_t bytes = 0;
  std::int64_t largest = 0;
  for (const auto& [text, id] : entries) {
    if (id < 0 || id >= kMaxId)
      return wrong("gives " + quoted(text) + " the id " + std::to_string(id) + ", outside 0 to " + std::to_string(kMaxId - 1));
    if (text.size() > kMaxTokenBytes) return wrong("has a token of more than 64 KiB");
    bytes += text.size();
    largest = std::max(largest, id);
    table.longest_ = std::max(table.longest_, text.size());
  }
  if (bytes > kMaxBytes) return wrong("has more than 32 MiB of text");
  table.texts_.reserve(entries.size(), bytes);
  table.ids_.reserve(entries.size());
  table.entry_of_.assign(static_cast<std::size_t>(largest) + 1, -1);
  for (const auto& [text, id] : entries) {
    table.texts_.push(text);
    table.entry_of_[static_cast<std::size_t>(id)] = static_cast<std::int32_t>(table.ids_.size());
    table.ids_.push_back(static_cast<std::int32_t>(id));
  }
  table.index_.reserve(entries.size());
  for (std::size_t i = entries.size(); i-- > 0;)
    if (table.index_.add(table.texts_, static_cast<std::int32_t>(i)) < 0) ++table.count_;
  return table;
}

std::array<std::int32_t, 256> TokenTable::byte_ids() const {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::array<std::int32_t, 256> ids;
  for (std::size_t byte = 0; byte < ids.size(); ++byte)
    ids[byte] = find(std::string{"<0x"} + kDigits[byte >> 4] + kDigits[byte & 15] + ">");
  return ids;
}

Result<TokenTable> read_token_ids(const Section& section) {
  const json::value* vocab = section.find("vocab");
  const json::object* object = vocab == nullptr ? nullptr : vocab->if_object();
  if (object == nullptr) return section.wrong("vocab", "an object of tokens and ids");
  std::vector<std::pair<std::string_view, std::int64_t>> entries;
  entries.reserve(object->size());
  for (const auto& [text, id] : *object) {
    if (!id.is_int64() && !id.is_uint64()) return invalid(section.path("vocab") + ": the id of " + quoted(text) + " is not an integer");
    entries.emplace_back(text, id.is_int64() ? id.get_int64() : static_cast<std::int64_t>(id.get_uint64() >> 1 | std::uint64_t{1} << 62));
  }
  return TokenTable::build(entries, section.path("vocab"));
}

Result<std::unique_ptr<Model>> read_model(const Section& section) {
  MEKIK_TRY(type, section.text("type", kind_without_type(section)));
  if (type == "BPE") return read_bpe(section);
  if (type == "Unigram") return read_unigram(section);
  if (type == "WordPiece") return read_wordpiece(section);
  if (type == "WordLevel") return read_word_level(section);
  return unsupported(section.name() + ": the kind " + quoted(type) +
                     " of model is not known; known are BPE, Unigram, WordPiece and WordLevel");
}

}  // namespace mekik::text::hf
