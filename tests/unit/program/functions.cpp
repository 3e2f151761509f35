// What lines of a page become: the operations, their operands and attributes, of functions that few families need.
#include "small_page.hpp"

using namespace mekik;
using namespace mekik::program;

namespace {

const char* kAttend =
    "  \"n = rms_norm(x, norm, eps)\",\n  \"q = rope(linear(n, wq), main)\",\n  \"x = x + linear(attention(q, q, q), wo)\",\n";
const char* kWeights = "[program]\nbegin";

std::string page_of(const std::string& layer, const std::string& weights = {}) {
  return test::replaced(test::replaced(test::kSmallPage, kAttend, layer), kWeights, weights + kWeights);
}

Program made(const std::string& layer, const std::string& weights = {}, const std::string& model = test::kSmallModel) {
  Result<Program> built = test::build_with({{"small.toml", page_of(layer, weights)}}, model);
  INFO(built.status().text);
  REQUIRE(built.ok());
  CHECK(verify(*built).text == "");
  const Program folded = fold(*built);
  CHECK(verify(folded).text == "");
  return std::move(*built);
}

std::vector<const Op*> all(const Program& p, std::uint32_t code) {
  std::vector<const Op*> out;
  for (const Op& op : p.ops)
    if (op.code == code) out.push_back(&op);
  return out;
}

bool says(const std::string& layer, const std::string& part, const std::string& weights = {}) {
  const std::string text = test::complaint(page_of(layer, weights));
  if (text.find(part) != std::string::npos) return true;
  UNSCOPED_INFO("looked for: " << part << "\nin: " << text);
  return false;
}

const std::string kQ = "\"n = rms_norm(x, norm, eps)\", \"q = rope(linear(n, wq), main)\", ";
std::string ending(const std::string& line) { return kQ + "\"" + line + "\""; }

}  // namespace

TEST_CASE("functions: attention reads what another layer stored") {
  const Program p = made(kQ +
                         "{ when = \"l == 0\", do = [\"a = attention(q, q, q, window = 8)\"], "
                         "else = [\"a = attention(q, from = 0, scale = 0.5, softcap = 30)\"] }, \"x = x + linear(a, wo)\"");
  const auto appends = all(p, op_kv_append), attends = all(p, op_attention);
  REQUIRE(appends.size() == 1);
  REQUIRE(attends.size() == 2);
  CHECK(attends[0]->in[1] == appends[0]->in[2]);
  CHECK(attends[1]->in[1] == appends[0]->in[2]);
  CHECK(attends[1]->ints == std::vector<std::int64_t>{16, 1, 8});  // the window is that of the state
  CHECK(attends[1]->reals == std::vector<double>{0.5, 30});
  CHECK(p.groups.size() == 1);
  CHECK(says(ending("x = x + linear(attention(q, from = 0), wo)"), "layer 0 has stored no keys and values before"));
  CHECK(says(ending("x = x + linear(attention(q, from = l), wo)"), "has stored no keys and values before"));
  CHECK(says(kQ + "{ when = \"l == 0\", do = [\"a = attention(q, q, q)\"], else = [\"a = attention(q, q, q, from = 0)\"] }, "
                  "\"x = x + linear(a, wo)\"",
             "attention from another layer has its keys and values, and its window"));
  CHECK(says(
      kQ + "{ when = \"l == 0\", do = [\"a = attention(q, q, q)\", \"b = attention(q, q, q)\"], else = [\"a = attention(q, from = 0)\"] }, "
           "\"x = x + linear(a, wo)\"",
      "several attentions; from cannot tell which"));
  CHECK(says(kQ + "{ when = \"l == 0\", do = [\"a = attention(q, q, q)\"], else = [\"a = attention(view(q, 8, 8), from = 0)\"] }, "
                  "\"x = x + linear(view(a, 64), wo)\"",
             "q [8, 8] does not go with the keys of layer 0, [4, 16]"));
}

TEST_CASE("functions: chunks, and what no sequence can leave") {
  Program p = made(ending("x = x + linear(attention(q, q, q, chunk = choose(l == 0, 8, 128)), wo)"));
  const auto chunks = all(p, op_attention_chunk), plain = all(p, op_attention);
  REQUIRE(chunks.size() == 1);
  REQUIRE(plain.size() == 1);  // the context is 128
  CHECK(chunks[0]->ints == std::vector<std::int64_t>{16, 1, 8});
  CHECK(plain[0]->ints == std::vector<std::int64_t>{16, 1, 0});
  REQUIRE(p.groups.size() == 2);
  CHECK(p.groups[0].window == 8);
  CHECK(says(ending("x = x + linear(attention(q, q, q, chunk = 8, window = 4), wo)"), "a window or a chunk, not both"));
}

TEST_CASE("functions: two-way attention with a window is an operation of its own") {
  Program p = made(ending("x = x + linear(attention(q, q, q, causal = false, window = choose(l == 0, 5, 0)), wo)"));
  const auto near = all(p, op_attention_near), full = all(p, op_attention_full);
  REQUIRE(near.size() == 1);
  REQUIRE(full.size() == 1);
  CHECK(near[0]->ints == std::vector<std::int64_t>{5});
  CHECK(near[0]->in[4] == MEKIK_NONE);
  p = made(ending("x = x + linear(attention(q, q, q, causal = false, alibi = 8), wo)"));
  CHECK(all(p, op_attention_near).at(0)->in[5] != MEKIK_NONE);
  CHECK(says(ending("x = x + linear(attention(q, q, q, causal = false, chunk = 4), wo)"), "has no chunks"));
}

TEST_CASE("functions: rows by position, means and parts") {
  Program p = made(ending("x = x + linear(position_scale(q, 8192.0, 0.1, 1), wo)"));
  const Op* scale = all(p, op_position_scale).at(0);
  CHECK(scale->ints == std::vector<std::int64_t>{1});
  CHECK(scale->reals == std::vector<double>{8192, 0.1});
  CHECK(p.tensors[scale->in[1]].name == "positions");
  p = made(ending("x = x * mean(x * x) + linear(softmax(q), wo)"));
  CHECK(p.tensors[all(p, op_mean).at(0)->out[0]].shape == std::vector<std::int64_t>{MEKIK_DIM_TOKENS, 1});
  CHECK(all(p, op_softmax).size() == 2);
  p = made(ending("x = x + linear(q, wo) * part(view(q, 64), 7, 1)"));
  const Tensor& gate = p.tensors[all(p, op_mul).at(0)->in[1]];
  CHECK(gate.column == 7);
  CHECK(gate.view_of != 0);
  p = made(ending("x = x + linear(act(clamp(q, 0, 4), 'sqrt'), wo)"));
  CHECK(all(p, op_act).at(0)->ints == std::vector<std::int64_t>{10});
  CHECK(all(p, op_clamp).at(0)->reals == std::vector<double>{0, 4});
  CHECK(says(ending("x = x + linear(glu(q, q, 'sqrt'), wo)"), "unknown activation \"sqrt\""));
  p = made(ending("x = x + linear(part(view(concat(q, q), 128), 3, 64), wo)"));
  CHECK(p.tensors[all(p, op_concat).at(0)->out[0]].shape == std::vector<std::int64_t>{MEKIK_DIM_TOKENS, 4, 32});
  CHECK(says(ending("x = x + linear(concat(q, x), wo)"), "concat: row shape [4, 16] and [64] differ before the last size"));
  CHECK(says(ending("x = x + part(x, 60, 5)"), "part: columns 60 to 65 of a row of 64"));
  CHECK(says(ending("x = x + clamp(x, 1, -1)"), "clamp: from 1 to -1"));
}

TEST_CASE("functions: a weight of one number, and its logarithm") {
  const std::string model = test::replaced(test::kSmallModel, "[\"{l}.norm\"", "[\"{l}.s\", \"f32\", [1]], [\"{l}.norm\"");
  const Program p =
      made(ending("x = (x + linear(q, wo)) * s"), "s = { gguf = \"{l}.s\", shape = [1], value = \"log(1 + exp(w))\" }\n", model);
  const Op* mul = all(p, op_mul).at(0);
  CHECK(p.tensors[mul->in[1]].shape == std::vector<std::int64_t>{1});
  const auto& steps = p.weights[static_cast<std::size_t>(p.tensors[mul->in[1]].weight)].value;
  REQUIRE(!steps.empty());
  CHECK(steps.back().what == ValueStep::What::logarithm);
}

TEST_CASE("functions: a weight of a number for each head") {
  const std::string model = test::replaced(test::kSmallModel, "[\"{l}.norm\"", "[\"{l}.s\", \"f32\", [4]], [\"{l}.norm\"");
  const Program p = made(ending("x = x + linear(q * s, wo)"), "s = { gguf = \"{l}.s\", shape = [4, 1] }\n", model);
  CHECK(p.tensors[all(p, op_mul).at(0)->in[1]].shape == std::vector<std::int64_t>{4});
  CHECK(says(ending("x = x + linear(q * norm, wo)"), "row shape [4, 16] does not meet weight \"norm\" [64]"));
}

TEST_CASE("functions: routes") {
  const std::string model =
      test::replaced(test::kSmallModel, "[\"{l}.norm\"",
                     "[\"{l}.r\", \"f32\", [6, 64]], [\"{l}.s\", \"f32\", [6]], [\"{l}.e\", \"f32\", [6, 64, 64]], [\"{l}.norm\"");
  const std::string weights =
      "router = { gguf = \"{l}.r\", shape = [6, \"width\"] }\ns = { gguf = \"{l}.s\", shape = [6] }\n"
      "w_e = { gguf = \"{l}.e\", shape = [6, \"width\", \"width\"] }\n";
  const std::string start = ending("r = moe_scale(moe_route(linear(n, router), 2, score = 'sqrt_softplus'), s)");
  Program p = made(start + ", \"x = x + linear(q, wo) + moe_combine(moe_linear(n, w_e, r), r)\"", weights, model);
  const Op *route = all(p, op_moe_route).at(0), *scaled = all(p, op_moe_scale).at(0), *combined = all(p, op_moe_combine).at(0);
  CHECK(route->ints[1] == 3);
  CHECK(scaled->in[0] == route->out[1]);
  CHECK(scaled->in[1] == route->out[0]);
  CHECK(combined->in[1] == scaled->out[0]);
  p = made(start + ", \"x = x + linear(q, wo) + moe_combine(moe_linear(moe_spread(n, r), w_e, r))\"", weights, model);
  CHECK(all(p, op_moe_combine).at(0)->in[1] == MEKIK_NONE);
  CHECK(p.tensors[all(p, op_moe_spread).at(0)->out[0]].shape == std::vector<std::int64_t>{MEKIK_DIM_TOKENS, 2, 64});
  p = made(ending("r = moe_scale(moe_route_mixer(linear(n, router), 2, 0.02), s)") +
               ", \"x = x + linear(q, wo) + moe_combine(moe_linear(n, w_e, r), r)\"",
           weights, model);
  CHECK(all(p, op_moe_route_mixer).at(0)->reals == std::vector<double>{0.02});
}

TEST_CASE("functions: a decay for each channel") {
  const std::string weights = "w_b = { gguf = \"{l}.b\", shape = [4, \"width\"] }\n";
  const std::string model = test::replaced(test::kSmallModel, "[\"{l}.norm\"", "[\"{l}.b\", \"f32\", [4, 64]], [\"{l}.norm\"");
  const Program p = made(ending("x = x + linear(gated_delta(q, q, q, -softplus(q), linear(n, w_b), scale = 1), wo)"), weights, model);
  const Op* delta = all(p, op_gated_delta).at(0);
  CHECK(p.tensors[delta->in[3]].shape == std::vector<std::int64_t>{MEKIK_DIM_TOKENS, 4, 16});
  CHECK(says(ending("x = x + linear(gated_delta(q, q, q, q, mean(x), scale = 1), wo)"), "beta [1] do not go together"));
}
