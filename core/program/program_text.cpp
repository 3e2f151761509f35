// A program as text, one operation a line.
#include <cmath>
#include <cstdio>

#include "program/emitter.hpp"
#include "program/program.hpp"

namespace mekik::program {

namespace {

// What ops.def calls the attributes of each operation; whole numbers, then real ones.
struct Attributes {
  std::uint32_t code;
  const char* ints;
  const char* reals;
};
constexpr Attributes kAttributes[] = {
    {op_rms_norm, "", "eps"},
    {op_act, "kind", ""},
    {op_scale, "", "a b"},
    {op_rope, "dim pairs", "magnitude"},
    {op_attention, "dv causal window", "scale softcap"},
    {op_cast, "num", ""},
    {op_clamp, "", "low high"},
    {op_put_rows, "add", ""},
    {op_glu, "kind", "limit alpha"},
    {op_add_norm, "", "eps"},
    {op_norm_rope, "dim pairs", "eps magnitude"},
    {op_softcap, "", "c"},
    {op_linear_glu, "kind", "limit alpha"},
    {op_qkv_rope_append, "dim pairs", "eps magnitude"},
    {op_moe_ffn, "top score groups top_groups group_score normalize kind", "scale limit alpha"},
    {op_layer_norm, "", "eps"},
    {op_moe_route, "top score groups top_groups group_score normalize", "scale"},
    {op_mla_attention, "rank r window", "scale"},
    {op_conv_state, "kind", ""},
    {op_gated_delta, "spread", "scale"},
    {op_attention_full, "", "scale"},
    {op_pool, "kind", ""},
    {op_position_scale, "shift", "every factor"},
    {op_moe_route_mixer, "top", "width"},
    {op_attention_chunk, "dv causal chunk", "scale softcap"},
    {op_attention_near, "window", "scale softcap"},
    {op_l2_norm, "", "eps"},
};

std::string next_word(const char*& words) {
  std::string out;
  while (*words == ' ') ++words;
  while (*words != 0 && *words != ' ') out += *words++;
  return out;
}

std::string number_text(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return buffer;
}

std::string sizes_text(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const std::int64_t size : shape) {
    out += "[";
    if (size == MEKIK_DIM_TOKENS) out += "T";
    else if (size == MEKIK_DIM_ROWS) out += "R";
    else if (size == MEKIK_DIM_SEQS) out += "S";
    else out += std::to_string(size);
    out += "]";
  }
  return out;
}

std::string operand(const Program& program, std::uint32_t index) {
  if (index == MEKIK_NONE) return "-";
  const Tensor& tensor = program.tensors[index];
  if (tensor.view_of == 0) return tensor.name;
  std::string out = program.tensors[tensor.view_of - 1].name;
  if (tensor.column != 0) out += "@" + std::to_string(tensor.column);
  return out + " as " + sizes_text({tensor.shape.begin() + 1, tensor.shape.end()});
}

std::string attributes(const Op& op) {
  const char* ints = "";
  const char* reals = "";
  for (const Attributes& a : kAttributes)
    if (a.code == op.code) {
      ints = a.ints;
      reals = a.reals;
    }
  std::string out;
  const auto add = [&](const std::string& name, const std::string& value) {
    out += (out.empty() ? "; " : ", ") + (name.empty() ? "" : name + " = ") + value;
  };
  for (const std::int64_t value : op.ints) {
    const std::string name = next_word(ints);
    add(name, name == "kind" && op.code != op_pool ? activation_name(value) : std::to_string(value));
  }
  for (const double value : op.reals) add(next_word(reals), number_text(value));
  return out;
}

std::string weight_line(const Program& program, const Tensor& tensor) {
  std::string out = "weight " + tensor.name + " " + sizes_text(tensor.shape) + " " + tensor.scheme;
  const WeightRecipe& recipe = program.weights[static_cast<std::size_t>(tensor.weight)];
  if (!recipe.host.empty())
    out += recipe.host_divisors != 0 ? ", made by the host, divided by tensor " + std::to_string(recipe.host_divisors - 1)
                                     : ", made by the host";
  else if (!recipe.rows.empty()) {
    out += ", rows of tensor " + std::to_string(recipe.rows[0].source);
    if (recipe.rows.size() > 1) out += " in " + std::to_string(recipe.rows.size()) + " runs";
    if (recipe.rows[0].first != 0) out += " from " + std::to_string(recipe.rows[0].first);
    if (recipe.column0 != 0) out += ", column " + std::to_string(recipe.column0);
  } else {
    out += ", decoded from tensor " + std::to_string(recipe.parts[0].source);
    if (recipe.parts.size() > 1) out += " and " + std::to_string(recipe.parts.size() - 1) + " more";
  }
  if (!recipe.value.empty()) out += ", computed";
  return out + "\n";
}

}  // namespace

std::string to_text(const Program& program) {
  std::string out = "program " + program.page + ": layers " + std::to_string(program.layers) + ", width " + std::to_string(program.width) +
                    ", vocab " + std::to_string(program.vocab) + ", context " + std::to_string(program.context) + "\n";
  for (std::size_t i = 0; i < program.groups.size(); ++i)
    out += "group " + std::to_string(i) + ": " +
           (program.groups[i].window == 0 ? "all positions" : "the last " + std::to_string(program.groups[i].window) + " positions") + "\n";
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role == MEKIK_ROLE_INPUT) out += "input " + tensor.name + " " + sizes_text(tensor.shape) + " " + tensor.scheme + "\n";
    if (tensor.role == MEKIK_ROLE_STATE)
      out +=
          "state " + tensor.name + " " + sizes_text(tensor.shape) + " " + tensor.scheme + ", group " + std::to_string(tensor.group) + "\n";
    if (tensor.role == MEKIK_ROLE_SLOT) out += "slot " + tensor.name + " " + sizes_text(tensor.shape) + " " + tensor.scheme + "\n";
    if (tensor.role == MEKIK_ROLE_WEIGHT) out += weight_line(program, tensor);
  }
  for (const Op& op : program.ops) {
    std::string line;
    for (const std::uint32_t to : op.out)
      line += (line.empty() ? "" : ", ") + operand(program, to) + " " + sizes_text(program.tensors[to].shape);
    const OpInfo* info = op_info(op.code);
    line += (line.empty() ? "" : " = ") + std::string{info != nullptr ? info->name : "?"} + "(";
    for (std::size_t i = 0; i < op.in.size(); ++i) line += (i == 0 ? "" : ", ") + operand(program, op.in[i]);
    out += line + attributes(op) + ")\n";
  }
  return out;
}

}  // namespace mekik::program
