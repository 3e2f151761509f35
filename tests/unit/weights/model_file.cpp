#include "weights/model_file.hpp"

#include <filesystem>

#include "support/catch.hpp"
#include "support/gguf_builder.hpp"
#include "support/registry.hpp"

using namespace mekik;
using test::GgufBuilder;
using weights::ModelFile;
namespace fs = std::filesystem;

namespace {

struct Fixture {
  test::Plugins plugins;
  test::TemporaryDirectory folder;
  std::string path(const std::string& name) const { return (folder.path() / name).string(); }
  Status open(const std::string& name, const std::string& loader = {}) {
    return ModelFile::open(plugins.registry, path(name), loader).status();
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a GGUF file is known by its bytes or its name, and gives its metadata") {
  GgufBuilder file;
  file.text_key("general.architecture", "llama");
  file.key("llama.block_count", GgufBuilder::u32, GgufBuilder::raw(7u));
  file.text_key("tokenizer.chat_template", "{{ messages }}");
  file.tensor("w", 0, {3, 2}, test::float_bytes({1, 2, 3, 4, 5, 6}));
  for (const char* name : {"model.gguf", "model.bin"}) {
    file.write(path(name));
    const auto model = ModelFile::open(plugins.registry, path(name), {});
    REQUIRE(model.status().text == "");
    const program::ModelMeta& meta = (*model)->meta();
    CHECK(meta.format == "gguf");
    CHECK(meta.config.at("llama.block_count").as_int64() == 7);
    CHECK(meta.path == path(name));
    CHECK(meta.file("generation_config.json").is_null());
    REQUIRE(meta.tensors.size() == 1);
    CHECK(meta.tensors[0].shape == std::vector<std::int64_t>{2, 3});
    CHECK(meta.tensors[0].scheme.empty());
    CHECK(meta.tensors[0].num == MEKIK_F32);
    CHECK(*(*model)->chat_template() == "{{ messages }}");
    CHECK((*model)->tokenizer()->as_object().size() == 1);
    CHECK((*model)->file_bytes() == fs::file_size(path(name)));
  }
}

TEST_CASE_METHOD(Fixture, "a file without tokenizer and template says so") {
  GgufBuilder{}.write(path("bare.gguf"));
  const auto model = ModelFile::open(plugins.registry, path("bare.gguf"), {});
  REQUIRE(model.status().text == "");
  CHECK((*model)->tokenizer()->is_null());
  CHECK((*model)->chat_template().status().code == Code::invalid);
}

TEST_CASE_METHOD(Fixture, "what cannot be opened is said once, with the path") {
  CHECK(open("absent.gguf").code == Code::invalid);
  CHECK(open("absent.gguf", "gguf").code == Code::invalid);
  GgufBuilder::write_bytes(path("text.txt"), "hello");
  CHECK(open("text.txt").text.find("not a GGUF file, and not a folder") != std::string::npos);
  GgufBuilder::write_bytes(path("empty.gguf"), "");
  const Status empty = open("empty.gguf");
  CHECK(empty.code == Code::invalid);
  CHECK(empty.text == path("empty.gguf") + ": the file is empty");
  fs::create_directory(path("folder"));
  CHECK(open("folder").text.find("without a config.json") != std::string::npos);
  CHECK(open("text.txt", "nosuch").text.find("nosuch") != std::string::npos);
}
