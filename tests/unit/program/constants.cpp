// Expressions over constants: grammar, and arithmetic against Python's (expression_vectors.json, made by expression_vectors.py).
#include <cmath>

#include "program/model_reader.hpp"
#include "small_page.hpp"

using namespace mekik;
using namespace mekik::program;

namespace {

config::Value text_value(const std::string& text) {
  config::Value out;
  out.kind = config::Kind::text;
  out.text = text;
  return out;
}

Datum in_page(const std::string& text) {
  static const PageSpec page = [] {
    PageSpec out;
    const std::pair<const char*, const char*> rows[] = {
        {"a", "7"},       {"b", "-3"}, {"c", "2.5"}, {"zero", "0"}, {"yes", "true"}, {"kinds", "['x', 'y', 'x']"}, {"counts", "[4, 0, 9]"},
        {"word", "'xyx'"}};
    for (const auto& [symbol, expression] : rows) {
      HparamRow row;
      row.direct = read_expression(text_value(expression));
      out.hparams.emplace_back(symbol, row);
    }
    return out;
  }();
  static const ModelMeta meta = test::make_model(test::parse_json(R"({"format": "hf", "config": {}, "tensors": []})"));
  static const BuildOptions options;
  ModelReader reader{page, meta, options};
  return reader.evaluate(read_expression(text_value(text)), {});
}

std::string complaint_of(const std::string& text) {
  try {
    in_page(text);
    return {};
  } catch (const Mistake& mistake) {
    return mistake.message;
  }
}

}  // namespace

TEST_CASE("constants: as Python computes them") {
  const json::value cases = test::parse_json(test::read_text(test::source_directory() / "tests/programs/expression_vectors.json"));
  REQUIRE(cases.get_array().size() == 400);
  for (const json::value& one : cases.get_array()) {
    const std::string text{one.get_array()[0].get_string()};
    const json::value& expected = one.get_array()[1];
    INFO(text);
    Datum got;
    try {
      got = in_page(text);
    } catch (const Mistake& mistake) {
      FAIL(mistake.message);
    }
    if (expected.is_bool()) {
      CHECK(got.type == Datum::Type::boolean);
      CHECK(got.boolean == expected.get_bool());
    } else if (expected.is_int64()) {
      CHECK(got.type == Datum::Type::integer);
      CHECK(got.integer == expected.get_int64());
    } else {
      CHECK(got.type == Datum::Type::real);
      CHECK(got.real == Approx(expected.get_double()).epsilon(1e-12).margin(1e-300));
    }
  }
}

TEST_CASE("constants: what has no meaning is said") {
  CHECK(complaint_of("a / 0") == "division by 0");
  CHECK(complaint_of("a % zero") == "division by 0");
  CHECK(complaint_of("9223372036854775807 + 1") == "the result does not fit");
  CHECK(complaint_of("9223372036854775808") == "this is no number that fits");
  CHECK(complaint_of("kinds + 1") == "a list + a whole number has no meaning");
  CHECK(complaint_of("'x' < 1") == "a text < a whole number has no meaning");
  CHECK(complaint_of("counts[3]") == "index 3 of 3 items");
  CHECK(complaint_of("counts[-1]") == "index -1 of 3 items");
  CHECK(complaint_of("counts[1.5]") == "an index must be a whole number, not a real number");
  CHECK(complaint_of("1 in 2") == "\"in\" needs a list on its right, not a whole number");
  CHECK(complaint_of("kinds and true") == "a condition needs a boolean, not a list");
  CHECK(complaint_of("index(kinds, 'q')") == "index q is not in [x, y, x]");
  CHECK(complaint_of("sqrt(b)") == "sqrt of a negative number");
  CHECK(complaint_of("range(70000)") == "range needs whole numbers from 0 to 65536");
  CHECK(complaint_of("sqrt(1, 2)") == "sqrt takes 1 arguments, not 2");
  CHECK(complaint_of("missing") == "unknown symbol \"missing\"");
  CHECK(complaint_of("linear(a, b)") == "linear works on rows; constants are needed here");
}

TEST_CASE("constants: lists and texts") {
  CHECK(to_text(in_page("first(kinds, 2)")) == "[x, y]");
  CHECK(to_text(in_page("first(word, 2)")) == "xy");
  CHECK(to_text(in_page("first(counts, 9)")) == "[4, 0, 9]");
  CHECK(in_page("largest(where(each(first(kinds, 2), 'x')))").integer == 0);
  CHECK(in_page("word[1] == 'y'").boolean);
  CHECK(in_page("'yx' in word and 'z' not in word").boolean);
  CHECK(complaint_of("first(a, 1)") == "first needs a list or a text, not a whole number");
  CHECK(complaint_of("first(kinds, b)") == "first needs a count, not -3");
}

TEST_CASE("constants: only the chosen side is evaluated") {
  CHECK(in_page("choose(zero == 0, 1, counts[9])").integer == 1);
  CHECK(in_page("yes or counts[9] > 0").boolean);
  CHECK(!in_page("false and counts[9] > 0").boolean);
  CHECK(in_page("a[5]").integer == 7);  // one number for all layers
}

TEST_CASE("constants: stored values") {
  Datum out;
  CHECK(from_json(test::parse_json(R"({"__float__": "Infinity"})"), out) == "");
  CHECK(std::isinf(out.real));
  CHECK(from_json(test::parse_json(R"([1, "a", null, [true]])"), out) == "");
  CHECK(to_text(out) == "[1, a, none, [true]]");
  CHECK(from_json(test::parse_json(R"({"a": 1})"), out) == "is an object, not a value");
}

TEST_CASE("constants: a key that config.json leaves out means what the page says, null does not") {
  std::string page = test::replaced(test::kSmallPage, "matches = { gguf = [\"tiny\"] }",
                                    "matches = { hf = [\"Tiny\"] }\nomitted = { cap = 50.0, width = 64 }");
  for (std::size_t at = page.find("gguf ="); at != std::string::npos; at = page.find("gguf =")) page.replace(at, 4, "hf");
  for (std::size_t at = page.find("{arch}."); at != std::string::npos; at = page.find("{arch}.")) page.replace(at, 7, "{part}");
  page = test::replaced(page, "omitted", "prefix = { part = [\"\", \"text.\"] }\nomitted");
  page = test::replaced(page, "heads = \"4\"", "heads = \"4\"\ncap = { hf = \"{part}cap\", default = \"0.0\" }");
  page = test::replaced(page, "attention(q, q, q)", "attention(q, q, q, softcap = cap)");
  const auto built = [&](const std::string& config) {
    std::string model = test::replaced(test::kSmallModel,
                                       "\"general.architecture\": \"tiny\", \"tiny.width\": 64, \"tiny.layers\": 2, \"tiny.context\": 128",
                                       "\"architectures\": [\"Tiny\"], " + config);
    model = test::replaced(model, "\"gguf\"", "\"hf\"");
    auto program = test::build_with({{"small.toml", page}}, model);
    INFO(program.status().text);
    REQUIRE(program.ok());
    return to_text(*program);
  };
  CHECK(built(R"("layers": 2, "context": 128)").find("softcap = 50") != std::string::npos);
  CHECK(built(R"("text": {"layers": 2, "context": 128})").find("softcap = 50") != std::string::npos);
  CHECK(built(R"("layers": 2, "context": 128, "cap": 3.0)").find("softcap = 3") != std::string::npos);
  CHECK(built(R"("layers": 2, "context": 128, "cap": null)").find("softcap = 0") != std::string::npos);
}
