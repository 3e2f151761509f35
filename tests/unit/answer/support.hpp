// Answers taken apart in tests: whole, and cut in every way.
#pragma once
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/paths.hpp"
#include "text/answer/derive.hpp"
#include "text/answer/parser.hpp"

namespace mekik::test {

struct Taken {
  std::string content, reasoning;
  std::vector<std::pair<std::string, std::string>> calls;
  bool operator==(const Taken&) const = default;
};

inline void take(const std::vector<text::AnswerPiece>& pieces, Taken& to) {
  for (const text::AnswerPiece& piece : pieces) {
    if (piece.kind == text::AnswerPiece::content) to.content += piece.text;
    if (piece.kind == text::AnswerPiece::reasoning) to.reasoning += piece.text;
    if (piece.kind == text::AnswerPiece::call) to.calls.emplace_back(piece.text, "");
    if (piece.kind == text::AnswerPiece::arguments) to.calls.at(piece.number).second += piece.text;
  }
}

inline const json::array& offered() {
  static const json::array tools = json::parse(R"([
    {"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{
      "city":{"type":"string"},"days":{"type":"integer"},"unit":{"type":["string","null"]}}}}},
    {"type":"function","function":{"name":"save","parameters":{"type":"object","properties":{"text":{"type":"string"},"deep":{"type":"object"}}}}},
    {"type":"function","function":{"name":"now"}}])")
                                       ->as_array();
  return tools;
}

inline const text::AnswerFormats& formats() {
  static const text::AnswerFormats all = [] {
    config::Diagnostics diagnostics;
    auto loaded = text::AnswerFormats::load(source_directory() / "configs" / "formats", diagnostics);
    INFO(diagnostics.render());
    REQUIRE(diagnostics.ok());
    return loaded;
  }();
  return all;
}

// A declared format; one that has no reasoning of its own takes the usual one.
inline text::AnswerFormat declared(const std::string& name) {
  text::AnswerFormat out;
  for (const char* one : {name.c_str(), "think"})
    for (const text::AnswerFormat& format : formats().all()) {
      if (format.name != one || (name != one && out.has(text::PartKind::reasoning))) continue;
      out.parts.insert(out.parts.end(), format.parts.begin(), format.parts.end());
      out.turns.insert(out.turns.end(), format.turns.begin(), format.turns.end());
    }
  REQUIRE_FALSE(out.parts.empty());
  return out;
}

// One piece of an answer; `special`: a special token's text.
struct Said {
  std::string text;
  bool special = false;
};

inline Taken read(const text::AnswerFormat& format, const std::vector<Said>& said, text::AnswerOptions options = {}) {
  const text::KnownTools tools{offered()};
  text::AnswerParser parser{format, tools, options};
  Taken out;
  std::vector<text::AnswerPiece> pieces;
  for (const Said& one : said) parser.push(one.text, one.special, pieces);
  parser.finish(pieces);
  take(pieces, out);
  return out;
}

// The answer, whole; fails when it comes out otherwise where it is cut: at one place, at all of them, or at some.
inline Taken read_cut(const text::AnswerFormat& format, const std::string& text, text::AnswerOptions options = {}) {
  options.calls = true;
  const Taken whole = read(format, {{text, false}}, options);
  std::vector<Said> bytes;
  for (const char c : text) bytes.push_back({std::string(1, c), false});
  CHECK(read(format, bytes, options) == whole);
  for (std::size_t cut = 1; cut < text.size(); ++cut) {
    CAPTURE(cut);
    if (!(read(format, {{text.substr(0, cut), false}, {text.substr(cut), false}}, options) == whole)) FAIL_CHECK("differs: " << text);
  }
  for (std::size_t step = 2; step < 6; ++step) {
    std::vector<Said> parts;
    for (std::size_t at = 0; at < text.size(); at += step) parts.push_back({text.substr(at, step), false});
    CHECK(read(format, parts, options) == whole);
  }
  return whole;
}

}  // namespace mekik::test

namespace Catch {
template <>
struct StringMaker<mekik::test::Taken> {
  static std::string convert(const mekik::test::Taken& taken) {
    std::string out = "content \"" + taken.content + "\", reasoning \"" + taken.reasoning + "\"";
    for (const auto& [name, arguments] : taken.calls) out += ", " + name + " " + arguments;
    return out;
  }
};
}  // namespace Catch
