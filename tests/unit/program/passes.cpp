#include <mekik/program.hpp>

#include <algorithm>
#include <map>

#include "fixtures.hpp"
#include "reference/check.hpp"
#include "small_page.hpp"

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
      [&](const Program& p) {
        return [&](std::uint32_t op) { return std::find(without.begin(), without.end(), p.ops[op].code) == without.end(); };
      },
      [] { return std::string{"because"}; });
  INFO(out.status().text);
  REQUIRE(out.ok());
  return std::move(*out);
}

const std::vector<std::uint32_t> kComposites{op_glu,        op_add_norm,   op_norm_rope,       op_softcap,
                                             op_linear_add, op_linear_glu, op_qkv_rope_append, op_moe_ffn};

}  // namespace

namespace {

void check_passes(const Result<Program>& made) {
  CHECK(made.status().text == "");
  if (!made.ok()) return;
  CHECK(verify(*made).text == "");
  check_with_reference(*made);
  const Program folded = fold(*made);
  CHECK(verify(folded).text == "");
  check_with_reference(folded);
  const Program low = lowered(folded, kComposites);
  CHECK(verify(low).text == "");
  check_with_reference(low);
  for (const auto& [op, n] : counts(low)) CHECK((op_info(op)->code < 32 || op_info(op)->code > 39));
}

}  // namespace

TEST_CASE("passes: every model fixture and every tiny model builds, folds and lowers, and each program holds") {
  for (const std::string& name : test::all_fixtures()) {
    INFO(name);
    const json::value fixture = test::load_fixture(name);
    check_passes(test::all_pages().build(test::make_model(fixture), test::fixture_options(fixture)));
  }
  for (const std::string& name : test::all_folders()) {
    INFO(name);
    check_passes(test::build_folder(test::all_pages(), name));
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

TEST_CASE("fold: what somebody else reads stays") {
  const auto one = [](const std::string& layer) {
    const std::string page = test::replaced(
        test::kSmallPage,
        "  \"n = rms_norm(x, norm, eps)\",\n  \"q = rope(linear(n, wq), main)\",\n  \"x = x + linear(attention(q, q, q), wo)\",\n", layer);
    const Result<Program> built = test::build_with({{"small.toml", page}}, test::kSmallModel);
    INFO(built.status().text);
    REQUIRE(built.ok());
    const Program folded = fold(*built);
    CHECK(verify(folded).text == "");
    return counts(folded);
  };
  const std::string attend = "\"q = linear(n, wq)\", \"y = linear(attention(q, q, q), wo)\"";
  auto n = one("\"n = rms_norm(x, norm, eps)\", " + attend + ", \"x = x + y\"");
  CHECK(n["linear_add"] == 2);
  n = one("\"n = rms_norm(x, norm, eps)\", " + attend + ", \"x = x + y * y\"");
  CHECK(n.count("linear_add") == 0);  // y is read twice, and not by the sum
  n = one("\"n = rms_norm(x, norm, eps)\", " + attend + ", \"x = x + y + linear(attention(linear(n, wq), q, q), wo)\"");
  CHECK(n["linear"] == 2 * 3 + 1 - 2);  // the two uses of wq lie on two sides of an attention, so they stay apart
  CHECK(n["linear_add"] == 2 * 2 - 0);
}

TEST_CASE("lower: each composite is what it is made of") {
  const Program p = fold(test::build(test::load_model("gguf/gemma3")));
  const auto low = counts(lowered(p, {op_norm_rope}));
  CHECK(low.count("norm_rope") == 0);
  CHECK(low.at("rope") == 14);
  CHECK(low.at("linear_glu") == 7);
  const auto gate = counts(lowered(p, {op_linear_glu, op_glu}));
  CHECK(gate.count("linear_glu") == 0);
  CHECK(gate.at("act") == 7);
  CHECK(gate.at("mul") == 7);
  // Lowered all the way, the operations are those that were built.
  CHECK(counts(lowered(p, kComposites)) == [&] {
    auto built = counts(lowered(test::build(test::load_model("gguf/gemma3")), kComposites));
    built["linear"] -= 2 * 7 + 7;  // q, k and v are one product now, gate and up another
    return built;
  }());
}

TEST_CASE("lower: composites that fold does not make") {
  // A hand-made program of one operation each; shapes are checked by both verifiers.
  Program p;
  const auto tensor = [&](const char* name, std::uint32_t role, std::vector<std::int64_t> shape) {
    Tensor t;
    t.name = name;
    t.role = role;
    t.shape = shape;
    if (role == MEKIK_ROLE_INPUT) t.scheme = "i32";
    if (role == MEKIK_ROLE_WEIGHT) {
      WeightRecipe recipe;
      recipe.k = static_cast<std::uint64_t>(shape.back());
      if (shape.size() > 1) recipe.n = static_cast<std::uint64_t>(shape[shape.size() - 2]);
      if (shape.size() > 2) recipe.experts = static_cast<std::uint64_t>(shape[0]);
      recipe.rows = {{0, 0, recipe.n * recipe.experts, 1}};
      t.weight = static_cast<std::int32_t>(p.weights.size());
      p.weights.push_back(recipe);
    }
    p.tensors.push_back(t);
    return static_cast<std::uint32_t>(p.tensors.size() - 1);
  };
  const auto op = [&](std::uint32_t code, std::vector<std::uint32_t> in, std::vector<std::uint32_t> out, std::vector<std::int64_t> ints,
                      std::vector<double> reals) {
    Op o;
    o.code = code;
    o.in = std::move(in);
    o.out = std::move(out);
    o.ints = std::move(ints);
    o.reals = std::move(reals);
    p.ops.push_back(o);
  };
  p.groups.push_back({});
  const std::int64_t T = MEKIK_DIM_TOKENS;
  const auto W = MEKIK_ROLE_WEIGHT;
  const std::uint32_t tokens = tensor("tokens", MEKIK_ROLE_INPUT, {T}), positions = tensor("positions", MEKIK_ROLE_INPUT, {T});
  const std::uint32_t x = tensor("x", MEKIK_ROLE_TEMP, {T, 32}), state = tensor("kv", MEKIK_ROLE_STATE, {T, 2, 16});
  p.tensors[state].scheme = "f16";
  op(op_embed, {tokens, tensor("embed", W, {10, 32})}, {x}, {}, {});
  const std::uint32_t q = tensor("q", MEKIK_ROLE_TEMP, {T, 4, 8}), table = tensor("table", W, {2, 4}), norm = tensor("norm", W, {8});
  op(op_qkv_rope_append,
     {x, tensor("wq", W, {32, 32}), MEKIK_NONE, tensor("wk", W, {16, 32}), MEKIK_NONE, tensor("wv", W, {16, 32}), MEKIK_NONE, norm,
      MEKIK_NONE, table, positions, state},
     {q}, {8, 0}, {1e-6, 1.0});
  const std::uint32_t a = tensor("a", MEKIK_ROLE_TEMP, {T, 4, 8}), logits = tensor("logits", MEKIK_ROLE_TEMP, {T, 6});
  op(op_attention, {q, state, MEKIK_NONE, MEKIK_NONE}, {a}, {8, 1, 0}, {0.35, 0.0});
  op(op_linear, {a, tensor("router", W, {6, 32}), MEKIK_NONE}, {logits}, {}, {});
  const std::uint32_t y = tensor("y", MEKIK_ROLE_TEMP, {T, 32}), z = tensor("z", MEKIK_ROLE_OUTPUT, {T, 32});
  op(op_moe_ffn,
     {x, logits, MEKIK_NONE, tensor("wg", W, {6, 16, 32}), tensor("bg", W, {6, 16}), tensor("wu", W, {6, 16, 32}), MEKIK_NONE,
      tensor("wd", W, {6, 32, 16}), MEKIK_NONE},
     {y}, {2, 0, 1, 1, 0, 1, 16}, {1.0, 7.0, 1.702});
  op(op_softcap, {y}, {z}, {}, {30.0});
  REQUIRE(verify(p).text == "");
  check_with_reference(p);
  const Program low = lowered(p, kComposites);
  CHECK(verify(low).text == "");
  check_with_reference(low);
  const auto n = counts(low);
  CHECK(n == std::map<std::string, int>{{"embed", 1},
                                        {"linear", 2},
                                        {"rms_norm", 1},
                                        {"rope", 2},
                                        {"kv_append", 1},
                                        {"attention", 1},
                                        {"moe_route", 1},
                                        {"moe_linear", 3},
                                        {"clamp", 2},
                                        {"scale", 4},
                                        {"act", 2},
                                        {"mul", 2},
                                        {"moe_combine", 1}});
}

TEST_CASE("lower: what a backend cannot run names the operation, the layer and the reason") {
  const Program p = fold(test::build(test::load_model("gguf/lfm2")));
  const Result<Program> out = lower(
      p, "small", [](const Program& q) { return [&q](std::uint32_t op) { return q.ops[op].code != op_conv_state; }; },
      [] { return std::string{"no state"}; });
  CHECK(out.status().code == Code::unsupported);
  CHECK(out.status().text == "backend \"small\" cannot run conv_state (layer 0 of page lfm2): no state");
}

TEST_CASE("verify: broken programs are found") {
  const Program good = test::build(test::load_model("gguf/llama"));
  REQUIRE(verify(good).ok());
  const auto broken = [&](const std::function<void(Program&)>& change) {
    Program p = good;
    change(p);
    const Status status = verify(p);
    INFO(status.text);
    CHECK(!status.ok());
    return status.text;
  };
  const auto first = [&](Program& p, std::uint32_t code) -> Op& {
    return *std::find_if(p.ops.begin(), p.ops.end(), [&](const Op& op) { return op.code == code; });
  };
  broken([&](Program& p) { std::swap(first(p, op_kv_append), first(p, op_attention)); });
  broken([&](Program& p) { first(p, op_attention).ints[0] = 32; });
  broken([&](Program& p) { first(p, op_attention).ints[2] = 5; });
  broken([&](Program& p) { first(p, op_rms_norm).in[1] = first(p, op_linear).in[1]; });
  broken([&](Program& p) { first(p, op_add).out[0] = first(p, op_rope).out[0]; });
  broken([&](Program& p) { first(p, op_linear).in.push_back(MEKIK_NONE); });
  broken([&](Program& p) { p.ops[0].in[0] = 100000; });
  broken([&](Program& p) { p.ops[0].code = 999; });
  broken([&](Program& p) { p.ops.pop_back(); });
  broken([&](Program& p) { p.weights[0].k += 1; });
  broken([&](Program& p) { p.weights[0].rows.clear(); });
  broken([&](Program& p) { p.tensors[first(p, op_rope).out[0]].shape.back() = 32; });
}
