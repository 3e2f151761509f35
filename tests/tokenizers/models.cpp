// The tokenizers of the real models that the tests use, from MEKIK_MODELS or the repository's models/ (demo.sh fetches them).
#include <chrono>

#include "support.hpp"

namespace {

using namespace mekik;
using test::Failures;

void check_rows(Failures& failures, const text::Tokenizer& tokenizer, const std::string& vocabulary) {
  const auto rows = test::cases_directory() / "tokenizer_cases.json";
  if (!std::filesystem::exists(rows)) return;
  failures.check(test::check_rows(failures, tokenizer, test::read_rows(rows), vocabulary) > 3, "no rows for " + vocabulary);
}

void check_run(Failures& failures, const text::Tokenizer& tokenizer, std::size_t count, std::int32_t id) {
  const auto begin = std::chrono::steady_clock::now();
  const auto ids = tokenizer.encode(std::string(100000, 'a'), false, false);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  failures.check(ids == std::vector<std::int32_t>(count, id) && seconds < 1,
                 "B09: " + test::shown(ids) + " in " + std::to_string(seconds) + " s");
}

void check_smollm2(Failures& failures, const text::Tokenizer& tokenizer) {
  check_rows(failures, tokenizer, "smollm2");
  check_run(failures, tokenizer, 25000, 46880);
  failures.check(tokenizer.encode(std::string(50000, '_'), false, false).size() == 1563, "B09: 50000 underscores");
  text::Detokenizer thrice{tokenizer, false};
  std::string text;
  for (int i = 0; i < 3; ++i) text += thrice.push(10813);
  text += thrice.finish();
  failures.check(text == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", "B51: F0 9F three times are three U+FFFD");
  failures.check(tokenizer.ends() == std::vector<std::int32_t>{0, 2}, "the end tokens: " + test::shown(tokenizer.ends()));
  test::check_ids(failures, tokenizer, "SmolLM2", "<|im_start|>user", {1, 4093}, true);
  failures.check(tokenizer.encode("<|im_start|>user", false, false).size() > 3, "special tokens in text that is not trusted");
}

void check_gemma3(Failures& failures, const text::Tokenizer& tokenizer) {
  check_rows(failures, tokenizer, "gemma-3");
  check_run(failures, tokenizer, 12500, 128820);
  test::check_ids(failures, tokenizer, "B04 Gemma 3", "<bos>text<eos>", {2, 1005, 1}, true);
  test::check_ids(failures, tokenizer, "B04 Gemma 3", "    return x", {140, 2060, 1123});
  failures.check(tokenizer.ends() == std::vector<std::int32_t>{1, 106}, "the end tokens: " + test::shown(tokenizer.ends()));
}

}  // namespace

int main() {
  const auto folder = test::from_environment("MEKIK_MODELS", (test::source_directory() / "models").c_str());
  Failures failures;
  int models = 0;
  const auto with = [&](const char* file, void (*check)(Failures&, const text::Tokenizer&)) {
    const auto path = folder / file;
    if (!std::filesystem::exists(path)) return;
    ++models;
    try {
      const auto begin = std::chrono::steady_clock::now();
      const auto metadata = test::GgufMetadata::read(path);
      const auto read = std::chrono::steady_clock::now();
      const auto tokenizer = text::Tokenizer::create(metadata);
      const auto created = std::chrono::steady_clock::now();
      if (!tokenizer.ok()) throw std::runtime_error(tokenizer.status().text);
      const auto ms = [](auto duration) { return std::chrono::duration<double, std::milli>(duration).count(); };
      std::printf("%s: file read in %.0f ms, tokenizer made in %.0f ms\n", file, ms(read - begin), ms(created - read));
      check(failures, **tokenizer);
    } catch (const std::exception& error) {
      failures.check(false, std::string{file} + ": " + error.what());
    }
  };
  with("SmolLM2-135M-Instruct.Q4_1.gguf", check_smollm2);
  with("gemma-3-270m-q4_k_m.gguf", check_gemma3);
  if (models == 0) {
    std::printf("skipped: no models in %s\n", folder.c_str());
    return 77;
  }
  return failures.finish();
}
