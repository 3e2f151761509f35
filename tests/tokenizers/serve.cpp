// For make_hf_vectors.py --random: answers on standard output, line by line, what the tokenizer makes of texts. The first argument is a
// file with the loader's object {"hf": {..}}; every input line is {"text": .., "pair": ..?} with valid UTF-8.
#include <iostream>

#include "support.hpp"

namespace {

using namespace mekik;

json::array numbers(const std::vector<std::int32_t>& ids) { return json::array(ids.begin(), ids.end()); }

json::object answer(const text::Tokenizer& tokenizer, const json::value& question) {
  const json::string& raw = question.at("text").as_string();
  const std::string text{raw.data(), raw.size()};
  json::object out;
  const std::vector<std::int32_t> ids = tokenizer.encode(text, true, true);
  out["ids"] = numbers(ids);
  out["plain"] = numbers(tokenizer.encode(text, false, false));
  out["decoded"] = tokenizer.decode(ids, false);
  out["shown"] = tokenizer.decode(ids, true);
  if (const json::value* other = json::find(question, "pair"); other != nullptr) {
    const auto pair = tokenizer.encode_pair(text, {other->as_string().data(), other->as_string().size()});
    out["pair"] = numbers(pair.ids);
    out["types"] = numbers(pair.types);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FILE.json < questions\n", argv[0]);
    return 2;
  }
  std::ifstream file{argv[1], std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  const auto files = json::parse(text, {.bytes = std::size_t{1} << 30});
  auto tokenizer = files.ok() ? text::Tokenizer::create(*files) : Result<std::unique_ptr<text::Tokenizer>>{files.status()};
  std::printf("%s\n", json::serialize(json::value(tokenizer.ok() ? "ready" : tokenizer.status().text)).c_str());
  std::fflush(stdout);
  if (!tokenizer.ok()) return 1;
  for (std::string line; std::getline(std::cin, line);) {
    std::printf("%s\n", json::serialize(answer(**tokenizer, *json::parse(line))).c_str());
    std::fflush(stdout);
  }
  return 0;
}
