#include <mekik/program.hpp>

#include <algorithm>
#include <map>

#include "fixtures.hpp"
#include "reference/check.hpp"

using namespace mekik;
using namespace mekik::program;

namespace {

// The reference operations' own checks see the same program, with float forms for its weights.
void check_with_reference(const Program& p) {
  std::vector<mekik_form> forms(p.weights.size());
  std::vector<const mekik_form*> pointers;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    forms[i] = {};
    forms[i].struct_size = sizeof(mekik_form);
    forms[i].kind = MEKIK_FORM_FLOAT;
    forms[i].kept_num = MEKIK_F32;
    forms[i].experts = p.weights[i].experts;
    forms[i].n = p.weights[i].n;
    forms[i].k = p.weights[i].k;
    forms[i].row_step = 1;
    forms[i].group_n = 1;
    forms[i].exact = 1;
    pointers.push_back(&forms[i]);
  }
  const ProgramView view{p, pointers};
  const ProgramReader reader{*view.get()};
  CHECK(check_tensors(*view.get()) == "");
  for (std::uint32_t i = 0; i < reader.n_ops(); ++i) {
    INFO(describe_op(reader, i));
    CHECK(reference::check_op(reader, i) == "");
  }
}

std::map<std::string, int> counts(const Program& p) {
  std::map<std::string, int> out;
  for (const Op& op : p.ops) ++out[op_info(op.code)->name];
  return out;
}

Program lowered(Program program, const std::vector<std::uint32_t>& without) {
  Result<Program> out = lower(
      std::move(program), "test",
      [&](const Program& p, std::uint32_t op) { return std::find(without.begin(), without.end(), p.ops[op].code) == without.end(); },
      [] { return std::string{"because"}; });
  INFO(out.status().text);
  REQUIRE(out.ok());
  return std::move(*out);
}

const std::vector<std::uint32_t> kComposites{op_glu,        op_add_norm,   op_norm_rope,       op_softcap,
                                             op_linear_add, op_linear_glu, op_qkv_rope_append, op_moe_ffn};

}  // namespace

TEST_CASE("passes: every model fixture builds, folds and lowers, and each program holds") {
  for (const std::string& name : test::all_fixtures()) {
    INFO(name);
    const json::value fixture = test::load_fixture(name);
    Result<Program> made = test::all_pages().build(test::make_model(fixture), test::fixture_options(fixture));
    CHECK(made.status().text == "");
    if (!made.ok()) continue;
    const Program built = *made;
    CHECK(verify(built).text == "");
    check_with_reference(built);
    const Program folded = fold(built);
    CHECK(verify(folded).text == "");
    check_with_reference(folded);
    const Program low = lowered(folded, kComposites);
    CHECK(verify(low).text == "");
    check_with_reference(low);
    for (const auto& [op, n] : counts(low)) CHECK((op_info(op)->code < 32 || op_info(op)->code > 39));
  }
}

TEST_CASE("fold: q, k and v are one product, gate and up a composite") {
  const Program p = fold(test::build(test::load_model("gguf/llama")));
  const auto n = counts(p);
  CHECK(n.at("linear") == 3);  // q, k, v of two layers; the head
  CHECK(n.at("linear_glu") == 2);
  CHECK(n.at("linear_add") == 4);
  CHECK(n.count("glu") == 0);
  CHECK(n.count("add") == 0);
}
