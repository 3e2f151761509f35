// What the scheme tests in Python drive: decodes a GGUF file both ways, or encodes floats.
//   scheme_tool decode FILE OUT      OUT.decoded and OUT.factored: all tensors one after another, F32; prints the name, the count of values
//   and
//                                    the kind of form of each
//   scheme_tool encode SCHEME N K FLOATS OUT [IMPORTANCE]
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "reference/form.hpp"
#include "support/registry.hpp"
#include "weights/store.hpp"

namespace {

using namespace mekik;

int complain(const std::string& what) {
  std::cerr << what << '\n';
  return 1;
}

// One weight for each tensor of the file, as it is.
program::Program every_tensor(const program::ModelMeta& meta) {
  program::Program program;
  for (std::uint32_t i = 0; i < meta.tensors.size(); ++i) {
    const program::TensorInfo& tensor = meta.tensors[i];
    program::WeightRecipe recipe;
    recipe.symbol = tensor.name;
    recipe.k = static_cast<std::uint64_t>(tensor.shape.back());
    for (std::size_t axis = 0; axis + 1 < tensor.shape.size(); ++axis) recipe.n *= static_cast<std::uint64_t>(tensor.shape[axis]);
    recipe.rows = {{i, 0, recipe.n, 1}};
    program::Tensor weight;
    weight.role = MEKIK_ROLE_WEIGHT;
    weight.weight = static_cast<std::int32_t>(i);
    program.tensors.push_back(weight);
    program.weights.push_back(recipe);
  }
  return program;
}

void append(std::ofstream& out, const std::vector<float>& values) {
  out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
}

int decode(const std::string& path, const std::string& prefix) {
  test::Plugins plugins;
  const auto file = weights::ModelFile::open(plugins.registry, path, {});
  if (!file.ok()) return complain(file.status().text);
  const program::Program program = every_tensor((*file)->meta());
  const auto store = weights::Store::open(plugins.registry, **file, program, "f32");
  if (!store.ok()) return complain(store.status().text);
  std::ofstream decoded{prefix + ".decoded", std::ios::binary}, factored{prefix + ".factored", std::ios::binary};
  for (std::uint32_t i = 0; i < program.weights.size(); ++i) {
    const mekik_form& form = *(*store)->forms()[i];
    if (const std::string wrong = reference::check_form(form); !wrong.empty()) return complain(program.weights[i].symbol + ": " + wrong);
    std::vector<float> values(form.n * form.k), again(values.size());
    if (const Status status = (*store)->decode(i, 0, 0, form.n, values.data()); !status.ok()) return complain(status.text);
    std::vector<std::uint64_t> memory(reference::form_bytes(form, form.n).total() / 8 + 1);
    const mekik_form_rows rows = reference::place_rows(form, form.n, memory.data());
    const mekik_weight weight = (*store)->weight(i);
    if (weight.rows(weight.self, 0, 0, form.n, &rows) != MEKIK_OK) return complain(plugin::take_failure());
    if (const std::string wrong = reference::check_codes(form, rows, form.n); !wrong.empty()) return complain(wrong);
    reference::decode_rows(form, rows, 0, 0, 0, form.n, again.data());
    std::printf("%s\t%zu\t%s\n", program.weights[i].symbol.c_str(), values.size(), form.kind == MEKIK_FORM_FLOAT ? "float" : "factored");
    append(decoded, values);
    append(factored, again);
  }
  return decoded.good() && factored.good() ? 0 : complain("writing failed");
}

std::vector<float> read_floats(const char* path) {
  std::ifstream in{path, std::ios::binary};
  const std::string bytes{std::istreambuf_iterator<char>{in}, {}};
  std::vector<float> values(bytes.size() / sizeof(float));
  bytes.copy(reinterpret_cast<char*>(values.data()), values.size() * sizeof(float));
  return values;
}

int encode(int count, char** arguments) {
  test::Plugins plugins;
  const auto found = plugins.registry.find("scheme", arguments[0]);
  if (!found.ok()) return complain(found.status().text);
  const auto& scheme = found->table<mekik_scheme>();
  const std::uint64_t n = std::stoull(arguments[1]), k = std::stoull(arguments[2]);
  const std::vector<float> x = read_floats(arguments[3]), importance = count > 5 ? read_floats(arguments[5]) : std::vector<float>{};
  std::vector<char> blocks(n * k / scheme.block_elems * scheme.block_bytes);
  const Status status = plugin::to_status(
      scheme.encode(x.data(), importance.empty() ? nullptr : importance.data(), n, k, blocks.data(), blocks.size()), arguments[0]);
  if (!status.ok()) return complain(status.text);
  std::ofstream out{arguments[4], std::ios::binary};
  out.write(blocks.data(), static_cast<std::streamsize>(blocks.size()));
  return out.good() ? 0 : complain("writing failed");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "decode" && argc == 4) return decode(argv[2], argv[3]);
  if (verb == "encode" && (argc == 7 || argc == 8)) return encode(argc - 2, argv + 2);
  return complain("usage: scheme_tool decode FILE-OR-FOLDER OUT | encode SCHEME N K FLOATS OUT [IMPORTANCE]");
}
