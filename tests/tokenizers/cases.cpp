// The vocabularies of the cases from the field: every text of the .inp files, the rows of tokenizer_cases.json, and what CASES.md
// says in words (B09, B10, B13, B40).
#include <chrono>
#include <functional>

#include "support.hpp"

namespace {

using namespace mekik;
using test::Failures;

constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

std::vector<std::string> split(const std::string& text, std::string_view separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end - at));
    if (end == std::string::npos) return parts;
    at = end + separator.size();
  }
}

void check_lines(Failures& failures, const text::Tokenizer& tokenizer, const std::filesystem::path& vocabulary) {
  const auto inputs = split(file_text(vocabulary.string() + ".inp"), kSeparator);
  const auto outputs = split(file_text(vocabulary.string() + ".out"), "\n");
  failures.check(inputs.size() > 30 && outputs.size() >= inputs.size(), vocabulary.string() + ": .inp and .out do not fit");
  for (std::size_t i = 0; i < inputs.size() && i < outputs.size(); ++i) {
    std::vector<std::int32_t> ids;
    for (const std::string& word : split(outputs[i], " "))
      if (!word.empty()) ids.push_back(std::stoi(word));
    test::check_ids(failures, tokenizer, vocabulary.filename().string(), inputs[i], ids);
  }
}

// B09: long runs take no time.
void check_long_runs(Failures& failures, const text::Tokenizer& tokenizer, const std::string& name, std::size_t letters, std::int32_t id) {
  const auto begin = std::chrono::steady_clock::now();
  const auto ids = tokenizer.encode(std::string(100000, 'a'), false, false);
  for (const char* unit : {" ", "\n", " \n", "_", "1", "\xE6\xAD\xAA", "A", "e\xCC\x81", "\xC2\xA0", "a b", "\xF0\x9F\xA6\x80", "'"}) {
    std::string text;
    while (text.size() < 100000) text += unit;
    failures.check(tokenizer.fewest_tokens(text) <= tokenizer.encode(text, false, false).size(), name + ": fewer tokens than the fewest");
    for (const std::string& whole : {text, text + "x", text + "5", "x" + text + "\xE4\xB8\x80"})
      failures.check(tokenizer.decode(tokenizer.encode(whole, false, false), true).size() >= (id == 100 ? 0u : 50000u),
                     name + ": a long run lost text");
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  failures.check(ids.size() == letters && (id < 0 || ids == std::vector<std::int32_t>(letters, id)),
                 name + ": 100000 letters: " + test::shown(ids));
  failures.check(seconds < 10, name + ": 49 texts of 100 kB took " + std::to_string(seconds) + " s");
}

void check_refused(Failures& failures, const std::filesystem::path& path, const std::string& expected,
                   const std::function<void(json::object&)>& change = {}) {
  json::object metadata = test::GgufMetadata::read(path);
  if (change) change(metadata);
  const auto tokenizer = text::Tokenizer::create(metadata);
  const std::string text = tokenizer.status().text;
  failures.check(!tokenizer.ok() && text.find(expected) != std::string::npos,
                 path.filename().string() + ": said \"" + text + "\", expected \"" + expected + "\"");
}

int run() {
  const auto folder = test::cases_directory();
  if (!std::filesystem::exists(folder / "vocab")) {
    std::printf("skipped: no cases in %s\n", folder.c_str());
    return 77;
  }
  Failures failures;
  const json::array rows = test::read_rows(folder / "tokenizer_cases.json");
  const auto vocabulary = [&](const std::string& name) { return folder / "vocab" / ("ggml-vocab-" + name + ".gguf"); };
  for (const char* name : {"gpt-2", "llama-bpe", "llama-spm", "phi-3", "qwen2", "starcoder", "deepseek-llm", "bert-bge"}) {
    const auto begin = std::chrono::steady_clock::now();
    const auto tokenizer = test::open_tokenizer(vocabulary(name));
    std::printf("%s: %.0f ms, %s\n", name, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count(),
                tokenizer->kind().c_str());
    check_lines(failures, *tokenizer, vocabulary(name));
    if (std::string_view{name} == "llama-bpe") {
      failures.check(test::check_rows(failures, *tokenizer, rows, "llama-3") > 10, "no rows for llama-3");
      check_long_runs(failures, *tokenizer, name, 12500, 70540);
      text::Detokenizer half{*tokenizer, false}, whole{*tokenizer, false};
      failures.check(half.push(15722).empty() && half.finish() == "\xEF\xBF\xBD", "B10: half a character is not one U+FFFD");
      failures.check(tokenizer->piece(15722) == "\xE6\xAD", "B10: the raw bytes");
      failures.check(whole.push(15722).empty() && whole.push(103) == "\xE6\xAD\xAA", "B10: two halves");
    } else if (std::string_view{name} == "qwen2") {
      failures.check(test::check_rows(failures, *tokenizer, rows, "qwen2") > 10, "no rows for qwen2");
      check_long_runs(failures, *tokenizer, name, 12500, 69440);
    } else if (std::string_view{name} == "llama-spm") {
      failures.check(test::check_rows(failures, *tokenizer, rows, "llama-2") > 5, "no rows for llama-2");
      check_long_runs(failures, *tokenizer, name, 25002, -1);
      // The space comes once, at the start of the text; BOS before it changes nothing, another special token ends the start.
      test::check_ids(failures, *tokenizer, "B04 llama-2", "<s>Hello", {1, 15043}, true);
      test::check_ids(failures, *tokenizer, "B04 llama-2", "Hello</s>Hello", {15043, 2, 10994}, true);
      failures.check(tokenizer->decode(std::vector<std::int32_t>{1, 15043}, false) == "Hello", "B04: decoding drops the one space");
    } else if (std::string_view{name} == "bert-bge") {
      check_long_runs(failures, *tokenizer, name, 1, 100);
      const auto pair = tokenizer->encode_pair("hello", "world");
      failures.check(pair.ids == std::vector<std::int32_t>{101, 7592, 102, 2088, 102}, "bert-bge: a pair: " + test::shown(pair.ids));
      failures.check(pair.types == std::vector<std::int32_t>{0, 0, 0, 1, 1}, "bert-bge: types: " + test::shown(pair.types));
    } else if (std::string_view{name} == "deepseek-llm") {
      check_long_runs(failures, *tokenizer, name, tokenizer->encode(std::string(100000, 'a'), false, false).size(), -1);
    }
  }
  check_refused(failures, vocabulary("gpt-2"), "\"rwkv\"", [](json::object& m) { m["tokenizer.ggml.model"] = "rwkv"; });
  check_refused(failures, vocabulary("gpt-2"), "\"nosuch\"", [](json::object& m) { m["tokenizer.ggml.pre"] = "nosuch"; });
  check_refused(failures, vocabulary("gpt-2"), "tokenizer.ggml.pre is missing", [](json::object& m) { m.erase("tokenizer.ggml.pre"); });
  check_refused(failures, folder / "malformed" / "bos_oov.gguf", "999999");
  check_refused(failures, folder / "malformed" / "scores_short.gguf", "tokenizer.ggml.scores has 10 entries for 260 tokens");
  check_refused(failures, folder / "malformed" / "types_short.gguf", "tokenizer.ggml.token_type has 10 entries for 260 tokens");
  check_refused(failures, folder / "malformed" / "byte_token_neg.gguf", "<0x-1>");
  check_refused(failures, folder / "malformed" / "byte_token_zz.gguf", "<0xZZ>");
  test::open_tokenizer(folder / "malformed" / "good_tiny_llama.gguf");
  return failures.finish();
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::printf("FAILED: %s\n", error.what());
    return 1;
  }
}
