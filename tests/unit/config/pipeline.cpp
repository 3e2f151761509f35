#include "config/pipeline.hpp"

#include <filesystem>
#include <fstream>

#include "config/options.hpp"
#include "config/spelling.hpp"
#include "support/catch.hpp"
#include "support/components.hpp"
#include "support/paths.hpp"

using namespace mekik;
using namespace mekik::config;
namespace fs = std::filesystem;

namespace {

struct Fixture {
  test::TemporaryDirectory scratch;
  test::FakeComponents components;
  Diagnostics diagnostics;

  std::string write(const std::string& name, const std::string& text) {
    const fs::path path = scratch.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream{path, std::ios::binary} << text;
    return path.string();
  }
  std::optional<Pipeline> load(const std::string& path, const std::vector<std::string>& sets = {}) {
    std::vector<Override> overrides;
    for (const std::string& set : sets) overrides.push_back({set});
    diagnostics = {};
    return load_pipeline(path, overrides, components, diagnostics);
  }
  // Loads a file that must be fine.
  Pipeline good(const std::string& path, const std::vector<std::string>& sets = {}) {
    auto pipeline = load(path, sets);
    INFO(diagnostics.render());
    REQUIRE(pipeline.has_value());
    return std::move(*pipeline);
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "A model path alone: cpu, none, continuous, standard, no sink") {
  const std::string model = write("tiny.gguf", "");
  const auto pipeline = default_pipeline(model, {}, components, diagnostics);
  INFO(diagnostics.render());
  REQUIRE(pipeline.has_value());
  CHECK(pipeline->model.path == model);
  CHECK(pipeline->model.dense == "f32");
  CHECK(pipeline->backend.name == "cpu");
  CHECK(pipeline->backend.kind == "backend");
  CHECK(pipeline->cache.name == "prefix");
  CHECK(pipeline->scheduler.name == "continuous");
  REQUIRE(pipeline->samplers.size() == 1);
  CHECK(pipeline->samplers[0].name == "standard");
  CHECK(pipeline->sinks.empty());
  CHECK_FALSE(pipeline->draft.has_value());
  CHECK(pipeline->block_tokens == 32);
  CHECK(pipeline->cache_bytes == 0);
  CHECK(pipeline->kv == "auto");
  CHECK(pipeline->max_batch_tokens == 512);
  CHECK(pipeline->max_sequences == 64);
  const ServerUse& server = pipeline->server;
  CHECK(server.listen == std::vector<std::string>{"tcp://127.0.0.1:8080"});
  CHECK(server.api_keys.empty());
  CHECK(server.max_body_bytes == 8u << 20);
  CHECK(server.max_header_bytes == 16u << 10);
  CHECK(server.header_timeout_ns == 10'000'000'000u);
  CHECK(server.body_timeout_ns == 30'000'000'000u);
  CHECK(server.idle_timeout_ns == 60'000'000'000u);
  CHECK(server.stall_timeout_ns == 30'000'000'000u);
  CHECK(server.drain_timeout_ns == 30'000'000'000u);
  CHECK(server.max_connections == 1024);
  CHECK(server.max_queue == 256);
  const auto absent = default_pipeline((scratch.path() / "absent.gguf").string(), {}, components, diagnostics);
  CHECK_FALSE(absent.has_value());
  CHECK(diagnostics.render() ==
        "command line: error: 'path': there is no file or folder " + (scratch.path() / "absent.gguf").string() + "\n");
}

TEST_CASE_METHOD(Fixture, "A component reads its options through the table") {
  write("m.gguf", "");
  const Pipeline pipeline =
      good(write("p.toml",
                 "[model]\npath = \"m.gguf\"\n[backend]\nuse = \"gpu\"\ngraphs = false\npool = \"1.5MiB\"\n"
                 "[cache]\nuse = \"prefix\"\nttl = \"90s\"\n[[sampler]]\nuse = \"standard\"\ntemperature = 1\n"
                 "[[sink]]\nuse = \"jsonl\"\npath = \"out/a.jsonl\"\nfields = [\"x\", \"y\"]\nlimit = { lines = 7 }\n"));
  const Table& backend = *pipeline.backend.options;
  CHECK(backend.i64("graphs") == 0);
  CHECK(backend.i64("pool") == 1572864);
  CHECK(backend.length("pool") == 1);
  CHECK(pipeline.cache.options->i64("ttl") == 90'000'000'000);
  CHECK(pipeline.samplers[0].options->f64("temperature") == 1.0);
  CHECK(pipeline.samplers[0].options->i64("top_k") == 0);
  const Table& sink = *pipeline.sinks[0].options;
  CHECK(sink.text("path") == (scratch.path() / "out" / "a.jsonl").string());
  CHECK(sink.length("fields") == 2);
  CHECK(sink.text("fields.1") == "y");
  CHECK(sink.text("fields.2") == "");
  CHECK(sink.length("token") == 0);
  CHECK(sink.text("token") == "");
  REQUIRE(sink.table("limit", 0) != nullptr);
  CHECK(sink.table("limit", 0)->i64("lines") == 7);
  CHECK(sink.table("limit", 0)->text("unit") == "lines");
  CHECK(sink.table("limit", 1) == nullptr);
  CHECK(sink.rejection("path", "is on a full disk") ==
        (scratch.path() / "p.toml").string() + ":15:8: error: 'path' in [[sink]]: is on a full disk");
}

TEST_CASE_METHOD(Fixture, "A table that lacks a required field is absent as a whole") {
  write("m.gguf", "");
  const Pipeline pipeline = good(write("p.toml", "[model]\npath = \"m.gguf\"\n[[sink]]\nuse = \"jsonl\"\npath = \"a\"\n"));
  CHECK(pipeline.sinks[0].options->length("limit") == 0);
  CHECK(pipeline.sinks[0].options->table("limit", 0) == nullptr);
}

TEST_CASE_METHOD(Fixture, "extends: tables merge, lists are replaced, paths belong to the file that names them") {
  write("models/m.gguf", "");
  write(
      "base/base.toml",
      "[model]\npath = \"../models/m.gguf\"\n[scheduler]\nmax_sequences = 4\nshare = 0.25\n[[sink]]\nuse = \"jsonl\"\npath = \"b.jsonl\"\n"
      "[[sink]]\nuse = \"jsonl\"\npath = \"c.jsonl\"\n[server]\nlisten = [\"unix:s.sock\"]\n");
  const Pipeline pipeline = good(write(
      "top.toml", "[pipeline]\nextends = \"base/base.toml\"\n[scheduler]\nshare = 0.75\n[[sink]]\nuse = \"jsonl\"\npath = \"d.jsonl\"\n"));
  CHECK(pipeline.model.path == (scratch.path() / "models" / "m.gguf").string());
  CHECK(pipeline.max_sequences == 4);
  CHECK(pipeline.scheduler.options->f64("share") == 0.75);
  REQUIRE(pipeline.sinks.size() == 1);
  CHECK(pipeline.sinks[0].options->text("path") == (scratch.path() / "d.jsonl").string());
  CHECK(pipeline.server.listen == std::vector<std::string>{"unix:" + (scratch.path() / "base" / "s.sock").string()});
}

TEST_CASE_METHOD(Fixture, "--set reaches every key, into lists, too") {
  write("m.gguf", "");
  const std::string path =
      write("p.toml", "[model]\npath = \"m.gguf\"\n[[sink]]\nuse = \"jsonl\"\npath = \"a\"\n[[sink]]\nuse = \"jsonl\"\npath = \"b\"\n");
  const Pipeline pipeline =
      good(path, {"scheduler.max_batch_tokens=256", "cache.memory=1GiB", "cache.kv=q8_head", "sampler.0.temperature=0.5",
                  "sink.1.path=/tmp/x.jsonl", "sink.0.fields=[\"p\", \"q\"]", "server.api_key=\"1#2\"", "backend.math=exact",
                  "server.listen=[\"tcp://0.0.0.0:1\"]", "backend.threads=3"});
  CHECK(pipeline.max_batch_tokens == 256);
  CHECK(pipeline.cache_bytes == 1u << 30);
  CHECK(pipeline.kv == "q8_head");
  CHECK(pipeline.samplers[0].options->f64("temperature") == 0.5);
  CHECK(pipeline.sinks[1].options->text("path") == "/tmp/x.jsonl");
  CHECK(pipeline.sinks[0].options->length("fields") == 2);
  CHECK(pipeline.server.api_keys == std::vector<std::string>{"1#2"});
  CHECK(pipeline.backend.options->text("math") == "exact");
  CHECK(pipeline.threads == 3);
  CHECK(good(path, {"server.api_key=ab#c", "cache.kv=f16"}).server.api_keys == std::vector<std::string>{"ab#c"});
  CHECK(good(path, {"backend.threads=2", "backend.threads=5"}).threads == 5);
  CHECK_FALSE(load(path, {"server.api_key="}).has_value());
  CHECK_FALSE(load(path, {"model.name=a\xFF"}).has_value());
}

TEST_CASE_METHOD(Fixture, "--print-config: every value with where it comes from, secrets hidden, and it loads again") {
  write("m.gguf", "");
  const std::string path = write(
      "p.toml",
      "[model]\npath = \"m.gguf\"\n[[sink]]\nuse = \"jsonl\"\npath = \"a \\\"b\\\"\"\ntoken = \"hush\"\n[server]\napi_key = \"hush\"\n");
  const Pipeline pipeline = good(path, {"scheduler.share=1"});
  const std::string text = print_pipeline(pipeline);
  CHECK(text.find("hush") == std::string::npos);
  CHECK(text.find("[model]\npath = \"" + (scratch.path() / "m.gguf").string() + "\"  # " + path + ":2:8\n") == 0);
  CHECK(text.find("\n[scheduler]\nuse = \"continuous\"  # default\nmax_batch_tokens = 512  # default\n") != std::string::npos);
  CHECK(text.find("share = 1.0  # --set:1:17\n") != std::string::npos);
  CHECK(text.find("token = \"***\"  # ") != std::string::npos);
  const Pipeline again = good(write("again.toml", text));
  CHECK(again.sinks[0].options->text("path") == pipeline.sinks[0].options->text("path"));
  CHECK(again.settings.size() == pipeline.settings.size());
  for (std::size_t i = 0; i < again.settings.size(); ++i) CHECK(again.settings[i].value == pipeline.settings[i].value);
}

TEST_CASE_METHOD(Fixture, "A byte order mark and CRLF are fine, a missing file is one error") {
  write("m.gguf", "");
  CHECK(good(write("p.toml", "\xEF\xBB\xBF[model]\r\npath = \"m.gguf\"\r\n[scheduler]\r\nmax_sequences = 2\r\n")).max_sequences == 2);
  CHECK_FALSE(load((scratch.path() / "absent.toml").string()).has_value());
  CHECK(diagnostics.render() == "error: " + (scratch.path() / "absent.toml").string() + ": no such file\n");
}

TEST_CASE_METHOD(Fixture, "A warning does not stop a pipeline") {
  write("m.gguf", "");
  const Pipeline pipeline = good(write("p.toml", "[model]\npath = \"m.gguf\"\n[backend]\nkernel = \"old\"\n"));
  CHECK(pipeline.backend.options->text("kernel") == "old");
  CHECK(diagnostics.render().find(":4:1: warning: 'kernel' in [backend] is deprecated\n") != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "[plugins] is applied before components are looked up") {
  write("m.gguf", "");
  const std::string path = write("p.toml", "[model]\npath = \"m.gguf\"\n[plugins]\nload = [\"pack\", \"./mine.so\"]\ndirs = [\"lib\"]\n");
  const Pipeline pipeline = good(path);
  CHECK(components.loaded == std::vector<std::string>{"pack", (scratch.path() / "mine.so").string()});
  CHECK(components.directories == std::vector<std::string>{(scratch.path() / "lib").string()});
  CHECK(pipeline.plugin_load == components.loaded);
}

TEST_CASE("Values are spelled exactly") {
  CHECK(spell_size(1610612736) == "1536MiB");
  CHECK(spell_size(1000) == "1000");
  CHECK(spell_size(0) == "0");
  CHECK(spell_duration(250'000'000) == "250ms");
  CHECK(spell_duration(90'000'000'000) == "90s");
  CHECK(spell_duration(0) == "0ns");
  CHECK(spell_real(1) == "1.0");
  CHECK(spell_real(0.1) == "0.1");
  CHECK(spell_text("a\"\\\n") == "\"a\\\"\\\\\\u000A\"");
  CHECK(parse_loose("[1, 2]").list.size() == 2);
  CHECK(parse_loose("1GiB").text == "1GiB");
  CHECK(parse_loose("\"x\"").text == "x");
  CHECK(parse_loose("1\ny = 2").kind == Kind::text);
}
