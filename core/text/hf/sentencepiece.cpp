// tokenizer.model: SentencePiece's protobuf (sentencepiece_model.proto), read field by field.
#include <cstring>
#include <optional>

#include "base/log.hpp"
#include "base/text.hpp"
#include "text/hf/files.hpp"
#include "text/tokenizer_sentencepiece.hpp"

namespace mekik::text::hf {

namespace {

Status damaged(std::string_view what) { return invalid("tokenizer.model is damaged or of another kind: " + std::string{what}); }

// The fields of one message, in order.
class Message {
 public:
  explicit Message(std::string_view bytes) : bytes_(bytes) {}
  struct Field {
    std::uint32_t number;
    std::uint64_t value;     // a number, or the bits of a float
    std::string_view bytes;  // of strings and messages
  };
  // Nothing at the end, and when the message is damaged.
  std::optional<Field> next() {
    std::uint64_t key = 0;
    if (bytes_.empty() || !varint(key)) return std::nullopt;
    Field field{static_cast<std::uint32_t>(key >> 3), 0, {}};
    switch (key & 7) {
      case 0:
        if (!varint(field.value)) return std::nullopt;
        break;
      case 1:
      case 5:
        if (!fixed((key & 7) == 1 ? 8 : 4, field.value)) return std::nullopt;
        break;
      case 2:
        if (!varint(field.value) || field.value > bytes_.size()) return fail();
        field.bytes = bytes_.substr(0, field.value);
        bytes_.remove_prefix(field.value);
        break;
      default:
        return fail();
    }
    return field;
  }
  bool good() const { return good_; }

 private:
  std::optional<Field> fail() {
    good_ = false;
    return std::nullopt;
  }
  bool varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const unsigned char byte = static_cast<unsigned char>(bytes_[0]);
      bytes_.remove_prefix(1);
      value |= std::uint64_t{byte & 127u} << shift;
      if (byte < 128) return true;
    }
    return good_ = false;
  }
  bool fixed(std::size_t size, std::uint64_t& value) {
    if (bytes_.size() < size) return good_ = false;
    for (std::size_t i = size; i-- > 0;) value = (value << 8) | static_cast<unsigned char>(bytes_[i]);
    bytes_.remove_prefix(size);
    return true;
  }

  std::string_view bytes_;
  bool good_ = true;
};

struct Piece {
  std::string text;
  float score = 0;
  std::int64_t type = 1;
};

struct Model {
  std::vector<Piece> pieces;
  std::uint64_t kind = 1;  // of the trainer: 1 Unigram, 2 BPE
  std::int64_t unk = 0, bos = 1, eos = 2;
  bool escape = true;
  SpmRules rules{.dummy_prefix = true, .suffix = false, .remove_extra_spaces = true, .charsmap = {}};
};

Result<Piece> read_piece(std::string_view bytes) {
  Piece piece;
  Message message{bytes};
  while (const auto field = message.next()) {
    if (field->number == 1) piece.text = field->bytes;
    if (field->number == 2) {
      const std::uint32_t bits = static_cast<std::uint32_t>(field->value);
      std::memcpy(&piece.score, &bits, sizeof bits);
    }
    if (field->number == 3) piece.type = static_cast<std::int64_t>(field->value);
  }
  if (!message.good() || !is_utf8(piece.text)) return damaged("a piece cannot be read");
  return piece;
}

Status read_trainer(std::string_view bytes, Model& model) {
  Message message{bytes};
  const auto id = [](std::uint64_t value) { return static_cast<std::int64_t>(static_cast<std::int32_t>(value)); };
  while (const auto field = message.next()) {
    if (field->number == 3) model.kind = field->value;
    if (field->number == 24) model.rules.suffix = field->value != 0;
    if (field->number == 40) model.unk = id(field->value);
    if (field->number == 41) model.bos = id(field->value);
    if (field->number == 42) model.eos = id(field->value);
  }
  return message.good() ? Status{} : damaged("its trainer_spec cannot be read");
}

Status read_normalizer_spec(std::string_view bytes, Model& model) {
  Message message{bytes};
  while (const auto field = message.next()) {
    if (field->number == 2 && !field->bytes.empty()) {
      auto map = Charsmap::read(field->bytes);
      if (!map) return std::move(map.status()).in("tokenizer.model");
      model.rules.charsmap = std::move(*map);
    }
    if (field->number == 3) model.rules.dummy_prefix = field->value != 0;
    if (field->number == 4) model.rules.remove_extra_spaces = field->value != 0;
    if (field->number == 5) model.escape = field->value != 0;
  }
  return message.good() ? Status{} : damaged("its normalizer_spec cannot be read");
}

Result<Model> read_proto(std::string_view bytes) {
  Model model;
  Message message{bytes};
  while (const auto field = message.next()) {
    if (field->number == 1) {
      MEKIK_TRY(piece, read_piece(field->bytes));
      model.pieces.push_back(std::move(piece));
    }
    if (field->number == 2) MEKIK_CHECK_OK(read_trainer(field->bytes, model));
    if (field->number == 3) MEKIK_CHECK_OK(read_normalizer_spec(field->bytes, model));
  }
  if (!message.good()) return damaged("it ends in the middle");
  if (model.pieces.empty()) return damaged("it has no pieces");
  if (model.kind != 1 && model.kind != 2)
    return unsupported("tokenizer.model is a SentencePiece model of kind " +
                       std::string{model.kind == 3   ? "word"
                                   : model.kind == 4 ? "char"
                                                     : "?"} +
                       "; known are unigram and bpe");
  if (!model.escape) return unsupported("tokenizer.model has escape_whitespaces = false, which is not supported");
  return model;
}

// Classes of models whose own Python file hands each text to SentencePiece as it is, behind BOS.
bool is_plain_class(std::string_view name) {
  return name == "BaichuanTokenizer" || name == "InternLMTokenizer" || name == "InternLM2Tokenizer" || name == "InternLM3Tokenizer";
}

// The classes whose ids are those of the pieces; others move them, or add tokens of their own.
Status check_class(const std::string& name) {
  for (const std::string_view known :
       {"", "LlamaTokenizer", "GemmaTokenizer", "T5Tokenizer", "PreTrainedTokenizer", "TokenizersBackend", "CodeLlamaTokenizer"})
    if (name == known || is_plain_class(name)) return {};
  return unsupported(
      "tokenizer_class " + quoted(name) +
      " is not known with tokenizer.model alone; save the tokenizer with transformers, so that the folder has a tokenizer.json");
}

constexpr std::int64_t kControl = 3, kUserDefined = 4;

// Tokens that tokenizer_config.json adds behind the pieces, or renames among them.
Status add_listed(const TokenConfig& config, std::vector<Piece>& pieces) {
  constexpr std::int32_t kMostNew = 1 << 20;
  const std::size_t count = pieces.size();
  for (const AddedToken& token : config.listed()) {
    if (token.id < 0 || static_cast<std::size_t>(token.id) >= count + kMostNew)
      return invalid("tokenizer_config.json: the token " + quoted(token.content) + " has the id " + std::to_string(token.id) +
                     ", far behind the " + std::to_string(count) + " pieces of tokenizer.model");
    const std::size_t id = static_cast<std::size_t>(token.id);
    if (id >= pieces.size()) pieces.resize(id + 1, {"", 0, 5});
    Piece& piece = pieces[id];
    if (token.lstrip || token.rstrip || token.single_word)
      log::warning("tokenizer", "the flags of the added token " + quoted(token.content) + " have no effect with tokenizer.model");
    if (piece.text != token.content) piece.text = token.content;
    if (piece.type == 1 || piece.type == 5 || piece.type == kUserDefined)
      piece.type = token.special ? kControl : piece.type == 1 ? 1 : kUserDefined;
  }
  for (const TokenConfig::Named& named : config.named())
    for (Piece& piece : pieces)
      if (piece.text == named.content && piece.type == 1) piece.type = kControl;
  return {};
}

struct Flags {
  bool bos, eos;
};

Result<Flags> read_flags(const TokenConfig& config) {
  const bool t5 = config.tokenizer_class() == "T5Tokenizer";
  MEKIK_TRY(bos, config.tokenizer().flag("add_bos_token", is_plain_class(config.tokenizer_class())));
  MEKIK_TRY(eos, config.tokenizer().flag("add_eos_token", t5));
  return Flags{bos, eos};
}

// The same keys as in a GGUF file, so that the vocabulary passes the same checks.
Result<json::object> describe(const Model& model, const TokenConfig& config) {
  json::object metadata;
  json::array tokens, types, scores;
  for (const Piece& piece : model.pieces) {
    tokens.push_back(json::value(piece.text));
    types.push_back(piece.type);
    scores.push_back(static_cast<double>(piece.score));
  }
  const auto id_of = [&](std::string_view name, std::int64_t fallback) -> std::int64_t {
    const std::string content = config.content(name);
    for (std::size_t i = 0; !content.empty() && i < model.pieces.size(); ++i)
      if (model.pieces[i].text == content) return static_cast<std::int64_t>(i);
    return content.empty() && config.mentions(name) ? -1 : fallback;
  };
  const auto set = [&](std::string_view key, std::int64_t id) {
    if (id >= 0) metadata[key] = id;
  };
  set("tokenizer.ggml.bos_token_id", id_of("bos_token", model.bos));
  set("tokenizer.ggml.eos_token_id", id_of("eos_token", model.eos));
  set("tokenizer.ggml.unknown_token_id", model.unk);
  MEKIK_TRY(flags, read_flags(config));
  metadata["tokenizer.ggml.add_bos_token"] = flags.bos && metadata.contains("tokenizer.ggml.bos_token_id");
  metadata["tokenizer.ggml.add_eos_token"] = flags.eos && metadata.contains("tokenizer.ggml.eos_token_id");
  metadata["tokenizer.ggml.add_space_prefix"] = model.rules.dummy_prefix;
  metadata["tokenizer.ggml.tokens"] = std::move(tokens);
  metadata["tokenizer.ggml.token_type"] = std::move(types);
  metadata["tokenizer.ggml.scores"] = std::move(scores);
  return metadata;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> create_from_sentencepiece(std::string_view bytes, const TokenConfig& config) {
  MEKIK_CHECK_OK(check_class(config.tokenizer_class()));
  MEKIK_TRY(model, read_proto(bytes));
  MEKIK_CHECK_OK(add_listed(config, model.pieces));
  MEKIK_TRY(metadata, describe(model, config));
  auto read = read_vocabulary(metadata, {.needs_scores = true});
  if (!read) return std::move(read.status()).in("tokenizer.model");
  Vocabulary& vocabulary = *read;
  if (vocabulary.unknown < 0) return damaged("it has no unknown piece");
  for (const std::int64_t id : config.end_ids())
    if (id >= 0 && id < static_cast<std::int64_t>(vocabulary.size())) vocabulary.more_ends.push_back(static_cast<std::int32_t>(id));
  const std::string name = config.tokenizer_class();
  MEKIK_TRY(legacy, config.tokenizer().flag("legacy", name != "LlamaTokenizer" && name != "CodeLlamaTokenizer"));
  SentencePieceOptions options;
  options.rules = std::move(model.rules);
  options.prefix = legacy ? SentencePieceOptions::Prefixed::all : SentencePieceOptions::Prefixed::begin;
  options.whole_user_defined = true;
  options.fuse_unknown = true;
  return model.kind == 1 ? make_sentencepiece_unigram(std::move(vocabulary), std::move(options))
                         : make_sentencepiece_bpe(std::move(vocabulary), std::move(options));
}

}  // namespace mekik::text::hf
