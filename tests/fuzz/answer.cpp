// A format of answers and an answer, between a zero byte: what comes out does not depend on how the answer is cut.
#include <string>

#include "files.hpp"
#include "text/answer/parser.hpp"

namespace {

using namespace mekik;
using fuzz::require;

constexpr std::size_t kMaxAnswer = 4096;

// All that is told, with marks between the kinds.
std::string read(const text::AnswerFormat& format, std::string_view answer, std::size_t step, bool calls) {
  static const text::KnownTools tools{
      json::parse(
          R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}}}}}])")
          ->as_array()};
  text::AnswerOptions options;
  options.calls = calls;
  text::AnswerParser parser{format, tools, options};
  std::vector<text::AnswerPiece> pieces;
  for (std::size_t at = 0; at < answer.size(); at += step) parser.push(answer.substr(at, step), false, pieces);
  parser.finish(pieces);
  std::string content, reasoning, called;
  std::size_t before = 0;
  for (const text::AnswerPiece& piece : pieces) {
    if (piece.kind == text::AnswerPiece::content) {
      require(piece.begin >= before && piece.end >= piece.begin + piece.text.size() && piece.end <= answer.size());
      require(answer.substr(piece.begin, piece.text.size()) == piece.text);
      before = piece.end;
      content += piece.text;
    } else if (piece.kind == text::AnswerPiece::reasoning) {
      reasoning += piece.text;
    } else {
      require(piece.number < parser.calls());
      called += piece.kind == text::AnswerPiece::call ? "\n" + piece.text + " " + piece.id + " " : piece.text;
    }
  }
  return content + '\1' + reasoning + '\1' + called;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto texts = fuzz::pieces({reinterpret_cast<const char*>(data), size});
  config::Diagnostics diagnostics;
  const text::AnswerFormats formats = text::AnswerFormats::read(texts[0], diagnostics);
  if (!diagnostics.ok() || formats.all().empty() || texts.size() < 2) return 0;
  const std::string_view answer = texts[1].substr(0, kMaxAnswer);
  for (const bool calls : {true, false}) {
    const std::string whole = read(formats.all()[0], answer, kMaxAnswer, calls);
    for (const std::size_t step : {1u, 2u, 3u, 7u}) require(read(formats.all()[0], answer, step, calls) == whole);
  }
  return 0;
}
