// Names of activations, ours and those that model files use.
#include "program/emitter.hpp"

namespace mekik::program {

namespace {

struct Kind {
  const char* name;
  std::int64_t code;
};
// The first name of each code is ours. "gelu_new" and its like are the tanh form, to the last constant.
constexpr Kind kKinds[] = {
    {"none", 0},   {"silu", 1},     {"gelu", 2},          {"gelu_tanh", 3}, {"quick_gelu", 4},        {"relu", 5},
    {"relu2", 6},  {"sigmoid", 7},  {"tanh", 8},          {"softplus", 9},  {"swiglu_clamped", 16},   {"swish", 1},
    {"linear", 0}, {"identity", 0}, {"gelu_python", 2},   {"gelu_new", 3},  {"gelu_pytorch_tanh", 3}, {"gelu_fast", 3},
    {"sqrt", 10},  {"exp", 11},     {"gelu_accurate", 3}, {"relu^2", 6},    {"relu_squared", 6},      {"squared_relu", 6}};

}  // namespace

std::int64_t activation_kind(std::string_view name, bool glu) {
  for (const Kind& kind : kKinds)
    if (name == kind.name && (kind.code < 10 || (kind.code == 16) == glu)) return kind.code;
  return -1;
}

const char* activation_name(std::int64_t code) {
  for (const Kind& kind : kKinds)
    if (kind.code == code) return kind.name;
  return "?";
}

const std::vector<std::string>& activation_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Kind& kind : kKinds) out.emplace_back(kind.name);
    return out;
  }();
  return names;
}

}  // namespace mekik::program
