#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>

#include "base/json.hpp"
#include "open_model.hpp"
#include "support/catch.hpp"
#include "support/gguf_builder.hpp"

using namespace mekik;
using test::GgufBuilder;
using test::OpenModel;
namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t kF32 = 0, kF16 = 1, kQ4_K = 12, kQ8_0 = 8, kQ8K = 15;

struct Fixture {
  test::Plugins plugins;
  test::TemporaryDirectory folder;
  std::string path(const std::string& name = "m.gguf") const { return (folder.path() / name).string(); }
  // The error of opening these bytes, or "".
  std::string error_of(const std::string& bytes) {
    GgufBuilder::write_bytes(path(), bytes);
    return OpenModel{plugins, "gguf", path()}.status.text;
  }
};

// A small file that opens.
GgufBuilder good() {
  GgufBuilder file;
  file.text_key("general.architecture", "llama");
  file.tensor("a.weight", kF32, {4, 3}, test::float_bytes({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  file.tensor("b.weight", kQ8_0, {64, 2}, std::string(2 * 2 * 34, '\1'));
  return file;
}

bool one_line(const std::string& text) { return !text.empty() && text.find('\n') == std::string::npos; }

}  // namespace

TEST_CASE_METHOD(Fixture, "tensors come row-major, with their bytes") {
  good().write(path());
  OpenModel model{plugins, "gguf", path()};
  REQUIRE(model.status.text == "");
  const auto tensors = model.tensors();
  REQUIRE(tensors.size() == 2);
  CHECK(std::string{tensors[0].name} == "a.weight");
  CHECK(tensors[0].scheme == nullptr);
  CHECK(tensors[0].num == MEKIK_F32);
  CHECK(tensors[0].rank == 2);
  CHECK(tensors[0].shape[0] == 3);
  CHECK(tensors[0].shape[1] == 4);
  CHECK(tensors[0].bytes == 48);
  CHECK(std::string{tensors[1].scheme} == "q8_0");
  CHECK(tensors[1].bytes == 136);
  float values[2] = {};
  CHECK(model.read(0, 16, values, 8).ok());
  CHECK(values[0] == 5);
  CHECK(values[1] == 6);
  CHECK(model.read(0, 44, values, 8).code == Code::invalid);
  CHECK(model.read(0, std::numeric_limits<std::uint64_t>::max(), values, 8).code == Code::invalid);
  CHECK(model.read(2, 0, values, 8).code == Code::invalid);
}

TEST_CASE_METHOD(Fixture, "versions 2 and 3 are read, no others") {
  GgufBuilder file = good();
  for (const std::uint32_t version : {2u, 3u}) {
    file.version = version;
    CHECK(error_of(file.bytes()) == "");
  }
  for (const std::uint32_t version : {0u, 1u, 4u, 99u}) {
    file.version = version;
    CHECK(error_of(file.bytes()).find("version " + std::to_string(version)) != std::string::npos);
  }
  file.version = 0x03000000u;
  for (const std::string& swapped : {file.bytes(), "FUGG" + good().bytes().substr(4)}) {
    CHECK(error_of(swapped).find("big-endian") != std::string::npos);
    CHECK(error_of(swapped).find("gguf_convert_endian.py") != std::string::npos);
  }
}

TEST_CASE_METHOD(Fixture, "metadata become JSON, exactly") {
  GgufBuilder file;
  file.text_key("general.name", "a \"name\"\n\x01 caf\xC3\xA9");
  file.key("x.u64", GgufBuilder::u64, GgufBuilder::raw(std::numeric_limits<std::uint64_t>::max()));
  file.key("x.i64", GgufBuilder::i64, GgufBuilder::raw(std::numeric_limits<std::int64_t>::min()));
  file.key("x.i8", GgufBuilder::i8, GgufBuilder::raw<std::int8_t>(-1));
  file.key("x.f32", GgufBuilder::f32, GgufBuilder::raw(1e-5f));
  file.key("x.base", GgufBuilder::f32, GgufBuilder::raw(10000.0f));
  file.key("x.inf", GgufBuilder::f32, GgufBuilder::raw(-std::numeric_limits<float>::infinity()));
  file.key("x.yes", GgufBuilder::boolean, GgufBuilder::raw<std::uint8_t>(1));
  file.array_key("x.list", GgufBuilder::i32, 3, GgufBuilder::raw(1) + GgufBuilder::raw(-2) + GgufBuilder::raw(3));
  file.array_key("x.none", GgufBuilder::string, 0, "");
  file.array_key("x.nested", GgufBuilder::array, 1,
                 GgufBuilder::raw<std::uint32_t>(GgufBuilder::u8) + GgufBuilder::raw<std::uint64_t>(2) + "\1\2");
  file.array_key("tokenizer.ggml.tokens", GgufBuilder::string, 2, GgufBuilder::text("\xE2\x96\x81") + GgufBuilder::text(""));
  file.array_key("tokenizer.ggml.scores", GgufBuilder::f32, 2, GgufBuilder::raw(0.1f) + GgufBuilder::raw(-3.0f));
  file.text_key("tokenizer.chat_template", "{{ x }}");
  file.write(path());
  OpenModel model{plugins, "gguf", path()};
  REQUIRE(model.status.text == "");
  CHECK(model.meta("format") == "\"gguf\"");
  CHECK(model.meta("template") == "\"{{ x }}\"");
  CHECK(model.meta("file:generation_config.json") == "(none)");
  const auto config = json::parse(model.meta("config"));
  REQUIRE(config.ok());
  CHECK(config->at("general.name").as_string() == "a \"name\"\n\x01 caf\xC3\xA9");
  CHECK(config->at("x.u64").as_uint64() == std::numeric_limits<std::uint64_t>::max());
  CHECK(config->at("x.i64").as_int64() == std::numeric_limits<std::int64_t>::min());
  CHECK(config->at("x.i8").as_int64() == -1);
  CHECK(config->at("x.f32").as_double() == static_cast<double>(1e-5f));
  CHECK(config->at("x.base").as_double() == 10000.0);
  CHECK(config->at("x.inf").as_double() == -std::numeric_limits<double>::infinity());
  CHECK(config->at("x.yes").as_bool());
  CHECK(json::serialize(config->at("x.list")) == "[1,-2,3]");
  CHECK(config->at("x.none").as_array().empty());
  CHECK(json::serialize(config->at("x.nested")) == "[[1,2]]");
  CHECK(json::find(*config, "tokenizer.ggml.tokens") == nullptr);
  const auto tokenizer = json::parse(model.meta("tokenizer"));
  REQUIRE(tokenizer.ok());
  CHECK(tokenizer->at("tokenizer.ggml.tokens").as_array()[0].as_string() == "\xE2\x96\x81");
  CHECK(tokenizer->at("tokenizer.ggml.scores").as_array()[0].as_double() == static_cast<double>(0.1f));
  CHECK(tokenizer->as_object().size() == 3);
}

TEST_CASE_METHOD(Fixture, "a file without a tokenizer or template says so") {
  good().write(path());
  OpenModel model{plugins, "gguf", path()};
  CHECK(model.meta("tokenizer") == "(none)");
  CHECK(model.meta("template") == "(none)");
}

TEST_CASE_METHOD(Fixture, "wrong metadata are refused by name") {
  const std::vector<std::pair<std::string, std::function<void(GgufBuilder&)>>> cases{
      {"\"k\" occurs twice", [](GgufBuilder& f) { f.text_key("k", "1"), f.text_key("k", "2"); }},
      {"key is empty", [](GgufBuilder& f) { f.text_key("", "1"); }},
      {"not valid UTF-8", [](GgufBuilder& f) { f.text_key("k", "ab\xFFz"); }},
      {"not valid UTF-8", [](GgufBuilder& f) { f.text_key("k\xC0\x80", "ab"); }},
      {"unknown type 13", [](GgufBuilder& f) { f.key("k", static_cast<GgufBuilder::Type>(13), "1234"); }},
      {"unknown type 77", [](GgufBuilder& f) { f.array_key("k", static_cast<GgufBuilder::Type>(77), 1, "1234"); }},
      {"boolean with the value 2", [](GgufBuilder& f) { f.key("k", GgufBuilder::boolean, "\2"); }},
      {"holds NaN", [](GgufBuilder& f) { f.key("k", GgufBuilder::f32, GgufBuilder::raw(std::numeric_limits<float>::quiet_NaN())); }},
      {"\"k\" claims 1152921504606846976", [](GgufBuilder& f) { f.array_key("k", GgufBuilder::u64, std::uint64_t{1} << 60, "1234"); }},
      {"claims 18446744073709551615", [](GgufBuilder& f) { f.array_key("k", GgufBuilder::u8, ~std::uint64_t{0}, "1234"); }},
      {"ends inside a metadata string", [](GgufBuilder& f) { f.key("k", GgufBuilder::string, GgufBuilder::raw(std::uint64_t{1} << 31)); }},
      {"not a string", [](GgufBuilder& f) { f.key("tokenizer.chat_template", GgufBuilder::u8, "1"); }},
      {"must be a power of two", [](GgufBuilder& f) { f.key("general.alignment", GgufBuilder::u32, GgufBuilder::raw(48u)); }},
      {"is negative", [](GgufBuilder& f) { f.key("general.alignment", GgufBuilder::i32, GgufBuilder::raw(-32)); }},
      {"is not an integer", [](GgufBuilder& f) { f.text_key("general.alignment", "32"); }},
  };
  for (const auto& [expected, spoil] : cases) {
    GgufBuilder file;
    spoil(file);
    const std::string error = error_of(file.bytes());
    INFO(error);
    CHECK(error.find(expected) != std::string::npos);
    CHECK(one_line(error));
  }
}

TEST_CASE_METHOD(Fixture, "arrays nest four deep and no deeper") {
  const auto nested = [](int depth) {
    std::string value;
    for (int i = 0; i < depth - 1; ++i) value += GgufBuilder::raw<std::uint32_t>(GgufBuilder::array) + GgufBuilder::raw<std::uint64_t>(1);
    GgufBuilder file;
    file.key("k", GgufBuilder::array, value + GgufBuilder::raw<std::uint32_t>(GgufBuilder::u8) + GgufBuilder::raw<std::uint64_t>(1) + "\7");
    return file.bytes();
  };
  CHECK(error_of(nested(4)) == "");
  CHECK(error_of(nested(5)).find("nests arrays") != std::string::npos);
  CHECK(error_of(nested(100000)).find("nests arrays") != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "wrong tensors are refused by name") {
  const std::string data(4096, '\0');
  const std::vector<std::pair<std::string, std::function<void(GgufBuilder&)>>> cases{
      {"\"t\" occurs twice", [&](GgufBuilder& f) { f.tensor("t", kF32, {4}, data), f.tensor("t", kF32, {4}, data); }},
      {"no name", [&](GgufBuilder& f) { f.tensor("", kF32, {4}, data); }},
      {"has 129 bytes", [&](GgufBuilder& f) { f.tensor(std::string(129, 'n'), kF32, {4}, data); }},
      {"not printable",
       [&](GgufBuilder& f) {
         f.tensor(std::string_view{"a\0b", 3}, kF32, {4}, data);
       }},
      {"5 dimensions",
       [&](GgufBuilder& f) {
         f.tensor("t", kF32, {1, 1, 1, 1, 1}, data);
       }},
      {"dimension of size 0",
       [&](GgufBuilder& f) {
         f.tensor("t", kF32, {4, 0}, data);
       }},
      {"unknown type 999", [&](GgufBuilder& f) { f.tensor("t", 999, {4}, data); }},
      {"Q4_2, which ggml has removed; convert the model again", [&](GgufBuilder& f) { f.tensor("t", 4, {64}, data); }},
      {"Q4_0_4_4, which ggml has removed; fetch the file with Q4_0", [&](GgufBuilder& f) { f.tensor("t", 31, {64}, data); }},
      {"IQ4_NL_8_8, which ggml has removed; fetch the file with IQ4_NL", [&](GgufBuilder& f) { f.tensor("t", 38, {64}, data); }},
      {"unknown type 43", [&](GgufBuilder& f) { f.tensor("t", 43, {64}, data); }},
      {"rows of 96 values, not a multiple of 256",
       [&](GgufBuilder& f) {
         f.tensor("t", kQ4_K, {96, 256}, data);
       }},
      {"does not fit 63 bits",
       [&](GgufBuilder& f) {
         f.tensor("t", kF32, {32, (std::uint64_t{1} << 59) + 260}, data);
       }},
      {"does not fit 63 bits",
       [&](GgufBuilder& f) {
         f.tensor("t", kF32, {1u << 31, 1u << 31, 1u << 31, 1u << 31}, data);
       }},
      {"not a multiple of the alignment", [&](GgufBuilder& f) { f.tensor("s", kF32, {4}, data), f.tensor_at("t", kF32, {4}, 8); }},
      {"offset that no file can hold",
       [&](GgufBuilder& f) { f.tensor("s", kF32, {4}, data), f.tensor_at("t", kF32, {4}, ~std::uint64_t{31}); }},
      {"overlap", [&](GgufBuilder& f) { f.tensor("s", kF32, {64}, data), f.tensor_at("t", kF32, {4}, 32); }},
      {"truncated: its tensors need", [&](GgufBuilder& f) { f.tensor("s", kF32, {4}, data), f.tensor_at("t", kF32, {4}, 1u << 20); }},
  };
  for (const auto& [expected, spoil] : cases) {
    GgufBuilder file;
    spoil(file);
    const std::string error = error_of(file.bytes());
    INFO(error);
    CHECK(error.find(expected) != std::string::npos);
    CHECK(one_line(error));
  }
}

TEST_CASE_METHOD(Fixture, "types without a scheme of ours still load as metadata") {
  GgufBuilder file;
  file.tensor("t", kQ8K, {256}, std::string(292, '\0'));
  file.write(path());
  OpenModel model{plugins, "gguf", path()};
  REQUIRE(model.status.text == "");
  CHECK(std::string{model.tensors()[0].scheme} == "q8_k");
}

TEST_CASE_METHOD(Fixture, "every prefix of a file is refused with one line") {
  const std::string whole = good().bytes();
  // The last tensor ends before the padding.
  const std::size_t needed = whole.size() - (160 - 136);
  for (std::size_t cut = 0; cut < needed; ++cut) {
    const std::string error = error_of(whole.substr(0, cut));
    INFO(cut << ": " << error);
    REQUIRE(one_line(error));
  }
  CHECK(error_of(whole.substr(0, needed)) == "");
}

TEST_CASE_METHOD(Fixture, "what is not a GGUF file is named") {
  CHECK(error_of("").find("is empty") != std::string::npos);
  CHECK(error_of("PK\3\4 something else, and long enough").find("not a GGUF file") != std::string::npos);
  CHECK(error_of("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n").find("git lfs pull") != std::string::npos);
  CHECK(OpenModel(plugins, "gguf", path("absent.gguf")).status.code == Code::io);
  CHECK(OpenModel(plugins, "gguf", folder.path().string()).status.code == Code::io);
}

TEST_CASE_METHOD(Fixture, "a file that shrinks while it is open gives an error, one that is deleted goes on") {
  good().write(path());
  OpenModel model{plugins, "gguf", path()};
  REQUIRE(model.status.ok());
  float value = 0;
  fs::resize_file(path(), 100);
  const Status shrunk = model.read(0, 0, &value, 4);
  CHECK(shrunk.code == Code::io);
  CHECK(shrunk.text.find("shrank") != std::string::npos);
  good().write(path("other.gguf"));
  OpenModel other{plugins, "gguf", path("other.gguf")};
  fs::remove(path("other.gguf"));
  CHECK(other.read(0, 0, &value, 4).ok());
  CHECK(value == 1);
}

TEST_CASE_METHOD(Fixture, "split models are joined from their first part") {
  const auto write = [&](const std::string& name, int no, int count, int total, const std::string& tensor) {
    GgufBuilder file;
    file.key("split.no", GgufBuilder::u16, GgufBuilder::raw(static_cast<std::uint16_t>(no)));
    file.key("split.count", GgufBuilder::u16, GgufBuilder::raw(static_cast<std::uint16_t>(count)));
    file.key("split.tensors.count", GgufBuilder::i32, GgufBuilder::raw(total));
    if (no == 0) file.text_key("general.architecture", "llama");
    if (!tensor.empty()) file.tensor(tensor, kF32, {1}, test::float_bytes({static_cast<float>(no)}));
    file.write(path(name));
  };
  const auto error = [&](const std::string& name) { return OpenModel(plugins, "gguf", path(name)).status.text; };
  const std::string one = "m-00001-of-00003.gguf", two = "m-00002-of-00003.gguf", three = "m-00003-of-00003.gguf";
  write(one, 0, 3, 2, "");
  write(two, 1, 3, 2, "a");
  CHECK(error(one).find("part 3 of 3 missing: ") != std::string::npos);
  CHECK(error(one).find(three) != std::string::npos);
  write(three, 2, 3, 2, "b");
  {
    OpenModel model{plugins, "gguf", path(one)};
    REQUIRE(model.status.text == "");
    REQUIRE(model.tensors().size() == 2);
    float value = 0;
    CHECK(model.read(1, 0, &value, 4).ok());
    CHECK(value == 2);
  }
  CHECK(error(two).find("open the first part") != std::string::npos);
  CHECK(error(two).find(one) != std::string::npos);
  write(three, 1, 3, 2, "b");
  CHECK(error(one).find("says it is part 2 of 3") != std::string::npos);
  write(three, 2, 4, 2, "b");
  CHECK(error(one).find("says it is part 3 of 4") != std::string::npos);
  write(three, 2, 3, 2, "a");
  CHECK(error(one).find("two parts") != std::string::npos);
  write(three, 2, 3, 2, "b");
  write(one, 0, 3, 7, "");
  CHECK(error(one).find("split.tensors.count says 7") != std::string::npos);
  write("renamed.gguf", 0, 3, 2, "");
  CHECK(error("renamed.gguf").find("-00001-of-00003.gguf") != std::string::npos);
  write("m-00004-of-00003.gguf", 3, 3, 2, "");
  CHECK(error("m-00004-of-00003.gguf").find("counts from 0") != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "a vocabulary of 262144 tokens opens quickly") {
  constexpr std::uint64_t kTokens = 262144;
  std::string tokens, scores, types;
  for (std::uint64_t i = 0; i < kTokens; ++i) {
    tokens += GgufBuilder::text("\xE2\x96\x81token" + std::to_string(i));
    scores += GgufBuilder::raw(-static_cast<float>(i) * 0.37f);
    types += GgufBuilder::raw(1);
  }
  GgufBuilder file;
  file.array_key("tokenizer.ggml.tokens", GgufBuilder::string, kTokens, tokens);
  file.array_key("tokenizer.ggml.scores", GgufBuilder::f32, kTokens, scores);
  file.array_key("tokenizer.ggml.token_type", GgufBuilder::i32, kTokens, types);
  file.write(path());
  const auto begin = std::chrono::steady_clock::now();
  OpenModel model{plugins, "gguf", path()};
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  REQUIRE(model.status.text == "");
  CHECK(model.meta("tokenizer").size() > kTokens * 20);
  WARN("262144 tokens took " << took.count() << " ms");
  CHECK(took.count() < 3000);  // 60 ms on an idle machine; sanitizers and loaded machines get room
}
