#include "base/text.hpp"

#include "base/json.hpp"
#include "support/catch.hpp"

using namespace mekik;

TEST_CASE("UTF-8 is recognised by RFC 3629") {
  CHECK(is_utf8("a\xC3\xA9\xF0\x9F\xA6\x80"));
  CHECK_FALSE(is_utf8("\xC0\x80"));
  CHECK_FALSE(is_utf8("\xED\xA0\x80"));
  CHECK_FALSE(is_utf8("\xF0\x9F\xA6"));
  CHECK_FALSE(is_utf8("\xF4\x90\x80\x80"));
}

TEST_CASE("An incomplete sequence at the end is held back, a broken one is not") {
  CHECK(utf8_complete_prefix("ab\xF0\x9F\xA6") == 2);
  CHECK(utf8_complete_prefix("ab\xF0") == 2);
  CHECK(utf8_complete_prefix("ab\xF0\x9F\xA6\x80") == 6);
  CHECK(utf8_complete_prefix("ab\x80") == 3);
  CHECK(utf8_complete_prefix("\xF0\x9F\x41") == 3);
}

TEST_CASE("Invalid bytes become one U+FFFD per maximal subpart") {
  CHECK(utf8_replace_invalid("\xF0\x9F\xF0\x9F\xF0\x9F") == "\uFFFD\uFFFD\uFFFD");
  CHECK(utf8_replace_invalid("a\xC0\x80z") == "a\uFFFD\uFFFDz");
}

TEST_CASE("Sizes and durations") {
  CHECK(parse_size("1GiB") == 1073741824u);
  CHECK(parse_size("1.5KiB") == 1536u);
  CHECK(parse_size("512") == 512u);
  CHECK_FALSE(parse_size("12 KiB"));
  CHECK_FALSE(parse_size("-1"));
  CHECK_FALSE(parse_size(""));
  CHECK_FALSE(parse_size("9999999999TiB"));
  CHECK(parse_duration("250ms") == 250'000'000u);
  CHECK_FALSE(parse_duration("250"));
}

TEST_CASE("Suggestions are close") {
  CHECK(closest("max_tokns", {"max_tokens", "min_p"}) == std::string{"max_tokens"});
  CHECK_FALSE(closest("zebra", {"max_tokens", "min_p"}));
}

TEST_CASE("Globs") {
  CHECK(glob_match("*.rotary_emb.inv_freq", "model.layers.0.rotary_emb.inv_freq"));
  CHECK(glob_match("mtp.*", "mtp.layers.0"));
  CHECK_FALSE(glob_match("mtp.*", "model.mtp"));
}

TEST_CASE("JSON: bounded depth, no duplicate keys, exact numbers") {
  CHECK(json::parse("{\"a\": [1, 2.5, \"x\"]}").ok());
  CHECK_FALSE(json::parse(std::string(100000, '[')).ok());
  CHECK_FALSE(json::parse("{\"a\":1,\"a\":2}").ok());
  CHECK(json::parse("{\"a\":{\"a\":1},\"b\":[{\"a\":\"\\\"a\\\":\"},{\"a\":2}]}").ok());
  CHECK_FALSE(json::parse("{\"a\":1} x").ok());
  CHECK_FALSE(json::parse("{\"a\":").ok());
  json::ParseLimits lenient;
  lenient.bare_infinity = true;
  const auto parsed = json::parse("{\"a\": -Infinity, \"b\": \"Infinity\"}", lenient);
  REQUIRE(parsed.ok());
  CHECK(json::find(*parsed, "a")->as_double() < -1e308);
  CHECK(json::find(*parsed, "b")->as_string() == "Infinity");
}
