// Weights of several tensors: grouped by their scheme's suffixes, moved as whole rows, or decoded with the reason.
#include <mekik/numbers.hpp>

#include <fstream>

#include "stored.hpp"
#include "support/safetensors_builder.hpp"

using namespace mekik;
using namespace mekik::test;

namespace {

struct Checkpoint : Stored {
  SafetensorsBuilder tensors;

  std::string noise(std::size_t count) {
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
  }
  static std::string floats(const std::vector<float>& values) { return {reinterpret_cast<const char*>(values.data()), values.size() * 4}; }
  void open_folder(const std::string& quantization) {
    const std::filesystem::path where = folder.path() / "model";
    tensors.write(where / "model.safetensors");
    std::ofstream{where / "config.json"} << R"({"dtype": "float32", "quantization_config": )" << quantization << "}";
    auto opened = weights::ModelFile::open(plugins.registry, where.string(), {});
    REQUIRE(opened.status().text == "");
    file = std::move(*opened);
  }
  void check(const program::WeightRecipe& made, const std::vector<float>& want) {
    REQUIRE(open(made).text == "");
    CHECK(decoded() == want);
    for (const std::uint64_t panel : {std::uint64_t{1}, std::uint64_t{3}, made.n})
      if (panel % store->forms()[0]->row_step == 0 || panel == made.n) CHECK(factored(panel) == want);
  }
};

std::vector<float> concat(std::vector<float> a, const std::vector<float>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE_METHOD(Checkpoint, "tensors with a scale of their own can be stacked and joined") {
  constexpr std::uint64_t n = 6, k = 40;
  for (const char* name : {"gate", "up"}) {
    tensors.tensor(std::string{name} + ".weight", "I8", {n, k}, noise(n * k));
    tensors.tensor(std::string{name} + ".SCB", "F32", {n}, floats({1, 2, 0.5f, -1, 3, 127}));
    tensors.tensor(std::string{name} + ".weight_format", "U8", {1}, std::string(1, '\0'));
  }
  tensors.tensor("norm.weight", "F32", {4}, floats({1, 2, 3, 4}));
  open_folder(R"({"quant_method": "bitsandbytes", "load_in_8bit": true, "llm_int8_threshold": 6.0})");
  REQUIRE(file->meta().tensors.size() == 3);
  CHECK(file->meta().tensors[0].name == "gate.weight");
  CHECK(file->meta().tensors[0].scheme == "bitsandbytes");
  CHECK(file->meta().tensors[0].shape == std::vector<std::int64_t>{n, k});
  CHECK(file->meta().tensors[0].bytes == n * k + 4 * n + 1);
  CHECK(file->meta().tensors[2].scheme.empty());

  const std::vector<float> gate = tensor(0, n, k), up = tensor(1, n, k);
  program::WeightRecipe stacked = recipe(2, n, k), joined = recipe(1, 2 * n, k);
  stacked.rows = joined.rows = {{0, 0, n, 1}, {1, 0, n, 1}};
  check(stacked, concat(gate, up));
  REQUIRE(open(stacked).ok());
  const mekik_form& form = *store->forms()[0];
  CHECK(form.kind == MEKIK_FORM_AFFINE);
  CHECK(form.act_outlier == 6.0f);
  REQUIRE(form.tensor_scale != nullptr);
  CHECK(form.tensor_scale[1] == 1.0f / 127);
  check(joined, concat(gate, up));
  CHECK(store->notes().empty());
}

TEST_CASE_METHOD(Checkpoint, "orders of inputs are moved with one tensor, and decoded where two differ") {
  constexpr std::uint32_t n = 32, k = 32;
  for (const int last : {31, 16}) {
    const std::string name = "e" + std::to_string(last);
    std::string order;
    for (int j = 0; j < static_cast<int>(k); ++j) {
      const std::int32_t group = ((j * 7 + last) % 32) / 16;
      order.append(reinterpret_cast<const char*>(&group), 4);
    }
    std::string scales;
    for (std::uint32_t i = 0; i < 2 * n; ++i) scales += std::string{"\x00\x34", 2};  // 0.25
    tensors.tensor(name + ".qweight", "I32", {k / 8, n}, noise(k / 8 * n * 4));
    tensors.tensor(name + ".qzeros", "I32", {2, n / 8}, noise(2 * n / 8 * 4));
    tensors.tensor(name + ".scales", "F16", {2, n}, scales);
    tensors.tensor(name + ".g_idx", "I32", {k}, order);
  }
  open_folder(R"({"quant_method": "gptq", "bits": 4, "group_size": 16, "sym": false, "desc_act": true})");
  const std::vector<float> first = tensor(0, n, k), second = tensor(1, n, k);
  program::WeightRecipe alone = recipe(1, n / 2, k);
  alone.rows = {{0, 1, n / 2, 2}};
  REQUIRE(open(alone).ok());
  CHECK(store->forms()[0]->k_perm != nullptr);
  CHECK(store->notes().empty());
  const std::vector<float> odd = decoded();
  for (std::uint32_t row = 0; row < n / 2; ++row)
    for (std::uint32_t j = 0; j < k; ++j) CHECK(odd[row * k + j] == first[(2 * row + 1) * k + j]);
  program::WeightRecipe stacked = recipe(2, n, k);
  stacked.rows = {{0, 0, n, 1}, {1, 0, n, 1}};
  REQUIRE(open(stacked).ok());
  CHECK(decoded() == concat(first, second));
  REQUIRE(store->notes().size() == 1);
  CHECK(store->notes()[0] == "\"w\" (gptq) is decoded to f32 at load: gptq and gptq are joined, whose forms differ");
}

TEST_CASE_METHOD(Checkpoint, "scales of blocks follow their rows, wherever those go") {
  constexpr std::uint64_t n = 40, k = 48;
  std::string bytes = noise(n * k);
  for (char& byte : bytes) byte = static_cast<char>(byte & 0x77);  // no NaN
  tensors.tensor("x.weight", "F8_E4M3", {n, k}, bytes);
  tensors.tensor("x.weight_scale_inv", "F32", {3, 3}, floats({1, 2, 3, 4, 5, 6, 7, 8, 9}));
  tensors.tensor("x.k_scale", "F32", {1}, floats({1}));
  open_folder(R"({"quant_method": "fp8", "weight_block_size": [16, 16]})");
  REQUIRE(file->meta().tensors.size() == 1);
  const std::vector<float> all = tensor(0, n, k);
  CHECK(all[17 * k + 33] == 6 * from_e4m3(static_cast<std::uint8_t>(bytes[17 * k + 33])));
  program::WeightRecipe turned = recipe(1, n, k);
  turned.rows = {{0, n - 1, n, -1}};
  std::vector<float> want;
  for (std::uint64_t row = n; row-- > 0;)
    want.insert(want.end(), all.begin() + static_cast<long>(row * k), all.begin() + static_cast<long>((row + 1) * k));
  check(turned, want);
  CHECK(store->forms()[0]->kind == MEKIK_FORM_CODEBOOK);
  REQUIRE(store->notes().size() == 2);
  CHECK(store->notes()[1] == "tensors named \"...k_scale\" are not used");
}

TEST_CASE_METHOD(Checkpoint, "8-bit floats of nobody's scheme are decoded") {
  tensors.tensor("x.weight", "F8_E5M2", {2, 3}, std::string{"\x3c\x40\xbc\x00\x01\x7b", 6});
  const std::filesystem::path where = folder.path() / "model";
  tensors.write(where / "model.safetensors");
  std::ofstream{where / "config.json"} << "{}";
  auto opened = weights::ModelFile::open(plugins.registry, where.string(), {});
  REQUIRE(opened.status().text == "");
  file = std::move(*opened);
  CHECK(tensor(0, 2, 3) == std::vector<float>{1, 2, -1, 0, 0x1p-16f, 57344});
  CHECK(store->notes().at(0) == "\"whole\" (float) is decoded to f32 at load: float has no form (8-bit floats without scales)");
}
