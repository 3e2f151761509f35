// A model file of random tensors, and what a program's weight over it gives.
#pragma once
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "reference/form.hpp"
#include "support/catch.hpp"
#include "support/gguf_builder.hpp"
#include "support/registry.hpp"
#include "weights/store.hpp"

namespace mekik::test {

constexpr std::uint32_t kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ4_1 = 3, kQ8_0 = 8, kQ4_K = 12, kQ6_K = 14, kQ8K = 15, kI32 = 26;

struct Stored {
  Plugins plugins;
  TemporaryDirectory folder;
  GgufBuilder builder;
  std::mt19937 random{1};
  std::unique_ptr<weights::ModelFile> file;
  program::Program program;
  std::unique_ptr<weights::Store> store;

  std::string path() const { return (folder.path() / "m.gguf").string(); }

  // Bytes at random, the halves in them kept finite: no half has all exponent bits set.
  std::string random_bytes(std::size_t count) {
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() & 0xBBu);
    return bytes;
  }
  void add(const std::string& name, std::uint32_t type, const std::vector<std::uint64_t>& ne, std::size_t block, std::size_t bytes) {
    std::uint64_t values = 1;
    for (const std::uint64_t size : ne) values *= size;
    builder.tensor(name, type, ne, random_bytes(values / block * bytes));
  }
  void open_file() {
    builder.write(path());
    auto opened = weights::ModelFile::open(plugins.registry, path(), {});
    REQUIRE(opened.status().text == "");
    file = std::move(*opened);
  }
  // The status of opening a store for this one weight.
  Status open(const program::WeightRecipe& recipe, const std::string& dense = "f32") {
    if (file == nullptr) open_file();
    store.reset();
    program = {};
    program::Tensor tensor;
    tensor.role = MEKIK_ROLE_WEIGHT;
    tensor.weight = 0;
    program.tensors = {tensor};
    program.weights = {recipe};
    auto opened = weights::Store::open(plugins.registry, *file, program, dense);
    if (!opened.ok()) return opened.status();
    store = std::move(*opened);
    return {};
  }
  // All rows through the form, in panels of `panel` rows.
  std::vector<float> factored(std::uint64_t panel) {
    const mekik_form& form = *store->forms()[0];
    REQUIRE(reference::check_form(form) == "");
    const mekik_weight weight = store->weight(0);
    std::vector<float> out(form.experts * form.n * form.k);
    for (std::uint64_t expert = 0; expert < form.experts; ++expert)
      for (std::uint64_t n0 = 0; n0 < form.n; n0 += panel) {
        const std::uint64_t n1 = std::min(form.n, n0 + panel);
        std::vector<std::uint64_t> memory(reference::form_bytes(form, n1 - n0).total() / 8 + 1);
        const mekik_form_rows rows = reference::place_rows(form, n1 - n0, memory.data());
        REQUIRE(weight.rows(weight.self, expert, n0, n1, &rows) == MEKIK_OK);
        reference::decode_rows(form, rows, expert, n0, n0, n1, out.data() + (expert * form.n + n0) * form.k);
      }
    return out;
  }
  std::vector<float> decoded() {
    const mekik_form& form = *store->forms()[0];
    std::vector<float> out(form.experts * form.n * form.k);
    for (std::uint64_t expert = 0; expert < form.experts; ++expert)
      REQUIRE(store->decode(0, expert, 0, form.n, out.data() + expert * form.n * form.k).ok());
    return out;
  }
  // A tensor of the file as it is, decoded: [rows][k].
  std::vector<float> tensor(std::uint32_t index, std::uint64_t rows, std::uint64_t k) {
    program::WeightRecipe recipe;
    recipe.symbol = "whole";
    recipe.n = rows;
    recipe.k = k;
    recipe.rows = {{index, 0, rows, 1}};
    REQUIRE(open(recipe).text == "");
    return decoded();
  }
};

inline program::WeightRecipe recipe(std::uint64_t experts, std::uint64_t n, std::uint64_t k) {
  program::WeightRecipe out;
  out.symbol = "w";
  out.layer = 3;
  out.experts = experts;
  out.n = n;
  out.k = k;
  return out;
}

}  // namespace mekik::test
