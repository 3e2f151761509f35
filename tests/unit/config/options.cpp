#include "config/options.hpp"

#include <array>

#include "support/catch.hpp"
#include "support/components.hpp"

using namespace mekik;
using namespace mekik::config;
namespace opt = mekik::opt;

namespace {

std::string check_json(const mekik_option& row, const char* text) {
  const auto value = json::parse(text);
  REQUIRE(value.ok());
  return check_option_json(row, *value).text;
}

template <std::size_t n>
std::string rows_error(const std::array<mekik_option, n>& rows, const char* kind = "mekik.scheduler/1") {
  return check_rows(mekik::component(kind, "x", "1", "X.", rows, nullptr)).text;
}

}  // namespace

TEST_CASE("A field of a request is checked like a key of a file") {
  const mekik_option real = opt::real("top_p", "1", 0, 1, "d"), integer = opt::integer("top_k", "0", 0, 100, "d");
  const mekik_option list = opt::with(opt::text("bad", nullptr, "d"), MEKIK_OPT_LIST), choice = opt::choice("mode", "a", "alpha|beta", "d");
  CHECK(check_json(real, "0.5").empty());
  CHECK(check_json(real, "1").empty());
  CHECK(check_json(real, "3") == "'top_p' must be from 0 to 1, got 3");
  CHECK(check_json(real, "\"0.5\"") == "'top_p': expected a number, found a text (numbers have no quotes)");
  CHECK(check_json(real, "null") == "'top_p': null is not a value; leave the field out");
  CHECK(check_json(integer, "5").empty());
  CHECK(check_json(integer, "5.0").empty());
  CHECK(check_json(integer, "5.5") == "'top_k': expected an integer, found a real number");
  CHECK(check_json(integer, "18446744073709551615") == "'top_k': expected an integer, found a real number");
  CHECK(check_json(integer, "true") == "'top_k': expected an integer, found a boolean");
  CHECK(check_json(integer, "[5]") == "'top_k': expected an integer, found a list");
  CHECK(check_json(list, "[\"a\", \"b\"]").empty());
  CHECK(check_json(list, "[\"a\", 1, {}]") == "'bad': expected a text, found an integer; 'bad': expected a text, found a table");
  CHECK(check_json(list, "\"a\"") == "'bad': expected a list, found a text (write [ ... ])");
  CHECK(check_json(choice, "\"alpha\"").empty());
  CHECK(check_json(choice, "\"alhpa\"") == "'mode' must be \"alpha\" or \"beta\", got \"alhpa\" (did you mean \"alpha\"?)");
}

TEST_CASE("A request names no paths and no components") {
  CHECK(check_json(opt::path("file", nullptr, "d"), "\"/etc/passwd\"") == "'file': a request cannot name a path");
  mekik_option component = opt::option(MEKIK_OPT_COMPONENT, "other", nullptr, "d");
  component.choices = "mekik.cache/1";
  CHECK(check_json(component, "\"none\"") == "'other': a request cannot name a component");
  component.choices = "model";
  CHECK(check_json(component, "\"x.gguf\"") == "'other': a request cannot name a path");
}

TEST_CASE("A secret's value is in no message") {
  const mekik_option secret = opt::with(opt::number(MEKIK_OPT_TEXT, "pin", nullptr, 4, 8, "d"), MEKIK_OPT_SECRET);
  CHECK(check_json(secret, "\"hush-hush-hush\"") == "'pin' must have from 4 to 8 characters");
}

TEST_CASE("Rows that make no sense are refused with the reason") {
  CHECK(
      rows_error(std::array{opt::integer("a", "1", 0, 2, "d"), opt::size("b", "1GiB", 0, 1e12, "d"), opt::text("c", "bare", "d")}).empty());
  CHECK(rows_error(std::array{opt::integer("max_sequences", "1", 0, 2, "d")}) ==
        "option 'max_sequences' is a key of the core in this kind of table");
  CHECK(rows_error(std::array{opt::integer("max_sequences", "1", 0, 2, "d")}, "mekik.cache/1").empty());
  CHECK(rows_error(std::array{opt::text("use", nullptr, "d")}) == "option 'use' is a key of the core in this kind of table");
  CHECK(rows_error(std::array{opt::text("Bad-Key", nullptr, "d")}) == "option number 0: its key does not match [a-z0-9_]+");
  CHECK(rows_error(std::array{opt::text("a", nullptr, "d"), opt::text("a", nullptr, "d")}) == "option 'a' is declared twice");
  CHECK(rows_error(std::array{opt::integer("a", "5", 0, 2, "d")}) ==
        "option 'a' has a default that is not allowed: 'a' must be from 0 to 2, got 5");
  CHECK(rows_error(std::array{opt::text("a", nullptr, "")}) == "option 'a' has no description");
  CHECK(rows_error(std::array{opt::option(77, "a", nullptr, "d")}) == "option 'a' has the type 77, which this engine does not know");
  CHECK(rows_error(std::array{opt::with(opt::text("a", nullptr, "d"), 1024)}) == "option 'a' has flags that this engine does not know");
  CHECK(rows_error(std::array{opt::choice("a", nullptr, "x||y", "d")}) == "option 'a' has no choices");
  CHECK(rows_error(std::array{opt::option(MEKIK_OPT_COMPONENT, "a", nullptr, "d")}) ==
        "option 'a' does not say which kind of component it names");
  mekik_option deep = opt::option(MEKIK_OPT_TABLE, "t", nullptr, "d");
  deep.fields = &deep;
  deep.n_fields = 1;
  deep.field_size = sizeof deep;
  CHECK(rows_error(std::array{deep}).find("nests tables too deeply") != std::string::npos);
  mekik_component counted = mekik::component("mekik.sink/1", "x", "1", "X.", {}, nullptr);
  counted.n_options = 3;
  CHECK(check_rows(counted).text == "options are counted, but not there");
}

TEST_CASE("A later SDK's longer rows are read by their stride") {
  struct Longer {
    mekik_option row;
    std::uint64_t more = 7;
  };
  const std::array<Longer, 2> rows{Longer{opt::integer("a", "1", 0, 2, "d")}, Longer{opt::integer("b", "2", 0, 2, "d")}};
  mekik_component component = mekik::component("mekik.sink/1", "x", "1", "X.", {}, nullptr);
  component.options = &rows[0].row;
  component.n_options = 2;
  component.option_size = sizeof(Longer);
  CHECK(check_rows(component).ok());
  CHECK(std::string{rows_of(component)[1].key} == "b");
  component.option_size = 8;
  CHECK_FALSE(check_rows(component).ok());
}

TEST_CASE("The rows of the core make sense, too") {
  for (const CoreTable& table : core_tables()) {
    mekik_component component = mekik::component("mekik.none/1", "x", "1", "X.", {}, nullptr);
    std::vector<mekik_option> rows;
    for (std::uint32_t i = 0; i < table.rows.count; ++i)
      if (std::string{table.rows[i].key} != "use" && std::string{table.rows[i].key} != "file" && std::string{table.rows[i].key} != "sha256")
        rows.push_back(table.rows[i]);
    component.options = rows.data();
    component.n_options = static_cast<std::uint32_t>(rows.size());
    INFO(table.name);
    CHECK(check_rows(component).text.empty());
  }
}
