#include "convert/sentencepiece.hpp"

#include <cstring>

namespace mekik::convert {

namespace {

// Protocol buffers: fields of a number and a wire type, 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_{bytes} {}
  bool next() {
    if (at_ == bytes_.size() || bad_) return false;
    const std::uint64_t tag = varint();
    number = static_cast<std::uint32_t>(tag >> 3);
    wire = static_cast<std::uint32_t>(tag & 7);
    if (wire == 0) value = varint();
    else if (wire == 1 || wire == 5) text = take(wire == 1 ? 8 : 4);
    else if (wire == 2) text = take(varint());
    else bad_ = true;
    return !bad_;
  }
  bool bad() const { return bad_; }
  float real() const {
    float out = 0;
    if (wire == 5) std::memcpy(&out, text.data(), 4);
    return out;
  }

  std::uint32_t number = 0, wire = 0;
  std::uint64_t value = 0;
  std::string_view text;

 private:
  std::uint64_t varint() {
    std::uint64_t out = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) break;
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      out |= std::uint64_t{byte & 127u} << shift;
      if (byte < 128) return out;
    }
    bad_ = true;
    return 0;
  }
  std::string_view take(std::uint64_t count) {
    if (bad_ || count > bytes_.size() - at_) {
      bad_ = true;
      return {};
    }
    const std::string_view out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }
  std::string_view bytes_;
  std::size_t at_ = 0;
  bool bad_ = false;
};

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}
void append_number(std::string& out, std::uint32_t field, std::uint64_t value) {
  append_varint(out, field << 3);
  append_varint(out, value);
}
void append_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  append_varint(out, field << 3 | 2);
  append_varint(out, bytes.size());
  out += bytes;
}

}  // namespace

Result<SentencePiece> read_sentencepiece(std::string_view bytes) {
  SentencePiece out;
  Fields file{bytes};
  bool bad = false;
  while (file.next()) {
    Fields inner{file.text};
    if (file.wire != 2 || file.number < 1 || file.number > 3) continue;
    SentencePiece::Piece piece;
    while (inner.next()) {
      if (file.number == 1 && inner.number == 1) piece.text = inner.text;
      if (file.number == 1 && inner.number == 2) piece.score = inner.real();
      if (file.number == 1 && inner.number == 3) piece.type = static_cast<std::int32_t>(inner.value);
      if (file.number == 2 && inner.number == 3) out.model = static_cast<std::uint32_t>(inner.value);
      if (file.number == 2 && inner.number == 35) out.byte_fallback = inner.value != 0;
      if (file.number == 3 && inner.number == 2) out.precompiled_charsmap = inner.text;
      if (file.number == 3 && inner.number == 3) out.add_dummy_prefix = inner.value != 0;
      if (file.number == 3 && inner.number == 4) out.remove_extra_whitespaces = inner.value != 0;
    }
    bad = bad || inner.bad();
    if (file.number == 1) out.pieces.push_back(std::move(piece));
  }
  if (bad || file.bad() || out.pieces.empty()) return invalid("tokenizer.model is not a SentencePiece model; fetch it again");
  return out;
}

std::string write_sentencepiece(const SentencePiece& model) {
  std::string out;
  for (const SentencePiece::Piece& piece : model.pieces) {
    std::string one;
    append_bytes(one, 1, piece.text);
    append_varint(one, 2 << 3 | 5);
    char score[4];
    std::memcpy(score, &piece.score, 4);
    one.append(score, 4);
    if (piece.type != 1) append_number(one, 3, static_cast<std::uint64_t>(piece.type));
    append_bytes(out, 1, one);
  }
  std::string trainer, normalizer;
  append_number(trainer, 3, model.model);
  append_number(trainer, 4, model.pieces.size());
  append_number(trainer, 35, model.byte_fallback ? 1 : 0);
  append_bytes(out, 2, trainer);
  append_bytes(normalizer, 1, model.precompiled_charsmap.empty() ? "identity" : "nmt_nfkc");
  if (!model.precompiled_charsmap.empty()) append_bytes(normalizer, 2, model.precompiled_charsmap);
  append_number(normalizer, 3, model.add_dummy_prefix ? 1 : 0);
  append_number(normalizer, 4, model.remove_extra_whitespaces ? 1 : 0);
  append_number(normalizer, 5, 1);  // spaces are written as U+2581
  append_bytes(out, 3, normalizer);
  return out;
}

Result<std::string> from_base64(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0, count = 0;
  for (const char c : text) {
    if (c == '=') break;
    const int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (digit < 0) return internal_error("base64 with the character " + std::string(1, c));
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if (++count % 4 != 1) out += static_cast<char>(bits >> (count % 4 == 2 ? 4 : count % 4 == 3 ? 2 : 0) & 255);
  }
  return out;
}

}  // namespace mekik::convert
