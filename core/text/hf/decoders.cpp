#include "text/hf/decoders.hpp"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "base/text.hpp"
#include "text/hf/normalizers.hpp"
#include "text/tokenizer_vocabulary.hpp"

namespace mekik::text::hf {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

void replace_text(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty() || text.find(from) == std::string::npos) return;
  std::string out;
  std::size_t at = 0;
  for (std::size_t found; (found = text.find(from, at)) != std::string::npos; at = found + from.size())
    out.append(text, at, found - at).append(to);
  text = out.append(text, at);
}

void clean_up(std::string& text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kChanges{{{" .", "."},
                                                                                    {" ?", "?"},
                                                                                    {" !", "!"},
                                                                                    {" ,", ","},
                                                                                    {" ' ", "'"},
                                                                                    {" n't", "n't"},
                                                                                    {" 'm", "'m"},
                                                                                    {" do not", " don't"},
                                                                                    {" 's", "'s"},
                                                                                    {" 've", "'ve"},
                                                                                    {" 're", "'re"}}};
  for (const auto& [from, to] : kChanges) replace_text(text, from, to);
}

// The bytes that letters of GPT-2's alphabet spell; a token with another character stands for itself.
std::string bytes_of(const std::string& token) {
  std::string out;
  for (std::size_t at = 0; at < token.size();) {
    const int byte = byte_of_letter(next_code_point(token, at));
    if (byte < 0) return token;
    out += static_cast<char>(byte);
  }
  return out;
}

}  // namespace

Result<Decoder> Decoder::read(const Section& section) {
  Decoder decoder;
  decoder.present_ = true;
  MEKIK_CHECK_OK(read_sequence(section, "decoders", decoder.steps_, [](const Section& one, const std::string& type) -> Result<Step> {
    MEKIK_TRY(kind, read_kind(one, type));
    return Step{std::move(kind), one.name()};
  }));
  return decoder;
}

Result<Decoder::Kind> Decoder::read_kind(const Section& section, const std::string& type) {
  if (type == "ByteLevel") return Kind{ByteLevel{}};
  if (type == "ByteFallback") return Kind{ByteFallback{}};
  if (type == "Fuse") return Kind{Fuse{}};
  if (type == "BPEDecoder") {
    MEKIK_TRY(suffix, section.text("suffix", "</w>"));
    return Kind{Bpe{suffix}};
  }
  if (type == "WordPiece") {
    MEKIK_TRY(prefix, section.text("prefix", "##"));
    MEKIK_TRY(cleanup, section.flag("cleanup", true));
    return Kind{WordPiece{prefix, cleanup}};
  }
  if (type == "Metaspace") {
    MEKIK_TRY(sign, section.need_character("replacement"));
    MEKIK_TRY(scheme, section.text("prepend_scheme", "always"));
    MEKIK_TRY(prefix, section.flag("add_prefix_space", true));
    Metaspace step{{}, prefix && scheme != "never"};
    append_utf8(step.sign, sign);
    return Kind{std::move(step)};
  }
  if (type == "CTC") {
    MEKIK_TRY(pad, section.text("pad_token", "<pad>"));
    MEKIK_TRY(delimiter, section.text("word_delimiter_token", "|"));
    MEKIK_TRY(cleanup, section.flag("cleanup", true));
    return Kind{Ctc{pad, delimiter, cleanup}};
  }
  if (type == "Replace") {
    MEKIK_TRY(pattern, read_pattern(section));
    MEKIK_TRY(content, section.need_text("content"));
    return Kind{Replace{std::move(pattern), content}};
  }
  if (type == "Strip") {
    MEKIK_TRY(content, section.need_character("content"));
    MEKIK_TRY(start, section.integer("start", 0));
    MEKIK_TRY(stop, section.integer("stop", 0));
    if (start < 0 || stop < 0) return section.wrong(start < 0 ? "start" : "stop", "at least 0");
    return Kind{Strip{content, static_cast<std::size_t>(start), static_cast<std::size_t>(stop)}};
  }
  return unsupported(section.name() + ": the kind " + quoted(type) + " of decoder is not known");
}

std::string Decoder::decode(std::vector<std::string> tokens) const {
  if (!present_) return join(tokens, " ");
  std::size_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size();
  Bound bound{bytes};
  for (const Step& step : steps_) run(step, tokens, bound);
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

// A step's effect on a token that has neighbours on both sides.
std::string Decoder::piece(std::string_view token, Bound& bound) const {
  std::string text{token};
  if (!present_) return " " + text;
  bool fused = false;
  for (const Step& step : steps_) {
    if (std::holds_alternative<ByteFallback>(step.kind)) {
      if (const int byte = spelled_byte(text); byte >= 0) return std::string(1, static_cast<char>(byte));
    } else if (std::holds_alternative<ByteLevel>(step.kind)) {
      text = bytes_of(text);
      if (!is_utf8(text)) return text;
    } else if (std::holds_alternative<Fuse>(step.kind)) {
      fused = true;
    } else if (!fused || !std::holds_alternative<Strip>(step.kind)) {
      Tokens three{"a", text, "a"};
      run(step, three, bound);
      text = three.size() == 3 ? three[1] : "";
    }
  }
  return text;
}

bool Decoder::drops_first_space() const {
  bool fused = false;
  for (const Step& step : steps_) {
    if (std::holds_alternative<Fuse>(step.kind)) fused = true;
    if (const auto* strip = std::get_if<Strip>(&step.kind); strip != nullptr && fused && strip->content == U' ' && strip->start > 0)
      return true;
    if (const auto* sign = std::get_if<Metaspace>(&step.kind); sign != nullptr && sign->prepended) return true;
    if (std::holds_alternative<WordPiece>(step.kind)) return true;
  }
  return !present_;
}

void Decoder::run(const Step& step, Tokens& tokens, Bound& bound) {
  const auto apply_kind = [&](const auto& kind) {
    if constexpr (std::is_same_v<decltype(kind), const Replace&>) apply(kind, tokens, bound);  // the one that can make a text longer
    else apply(kind, tokens);
  };
  run_step(step.where, [&] { std::visit(apply_kind, step.kind); });
}

void Decoder::apply(const Bpe& step, Tokens& tokens) {
  for (std::string& token : tokens) replace_text(token, step.suffix, &token == &tokens.back() ? "" : " ");
}

void Decoder::apply(const ByteLevel&, Tokens& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes += bytes_of(token);
  tokens.assign(1, utf8_replace_invalid(bytes));
}

void Decoder::apply(const WordPiece& step, Tokens& tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) {
      if (tokens[i].starts_with(step.prefix)) tokens[i].erase(0, step.prefix.size());
      else tokens[i].insert(0, 1, ' ');
    }
    if (step.cleanup) clean_up(tokens[i]);
  }
}

void Decoder::apply(const Metaspace& step, Tokens& tokens) {
  for (std::string& token : tokens) replace_text(token, step.sign, step.prepended && &token == &tokens.front() ? "" : " ");
}

void Decoder::apply(const Ctc& step, Tokens& tokens) {
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (std::string& token : tokens) {
    replace_text(token, step.pad, "");
    if (!step.cleanup) continue;
    clean_up(token);
    replace_text(token, step.delimiter, " ");
  }
  std::erase_if(tokens, [](const std::string& token) { return token.empty(); });
}

void Decoder::apply(const Replace& step, Tokens& tokens, Bound& bound) {
  MatchScratch scratch;
  for (std::string& token : tokens) {
    if (token.empty()) continue;
    Text text{std::move(token), {}, false, &bound};
    replace_all(text, step.pattern, step.content, scratch);
    token = std::move(text.bytes);
  }
}

void Decoder::apply(const Fuse&, Tokens& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  tokens.assign(1, std::move(all));
}

void Decoder::apply(const Strip& step, Tokens& tokens) {
  std::string content;
  append_utf8(content, step.content);
  for (std::string& token : tokens) {
    std::size_t begin = 0;
    for (std::size_t n = 0; n < step.start && token.compare(begin, content.size(), content) == 0; ++n) begin += content.size();
    token.erase(0, begin);
    for (std::size_t n = 0; n < step.stop && token.ends_with(content); ++n) token.resize(token.size() - content.size());
  }
}

// Neighbouring bytes together are text, or each becomes U+FFFD.
void Decoder::apply(const ByteFallback&, Tokens& tokens) {
  Tokens out;
  std::string bytes;
  const auto flush = [&] {
    if (is_utf8(bytes)) {
      if (!bytes.empty()) out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), std::string{kReplacement});
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const int byte = spelled_byte(token); byte >= 0) {
      bytes += static_cast<char>(byte);
      continue;
    }
    flush();
    out.push_back(std::move(token));
  }
  flush();
  tokens = std::move(out);
}

}  // namespace mekik::text::hf
