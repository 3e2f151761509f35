// What a page's author reads: the place, the line, the caret, and what was meant.
#include "small_page.hpp"

using namespace mekik;
using test::complaint;
using test::replaced;

namespace {

std::string page(const std::string& what, const std::string& with) { return replaced(test::kSmallPage, what, with); }
std::string model(const std::string& what, const std::string& with) { return replaced(test::kSmallModel, what, with); }
bool has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  UNSCOPED_INFO("looked for: " << part << "\nin: " << text);
  return false;
}

}  // namespace

TEST_CASE("errors: the small page itself is right") { CHECK(complaint(test::kSmallPage) == ""); }

TEST_CASE("errors: shapes that do not meet show both, the line and the caret") {
  const std::string text = complaint(page("wo = { gguf = \"{l}.o\", shape = [\"width\", \"heads * head_dim\"] }",
                                          "wo = { gguf = \"{l}.o\", shape = [\"width\", \"heads\", \"head_dim\"] }"));
  CHECK(has(text, "small.toml:26:12: error: linear: row shape [4, 16] does not meet weight \"wo\" [64, 4, 16] (input size 16) (layer 0)"));
  CHECK(has(text,
            "\n   26 |   \"x = x + linear(attention(q, q, q), wo)\",\n      |            ^~~~~~ the weight is described at small.toml:19"));
  CHECK(has(text, "the weight is described at small.toml:19"));
}

TEST_CASE("errors: each") {
  struct Case {
    std::string page, model, message;
  };
  const std::string small = test::kSmallPage, fit = test::kSmallModel;
  const Case cases[] = {
      {page("rms_norm(x, norm, eps)", "rms_norm(linear(x, wq), norm, eps)"), fit,
       "small.toml:24:32: error: norm over [4, 16]: weight \"norm\" has [64]; the last size is head_dim = 16 (layer 0)"},
      {page("optional = true", "numbers = \"1\""), fit, "small.toml:20:1: error: a weight of numbers has a shape and nothing else"},
      {page("wo = { gguf = \"{l}.o\", shape = [\"width\", \"heads * head_dim\"] }",
            "wo = { shape = [\"width\", \"64 * width\"], numbers = \"i\" }"),
       fit, "small.toml:19:1: error: weight \"wo\": a page makes at most 65536 numbers"},
      {page("wo = { gguf = \"{l}.o\", shape = [\"width\", \"heads * head_dim\"] }",
            "wo = { shape = [\"width\", \"heads * head_dim\"], numbers = \"log(i)\" }"),
       fit, "small.toml:19:58: error: log of a number that is not positive"},
      {page("rms_norm(x, norm, eps)", "rms_norm(x, nrm, eps)"), fit,
       "small.toml:24:20: error: unknown symbol \"nrm\"\n   24 |   \"n = rms_norm(x, nrm, eps)\",\n      |                    ^~~ did "
       "you mean \"norm\"?"},
      {page("\"n = rms_norm", "\"norm = rms_norm"), fit,
       "small.toml:24:4: error: \"norm\" is a weight of this page and cannot be assigned"},
      {page("\"n = rms_norm", "\"eps = rms_norm"), fit, "\"eps\" is a hyperparameter of this page and cannot be assigned"},
      {page("\"n = rms_norm", "\"main = rms_norm"), fit, "\"main\" is a rotary table of this page and cannot be assigned"},
      {page("heads = \"4\"", "heads = \"5\""), fit, "a size of weight \"wq\" must be a whole number, not 12.8"},
      {small, model("[\"{l}.q\", \"f16\", [64, 64]]", "[\"{l}.q\", \"f16\", [128, 64]]"),
       "weight \"wq\", layer 0: page says [heads = 4, head_dim = 16, width = 64], 0.q has [128, 64]"},
      {small, model("[\"{l}.q\", \"f16\", [64, 64]]", "[\"{l}.q\", \"f16\", [32, 128]]"),
       "weight \"wq\", layer 0: page says [heads = 4, head_dim = 16, width = 64], 0.q has [32, 128]"},
      {small, model("\"{l}.norm\"", "\"{l}.nrm\""), "weight \"norm\", layer 0: none of \"0.norm\" is in the file; close: \"0.nrm\""},
      {page("context = { gguf = \"{arch}.context\" }", "context = { gguf = \"{arch}.ctx\" }\nfar = \"context + 1\"\n"), fit,
       "hyperparameter \"context\": no \"tiny.ctx\" in the metadata, no default; first used at small.toml:"},
      {small, model("[\"{l}.norm\"", "[\"extra\", \"f32\", [2]], [\"{l}.norm\""),
       "tensor \"extra\" is not used by page small (1 tensor); wrong page?"},
      {page("matches = { gguf = [\"tiny\"] }",
            "matches = { gguf = [\"tiny\"] }\nrefuse = [ { when = \"heads == 4\", say = \"four heads\" } ]"),
       fit, "small.toml:4:21: error: small: four heads"},
      {page("head_dim = \"width / heads\"", "head_dim = \"wide / heads\"\nwide = \"head_dim * heads\""), fit,
       "hparams: cycle head_dim -> wide -> head_dim"},
      {page("\"q = rope(linear(n, wq), main)\"", "\"a, b = split(n, 40, 40)\", \"q = rope(linear(n, wq), main)\""), fit,
       "split: 40 + 40 of a row of 64 (layer 0)"},
      {page("attention(q, q, q)", "attention(q, q, q) + attention(q, q, q, causal = false)"), fit,
       "state: attention in a program with causal = false and kv (layer 0)"},
      {page("rms_norm(x, norm, eps)", "rms_nrm(x, norm, eps)"), fit, "^~~~~~~ did you mean \"rms_norm\"?"},
      {page("rms_norm(x, norm, eps)", "rms_norm(x, norm)"), fit, "rms_norm needs an argument \"eps\": x w eps"},
      {page("rms_norm(x, norm, eps)", "rms_norm(x, norm, eps, 1)"), fit, "rms_norm takes at most 3 arguments: x w eps"},
      {page("attention(q, q, q)", "attention(q, q, q, widow = 3)"), fit, "attention has no argument \"widow\""},
      {page("attention(q, q, q)", "attention(q, q, q, scale = 'much')"), fit, "attention needs a number here, not a text (layer 0)"},
      {page("linear(n, wq)", "linear(n, q_norm)"), fit, "linear needs a weight here, not none (layer 0)"},
      {page("x + linear(attention(q, q, q), wo)", "x + q"), fit, "+: row shapes [64] and [4, 16] do not go together (layer 0)"},
      {page("x + linear(attention(q, q, q), wo)", "x + wq"), fit, "+: row shape [64] does not meet weight \"wq\" [4, 16, 64] (layer 0)"},
      {page("take_rows(x)", "take_rows(x) + x"), fit, "+: rows of all tokens and output rows do not go together"},
      {page("rms_norm(x, norm, eps)", "act(x, 'gelo')"), fit, "^~~~~~ did you mean 'gelu'?"},
      {page("\"q = rope", "\"q = = rope"), fit, "small.toml:25:8: error: expected a value, found \"= rope(linea\""},
      {page("rms_norm(x, norm, eps)\"", "rms_norm(x, norm, eps\""), fit,
       "small.toml:24:29: error: expected \")\", found the end of the text"},
      {page("rms_norm(x, norm, eps)", "rms_norm(x, norm, eps) x"), fit, "unexpected \"x\" after the expression"},
      {page("eps = \"1e-6\"", "eps = \"1e-6 and\""), fit, "expected a value, found the end of the text"},
      {page("eps = \"1e-6\"", "eps = { gguff = \"x\" }"), fit,
       "unknown key \"gguff\" in a hyperparameter\n   11 | eps = { gguff = \"x\" }\n      |         ^~~~~ did you mean \"gguf\"?"},
      {page("[rope.main]", "[rope.main]\nbass = \"3\""), fit, "| ^~~~ did you mean \"base\"?"},
      {page("base = \"10000.0\"", ""), fit, "[rope.main] needs base"},
      {page("layer = [", "layr = ["), fit, "unknown key \"layr\" in [program]"},
      {page("begin = [\"x", "begin = [{ wen = \"true\", do = [] }, \"x"), fit, "a group needs { when = \"condition\", do = [..] }"},
      {page("matches =", "extends = \"smal\"\nmatches ="), fit, "| extends = \"smal\"\n      |           ^~~~~~ did you mean \"small\"?"},
      {page("matches =", "extends = \"small\"\nmatches ="), fit, "pages may extend each other at most 8 deep; is there a cycle?"},
      {page("layers = { gguf = \"{arch}.layers\" }", "layers = \"5000\""), fit, "a program may have at most 4096 layers, not 5000"},
      {page("eps = \"1e-6\"", "eps = \"1\\u0020\""), fit, "an expression must be a one-line text in double quotes without escapes"},
      {page("eps = \"1e-6\"", "eps = \"" + std::string(100, '(') + "1" + std::string(100, ')') + "\""), fit,
       "an expression may be at most 64 deep"},
      {page("eps = \"1e-6\"", "eps = \"1" + std::string(5000, ' ') + "\""), fit, "an expression may have at most 4096 bytes"},
      {page("matches = { gguf = [\"tiny\"] }", "matches = { gguf = [\"tinny\"] }"), fit,
       "no page matches 'tiny'; pages are TOML: docs/architecture-pages.md (the closest is for 'tinny')"},
      {page("x = embedding(tokens, embed)", "x = embedding(n, embed)"), fit, "small.toml:22:25: error: unknown symbol \"n\""},
      {page("logits = linear", "logit = linear"), fit, "no line uses \"logit\", and it is no output"},
  };
  for (const Case& one : cases) {
    const std::string text = complaint(one.page, one.model);
    CHECK(has(text, one.message));
  }
}

TEST_CASE("errors: a name of one layer is gone in the next") {
  const std::string text =
      complaint(page("\"n = rms_norm(x, norm, eps)\",", "{ when = \"l == 0\", do = [\"m = x\"] }, \"n = rms_norm(m, norm, eps)\","));
  CHECK(has(text, "unknown symbol \"m\""));
}

TEST_CASE("errors: a mistake is said once, not once a layer, and others are said, too") {
  const std::string text = complaint(page("rms_norm(x, norm, eps)", "rms_norm(x, nrm, eps)").replace(0, 0, ""));
  CHECK(text.find("unknown symbol") == text.rfind("unknown symbol"));
  const std::string two = complaint(
      replaced(page("rms_norm(x, norm, eps)", "rms_norm(x, nrm, eps)"), "linear(take_rows(x), embed)", "linear(take_rows(x), embd)"));
  CHECK(has(two, "\"nrm\""));
  CHECK(has(two, "\"embd\""));
}

TEST_CASE("errors: two pages that match") {
  const std::string other = replaced(test::kSmallPage, "name = \"small\"", "name = \"mine\"");
  const auto text = test::build_with({{"a.toml", test::kSmallPage}, {"b.toml", other}}, test::kSmallModel).status().text;
  CHECK(has(text, "pages mine and small both match gguf architecture \"tiny\""));
  const std::string with = replaced(other, "matches = { gguf = [\"tiny\"] }", "matches = { gguf = [\"tiny\"], when = \"heads == 4\" }");
  const auto found = test::build_with({{"a.toml", test::kSmallPage}, {"b.toml", with}}, test::kSmallModel);
  REQUIRE(found.ok());
  CHECK(found->page == "mine");
}

TEST_CASE("errors: pooling that the page does not leave open") {
  const std::string page = replaced(test::kSmallPage, "end = [", "end = [\"embedding = pool(x, 'mean')\", ");
  program::BuildOptions options;
  options.outputs = {};
  options.task = program::Task::embed;
  CHECK(test::build_with({{"small.toml", page}}, test::kSmallModel, options).ok());
  options.pooling = "last";
  CHECK(has(complaint(page, test::kSmallModel, options), "page small pools in one way only, so model.pooling cannot be \"last\""));
}

TEST_CASE("errors: metadata that cannot be") {
  CHECK(has(complaint(test::kSmallPage, model("\"tiny.layers\": 2", "\"tiny.layers\": -1")),
            "\"tiny.layers\" is -1; it must be a whole number from 0 to"));
  CHECK(has(complaint(test::kSmallPage, model("\"tiny.layers\": 2", "\"tiny.layers\": 1e300")),
            "\"tiny.layers\" is 1E300; it must be a whole number"));
  CHECK(has(complaint(test::kSmallPage, model("\"tiny.width\": 64", "\"tiny.width\": 0")),
            "\"tiny.width\" is 0; it must be a whole number from 1 to 2147483647"));
  CHECK(has(complaint(test::kSmallPage, model("\"tiny.width\": 64", "\"tiny.width\": 9223372036854775807")), "must be"));
  CHECK(has(complaint(test::kSmallPage, model("\"tiny.width\": 64", "\"tiny.width\": {\"a\": 1}")),
            "metadata key \"tiny.width\" is an object, not a value"));
  CHECK(has(complaint(test::kSmallPage, model("[96, 64]", "[4611686018427387904, 64]")), "embed"));
}
