#include <filesystem>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "open_model.hpp"
#include "support/catch.hpp"
#include "support/safetensors_builder.hpp"

using namespace mekik;
using test::OpenModel;
using test::SafetensorsBuilder;
namespace fs = std::filesystem;

namespace {

bool has(const std::string& text, const std::string& part) {
  INFO("\"" << text << "\" lacks \"" << part << "\"");
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

struct Fixture {
  test::Plugins plugins;
  test::TemporaryDirectory folder;
  std::string path(const std::string& name = {}) const { return (folder.path() / name).lexically_normal().string(); }
  void write(const std::string& name, const std::string& bytes) { SafetensorsBuilder::write_bytes(path(name), bytes); }
  std::string error_of(const std::string& name) {
    std::string text = OpenModel(plugins, "safetensors", path(name)).status.text;
    CHECK(text.find('\n') == std::string::npos);
    return text;
  }
  // The error of a file with this header and so many bytes of data.
  std::string error_of(const std::string& header, std::size_t data) {
    write("m.safetensors", SafetensorsBuilder::file(header, std::string(data, '\0')));
    return error_of("m.safetensors");
  }
  // One F32 tensor `name` of value `value`.
  void write_one(const std::string& file, const std::string& name, char value = 0) {
    SafetensorsBuilder one;
    one.tensor(name, "F32", {1}, std::string(4, value));
    one.write(path(file));
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "safetensors: every dtype has its number, its size and its bytes") {
  const std::vector<std::tuple<std::string, std::uint32_t, std::size_t>> dtypes{
      {"F64", MEKIK_F64, 8},      {"F32", MEKIK_F32, 4},      {"F16", MEKIK_F16, 2},      {"BF16", MEKIK_BF16, 2},
      {"F8_E4M3", MEKIK_E4M3, 1}, {"F8_E5M2", MEKIK_E5M2, 1}, {"F8_E8M0", MEKIK_E8M0, 1}, {"I8", MEKIK_I8, 1},
      {"U8", MEKIK_U8, 1},        {"I16", MEKIK_I16, 2},      {"U16", MEKIK_I16, 2},      {"I32", MEKIK_I32, 4},
      {"U32", MEKIK_I32, 4},      {"I64", MEKIK_I64, 8},      {"U64", MEKIK_I64, 8},      {"BOOL", MEKIK_U8, 1}};
  SafetensorsBuilder file;
  for (const auto& [name, num, size] : dtypes) file.tensor(name, name, {3, 2}, std::string(6 * size, static_cast<char>(num)));
  file.write(path("m.safetensors"));
  OpenModel model{plugins, "safetensors", path("m.safetensors")};
  REQUIRE(model.status.text == "");
  const std::vector<mekik_part> parts = model.tensors();
  REQUIRE(parts.size() == dtypes.size());
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    const auto& [name, num, size] = dtypes[i];
    CHECK(parts[i].name == name);
    CHECK(parts[i].num == num);
    CHECK(parts[i].scheme == nullptr);
    CHECK(parts[i].rank == 2);
    CHECK(parts[i].shape[0] == 3);
    CHECK(parts[i].shape[1] == 2);
    CHECK(parts[i].bytes == 6 * size);
    std::string bytes(6 * size, '\0');
    CHECK(model.read(i, 0, bytes.data(), bytes.size()).ok());
    CHECK(bytes == std::string(6 * size, static_cast<char>(num)));
    CHECK(!model.read(i, 1, bytes.data(), bytes.size()).ok());
  }
  CHECK(!model.read(99, 0, nullptr, 0).ok());
}

TEST_CASE_METHOD(Fixture, "safetensors: a scalar, a tensor without numbers, and one of five sizes") {
  SafetensorsBuilder file;
  file.tensor("scalar", "F32", {}, "abcd");
  file.tensor("empty", "F32", {0, 3}, "");
  file.tensor("patches", "U8", {2, 3, 1, 2, 2}, "abcdefghijklmnopqrstuvwx");
  file.write(path("m.safetensors"));
  OpenModel model{plugins, "safetensors", path("m.safetensors")};
  REQUIRE(model.status.text == "");
  const std::vector<mekik_part> parts = model.tensors();
  REQUIRE(parts.size() == 3);
  for (const mekik_part& part : parts) {
    const std::string name = part.name;
    if (name == "scalar") CHECK((part.rank == 1 && part.shape[0] == 1 && part.bytes == 4));
    if (name == "empty") CHECK((part.rank == 2 && part.shape[0] == 0 && part.shape[1] == 3 && part.bytes == 0));
    if (name == "patches") CHECK((part.rank == 4 && part.shape[0] == 2 && part.shape[1] == 3 && part.shape[2] == 1 && part.shape[3] == 4));
  }
}

TEST_CASE_METHOD(Fixture, "safetensors: what is wrong with a header is said, with the tensor's name") {
  const std::string good = R"("dtype":"F32","shape":[2,2],"data_offsets":[0,16])";
  const struct {
    std::string header;
    std::size_t data;
    std::string message;
  } cases[] = {
      {R"({"t":{"dtype":"F99","shape":[2,2],"data_offsets":[0,16]}})", 16,
       R"(tensor "t" has the dtype "F99"; those that are read: F64 F32)"},
      {R"({"t":{"dtype":"F32","shape":[2,3],"data_offsets":[0,16]}})", 16,
       "[2, 3] of F32, which is 24 bytes, but its data_offsets cover 16"},
      {R"({"t":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,16]}})", 16, "does not fit 63 bits"},
      {R"({"t":{"dtype":"F32","shape":[2,2],"data_offsets":[16,0]}})", 16, "end before they begin: 16, 0"},
      {R"({"t":{"dtype":"F32","shape":[2,2],"data_offsets":[-16,0]}})", 16, "the negative number -16"},
      {R"({"t":{"dtype":"F32","shape":[2,2],"data_offsets":[0.0,16.5]}})", 16, "not a whole one"},
      {R"({"t":{"dtype":"F32","shape":[2,2],"data_offsets":[0]}})", 16, "not two numbers"},
      {R"({"t":{"dtype":"F32","shape":[2,2]}})", 16, R"(tensor "t" lacks one of dtype)"},
      {R"({"t":{)" + good + R"(,"strides":[1]}})", 16, R"(the unknown field "strides")"},
      {R"({"t":{)" + good + R"(,"dtype":"F32"}})", 16, R"(has the field "dtype" twice)"},
      {R"({"t":{)" + good + R"(},"t":{)" + good + "}}", 16, R"(tensor "t" occurs twice)"},
      {R"({"":{)" + good + "}}", 16, "a tensor has no name"},
      {R"({"a\u0000b":{)" + good + "}}", 16, "control characters"},
      {R"({"t":{"dtype":"F32","shape":[[2]],"data_offsets":[0,16]}})", 16, "holds a list where none belongs"},
      {R"({"t":{"dtype":"F32","shape":{"a":1},"data_offsets":[0,16]}})", 16, "holds an object where none belongs"},
      {R"({"t":[1]})", 16, R"(tensor "t" is not described by an object)"},
      {R"({"t":null})", 16, R"(tensor "t" is not described by an object)"},
      {R"({"__metadata__":{"a":1}})", 0, "__metadata__ holds something that is not a text"},
      {R"({"t":{)" + good + "}}x", 16, "goes on after its JSON"},
      {R"({"t":{)" + good + "}", 16, "not valid JSON"},
      {"\"text\"", 0, "the header is not a JSON object"},
      {R"({"t":{)" + good + "}}", 12, "is truncated: its tensors need"},
      {R"({"t":{)" + good + "}}", 20, "has 4 bytes after its tensors"},
      {R"({"t":{)" + good + R"(},"u":{"dtype":"U8","shape":[4],"data_offsets":[20,24]}})", 24, R"(a hole of 4 bytes before tensor "u")"},
      {R"({"t":{)" + good + R"(},"u":{"dtype":"U8","shape":[4],"data_offsets":[12,16]}})", 16, R"(tensors "t" and "u" overlap)"},
      {R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[9223372036854775807,9223372036854775807]}})", 0, "a hole of"},
      {R"({"t":{"dtype":"U8","shape":[18446744073709551615,0],"data_offsets":[0,0]}})", 0, "a size of 18446744073709551615"},
  };
  for (const auto& one : cases) CHECK(has(error_of(one.header, one.data), one.message));
  CHECK(error_of(R"({"t":{)" + good + "}}   \n", 16).empty());  // padding
  CHECK(error_of("{}", 0).empty());
  write("m.safetensors", std::string(8, '\xff') + "{}");
  CHECK(has(error_of("m.safetensors"), "at most 100000000 are read"));
  write("m.safetensors", "PK\x03\x04 and so on");
  CHECK(has(error_of("m.safetensors"), "is a PyTorch file"));
  write("m.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  CHECK(has(error_of("m.safetensors"), "Git LFS pointer"));
}

TEST_CASE_METHOD(Fixture, "safetensors: an index says which shard counts, and what is missing") {
  write("config.json", "{}");
  write("model.safetensors.index.json", R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors","c":"three.safetensors"}})");
  write_one("one.safetensors", "a", 1);
  CHECK(has(error_of("."), "2 of 3 files of the model are missing: three.safetensors, two.safetensors; fetch them"));
  write_one("two.safetensors", "a", 9);  // a copy that does not count
  write_one("three.safetensors", "c");
  CHECK(has(error_of("."), R"(says that tensor "b" is in two.safetensors, which lacks it)"));
  SafetensorsBuilder two;
  two.tensor("a", "F32", {1}, std::string(4, 9));
  two.tensor("b", "F32", {1}, std::string(4, 2));
  two.tensor("extra", "F32", {1}, std::string(4, 3));
  two.write(path("two.safetensors"));
  for (const char* name : {".", "model.safetensors.index.json", "config.json"}) {
    OpenModel model{plugins, "safetensors", path(name)};
    REQUIRE(model.status.text == "");
    const auto parts = model.tensors();
    REQUIRE(parts.size() == 4);
    for (std::uint32_t i = 0; i < parts.size(); ++i) {
      char value = 0;
      CHECK(model.read(i, 0, &value, 1).ok());
      CHECK(value == (parts[i].name == std::string{"a"}   ? 1
                      : parts[i].name == std::string{"b"} ? 2
                      : parts[i].name == std::string{"c"} ? 0
                                                          : 3));
    }
  }
  write("model.safetensors.index.json", R"({"weight_map":{"a":"../one.safetensors"}})");
  CHECK(has(error_of("."), "is not one of its folder"));
  write("model.safetensors.index.json", R"({"a":1})");
  CHECK(has(error_of("."), "has no weight_map"));
  write("model.safetensors.index.json", R"({"weight_map":)");
  CHECK(has(error_of("."), "model.safetensors.index.json: is not valid JSON"));
}

TEST_CASE_METHOD(Fixture, "safetensors: shards without an index belong together by their names") {
  write("config.json", "{}");
  write_one("m-00001-of-00002.safetensors", "a");
  CHECK(has(error_of("."), "a file of the model is missing: m-00002-of-00002.safetensors; fetch it"));
  write_one("m-00002-of-00002.safetensors", "a");
  CHECK(has(error_of("."), R"(tensor "a" is also in m-00001-of-00002.safetensors)"));
  write_one("m-00002-of-00002.safetensors", "b");
  CHECK(error_of(".").empty());
  CHECK(error_of("m-00001-of-00002.safetensors").empty());
  write_one("other.safetensors", "b");
  CHECK(has(error_of("."), "holds several models: m-00001-of-00002.safetensors"));
  CHECK(error_of("other.safetensors").empty());
  write_one("model.safetensors", "c");  // the name that counts
  OpenModel model{plugins, "safetensors", path(".")};
  REQUIRE(model.tensors().size() == 1);
  CHECK(model.tensors()[0].name == std::string{"c"});
}

TEST_CASE_METHOD(Fixture, "safetensors: the linears that sentence-transformers puts behind a model are its tensors") {
  write("config.json", "{}");
  write_one("model.safetensors", "a");
  const auto modules = [&](const std::string& path) {
    write("modules.json", R"([{"type": "sentence_transformers.models.Transformer", "path": ""},)"
                          R"({"type": "sentence_transformers.models.Dense", "path": ")" +
                              path + R"("}])");
  };
  modules("2_Dense");
  has(error_of("."), "2_Dense/model.safetensors is missing; fetch it");
  fs::create_directories(folder.path() / "2_Dense");
  write_one("2_Dense/model.safetensors", "linear.weight", 7);
  OpenModel model{plugins, "safetensors", path()};
  REQUIRE(model.status.text == "");
  REQUIRE(model.tensors().size() == 2);
  CHECK(model.tensors()[1].name == std::string{"2_Dense/linear.weight"});
  std::string bytes(4, '\0');
  CHECK(model.read(1, 0, bytes.data(), bytes.size()).ok());
  CHECK(bytes == std::string(4, 7));
  modules("../2_Dense");
  has(error_of("."), "which is not one of its folder");
}

TEST_CASE_METHOD(Fixture, "safetensors: a folder that is no model says what to do") {
  fs::create_directories(path("f"));
  CHECK(has(error_of("f"), "without a config.json"));
  write("f/params.json", "{}");
  CHECK(has(error_of("f"), "Mistral's own layout"));
  write("f/some.gguf", "GGUF");
  CHECK(has(error_of("f"), "name one of them, " + path("f/some.gguf")));
  write("f/adapter_config.json", "{}");
  CHECK(has(error_of("f"), "is an adapter (LoRA)"));
  write("w/config.json", "{}");
  CHECK(has(error_of("w"), "has a config.json but no weights"));
  write("w/model.onnx", "");
  CHECK(has(error_of("w"), "only in model.onnx"));
  write("w/training_args.bin", "");
  write("w/pytorch_model.bin", "PK");
  CHECK(has(error_of("w"), "only in pytorch_model.bin, which is not read (it can run code); convert it: python3 -c \"from transformers"));
  CHECK(has(error_of("w/pytorch_model.bin"), "is a PyTorch file"));
}

TEST_CASE_METHOD(Fixture, "safetensors: metadata comes from the files beside the weights") {
  write_one("model.safetensors", "a");
  {
    OpenModel alone{plugins, "safetensors", path("model.safetensors")};
    CHECK(alone.meta("config") == "(none)");
    CHECK(alone.meta("tokenizer") == "(none)");
    CHECK(alone.meta("template") == "(none)");
    CHECK(alone.meta("format") == "\"hf\"");
  }
  write("config.json", R"({"a": Infinity, "b": [-Infinity, NaN], "c": "NaN \" Infinity"})");
  write("tokenizer.json", R"({"model":{"vocab":{"a":0}}})");
  write("tokenizer.model", std::string{"\0\xff"
                                       "ab",
                                       4});
  write("merges.txt", "a b\n");
  write("generation_config.json", R"({"eos_token_id":[1,2]})");
  write("sub/config.json", R"({"pooling":"mean"})");
  write("broken.json", "{");
  write("chat_template.json", R"({"chat_template":"third"})");
  {
    OpenModel model{plugins, "safetensors", path(".")};
    CHECK(model.meta("config") == R"({"a": 1e999, "b": [-1e999, null], "c": "NaN \" Infinity"})");
    CHECK(model.meta("template") == "\"third\"");
    CHECK(model.meta("file:sub/config.json") == R"({"pooling":"mean"})");
    CHECK(model.meta("file:absent.json") == "(none)");
    CHECK(model.meta("file:broken.json") == "(failed)");
    for (const char* outside : {"file:../x.json", "file:/etc/passwd", "file:", "file:sub/../config.json"})
      CHECK(model.meta(outside) == "(none)");
    const auto tokenizer = json::parse(model.meta("tokenizer"));
    REQUIRE(tokenizer.ok());
    const json::value& hf = tokenizer->at("hf");
    CHECK(hf.at("tokenizer_json").at("model").at("vocab").at("a").to_number<int>() == 0);
    CHECK(hf.at("sentencepiece_base64").as_string() == "AP9hYg==");
    CHECK(hf.at("generation_config").at("eos_token_id").as_array().size() == 2);
    CHECK(hf.at("config").as_object().contains("c"));
    for (const char* key : {"vocab_json", "merges_txt", "tokenizer_config"}) CHECK(!hf.as_object().contains(key));
  }
  write("tokenizer_config.json", R"({"chat_template":[{"name":"tool_use","template":"t"},{"name":"default","template":"second"}]})");
  {
    OpenModel model{plugins, "safetensors", path(".")};
    CHECK(model.meta("template") == "\"second\"");
    CHECK(model.meta("template:tool_use") == "\"t\"");
    CHECK(model.meta("template:other") == "(none)");
  }
  write("chat_template.jinja", "first\n");
  fs::remove(path("tokenizer.json"));
  fs::remove(path("tokenizer.model"));
  {
    OpenModel model{plugins, "safetensors", path(".")};
    CHECK(model.meta("template") == R"("first\n")");
    const auto tokenizer = json::parse(model.meta("tokenizer"));
    REQUIRE(tokenizer.ok());
    CHECK(tokenizer->at("hf").at("merges_txt").as_string() == "a b\n");
  }
  write("tokenizer_config.json", "{\n\"a\":\n");
  OpenModel model{plugins, "safetensors", path(".")};
  CHECK(model.meta("tokenizer") == "(failed)");
}
