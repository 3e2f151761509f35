#include <string>

#include "config/value.hpp"
#include "support/catch.hpp"

using namespace mekik::config;

namespace {

Value parse(const std::string& text) {
  Value value;
  Diagnostics diagnostics;
  const bool ok = parse_toml(text, "f.toml", value, diagnostics);
  INFO(diagnostics.render());
  REQUIRE(ok);
  return value;
}

std::string error_of(const std::string& text) {
  Value value;
  Diagnostics diagnostics;
  REQUIRE_FALSE(parse_toml(text, "f.toml", value, diagnostics));
  return diagnostics.render();
}

}  // namespace

TEST_CASE("Values remember where they were written, in the order of the file") {
  const Value root = parse("zz = 'x'\n[a]\ny = 1\nb = [1.5, true]\n[a.c]\nd = 1979-05-27\n");
  REQUIRE(root.table.size() == 2);
  CHECK(root.table[0].first == "zz");
  CHECK(place(root.table[0].second.key_origin) == "f.toml:1:1");
  CHECK(place(root.table[0].second.origin) == "f.toml:1:6");
  const Value& a = root.table[1].second;
  REQUIRE(a.table.size() == 3);
  CHECK(a.table[0].first == "y");
  CHECK(a.find("y")->integer == 1);
  CHECK(a.find("b")->list[0].real == 1.5);
  CHECK(place(a.find("b")->list[1].origin) == "f.toml:4:11");
  CHECK(a.find("c")->find("d")->kind == Kind::date);
  CHECK(a.find("c")->find("d")->text == "1979-05-27");
  CHECK(a.find("nothing") == nullptr);
}

TEST_CASE("Columns are bytes") {
  const Value root = parse("k = { \"\xC3\xBC\" = '\xC3\xBC', v = 1 }\n");
  CHECK(place(root.find("k")->find("v")->key_origin) == "f.toml:1:20");
}

TEST_CASE("plain_text says that columns inside the text are exact") {
  const Value root = parse("a = \"x y\"\nb = 'x'\nc = \"x\\ty\"\nd = \"\"\"x\"\"\"\ne = \"\"\nf = \"\\u0041\"\n");
  CHECK(root.find("a")->plain_text);
  CHECK(root.find("b")->plain_text);
  CHECK_FALSE(root.find("c")->plain_text);
  CHECK_FALSE(root.find("d")->plain_text);
  CHECK(root.find("e")->plain_text);
  CHECK_FALSE(root.find("f")->plain_text);
}

TEST_CASE("A byte order mark and CRLF are fine") {
  const Value root = parse("\xEF\xBB\xBF[a]\r\nb = 1\r\nc = \"x\"\r\n");
  CHECK(root.find("a")->find("b")->integer == 1);
  CHECK(root.find("a")->find("c")->text == "x");
  CHECK(place(root.find("a")->key_origin) == "f.toml:1:2");
}

TEST_CASE("A duplicate key is an error") {
  CHECK(error_of("[a]\nx = 1\nx = 2\n") ==
        "f.toml:3:5: error: 'x' is defined twice\n    3 | x = 2\n      |     ^ a key or a [table] may be written once\n");
  CHECK(error_of("[a]\nx = 1\n[a]\ny = 2\n").find("f.toml:3:1: error: 'a' is defined twice\n") == 0);
}

TEST_CASE("A line break inside an inline table says what TOML 1.0 allows") {
  for (const char* text : {"a = { x = 1,\n  y = 2 }\n", "a = {\n}\n", "a = { x = 1,\r\n y = 2 }\r\n"}) {
    INFO(text);
    CHECK(error_of(text).find("TOML 1.0 forbids a line break inside an inline table") != std::string::npos);
  }
}

TEST_CASE("Syntax errors have a place and a reason") {
  CHECK(error_of("a = yes\n") ==
        "f.toml:1:5: error: not valid TOML: could not determine value type (in value)\n"
        "    1 | a = yes\n      |     ^~~ a text needs quotes\n");
  CHECK(error_of("a = \"\xFF\"\n").find("f.toml:1:6: error: not UTF-8") == 0);
  CHECK(error_of("x = 1\na = \"\xC3\xBC\xFF\"\n").find("f.toml:2:8: error: not UTF-8") == 0);
  CHECK(error_of("a = 99999999999999999999\n").find("not representable in 64 bits") != std::string::npos);
}

TEST_CASE("Depth is bounded") {
  CHECK(error_of("a = " + std::string(100000, '[')).find("nested too deeply") != std::string::npos);
  std::string dotted = "a";
  for (int i = 0; i < 100000; ++i) dotted += ".a";
  CHECK(error_of(dotted + " = 1\n").find("nested too deeply") != std::string::npos);
  CHECK(error_of("[" + dotted + "]\n").find("nested too deeply") != std::string::npos);
  std::string numbers = "a = [0.5";
  for (int i = 0; i < 1000; ++i) numbers += ", 0.5";
  CHECK(parse(numbers + "]\nb = \"" + std::string(200, '.') + "[[\" # " + std::string(200, '[') + "\n").table.size() == 2);
}

TEST_CASE("Secrets are not shown") {
  Value root;
  Diagnostics diagnostics;
  REQUIRE(parse_toml("[s]\nmine = \"abc\" # x\napi_key = \"hush\"\n", "f.toml", root, diagnostics));
  const Value& mine = *root.find("s")->find("mine");
  diagnostics.hide(mine.origin);
  diagnostics.error(mine.key_origin, "one");
  diagnostics.error(root.find("s")->find("api_key")->origin, "two");
  CHECK(diagnostics.render() ==
        "f.toml:2:1: error: one\n    2 | mine = ***** # x\n      | ^~~~\n"
        "f.toml:3:11: error: two\n    3 | api_key = ******\n      |           ^~~~~~\n");
  CHECK(error_of("api_key = \"hush\n").find("hush") == std::string::npos);
  CHECK(error_of("s = { api_key = hush }\n").find("hush") == std::string::npos);
}

TEST_CASE("Diagnostics: sorted by place, tabs and wide lines keep the caret in place, terminals are safe") {
  const auto source = std::make_shared<const Source>(Source{"f.toml", "\ta\t= 1\n" + std::string(300, 'x') + " = \x1B[31m\n"});
  Diagnostics diagnostics;
  diagnostics.warning({source, 2, 301}, "late");
  CHECK(diagnostics.ok());
  diagnostics.error({source, 1, 4}, "early", "way out");
  diagnostics.error({}, "nowhere");
  diagnostics.error({source, 0, 0}, "whole", "do this");
  CHECK_FALSE(diagnostics.ok());
  const std::string text = diagnostics.render();
  CHECK(text.find("error: nowhere\nf.toml: error: whole (do this)\nf.toml:1:4: error: early\n    1 | \ta\t= 1\n      | \t \t^ way out\n") ==
        0);
  CHECK(text.find("f.toml:2:301: warning: late\n") != std::string::npos);
  CHECK(text.find('\x1B') == std::string::npos);
  CHECK(text.size() < 700);
  CHECK(diagnostics.status().code == mekik::Code::invalid);
}
