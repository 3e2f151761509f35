// The small tokenizers of hf_vectors.json and spm_vectors.json (make_hf_vectors.py) give what Hugging Face's library and SentencePiece
// give: ids, type ids and text.
#include <ctime>

#include "support.hpp"

namespace {

using namespace mekik;
using test::Failures;

std::vector<std::int32_t> ids_of(const json::value& list) {
  std::vector<std::int32_t> ids;
  for (const json::value& id : list.as_array()) ids.push_back(static_cast<std::int32_t>(id.as_int64()));
  return ids;
}

std::string text_of(const json::value& value) { return {value.as_string().data(), value.as_string().size()}; }

void check_case(Failures& failures, const text::Tokenizer& tokenizer, const std::string& name, const json::value& row,
                const json::array& texts) {
  const std::string text = text_of(texts.at(static_cast<std::size_t>(row.at("text").as_int64())));
  const std::string label = name + " " + json::serialize(json::value(text.substr(0, 50))) + " ";
  const auto same = [&](const std::string& what, const std::vector<std::int32_t>& got, const std::vector<std::int32_t>& right) {
    failures.check(got == right, label + what + ": " + test::shown(got) + ", expected " + test::shown(right));
  };
  const std::vector<std::int32_t> ids = ids_of(row.at("ids"));
  same("ids", tokenizer.encode(text, true, true), ids);
  const json::value* plain = json::find(row, "plain");
  same("plain", tokenizer.encode(text, false, false), plain == nullptr ? ids : ids_of(*plain));
  const std::size_t fewest = tokenizer.fewest_tokens(text);
  for (const bool special : {false, true})
    failures.check(fewest <= tokenizer.encode(text, false, special).size(), label + "has fewer than " + std::to_string(fewest) + " tokens");
  const auto decodes = [&](bool special, const std::string& right) {
    const std::string got = tokenizer.decode(ids, special);
    failures.check(got == right,
                   label + "decoded: " + json::serialize(json::value(got)) + ", expected " + json::serialize(json::value(right)));
  };
  const json::value* shown = json::find(row, "shown");
  decodes(false, text_of(row.at("decoded")));
  decodes(true, text_of(shown == nullptr ? row.at("decoded") : *shown));
  if (const json::value* other = json::find(row, "other"); other != nullptr) {
    const auto pair = tokenizer.encode_pair(text, text_of(texts.at(static_cast<std::size_t>(other->as_int64()))));
    same("pair", pair.ids, ids_of(row.at("pair")));
    same("types", pair.types, ids_of(row.at("types")));
  }
}

// Long runs take no time in any model, through any steps.
void check_long_runs(Failures& failures, const text::Tokenizer& tokenizer, const std::string& name) {
  for (const char* unit :
       {"a", " ", "\n", "<s>", "<mask> ", "\xE6\xAD\xAA", "e\xCC\x81", "\xCC\x81\xCC\xA3", "\xF0\x9F\xA6\x80", "1", ".", "a b "}) {
    std::string text;
    while (text.size() < 100000) text += unit;
    for (const std::string& whole : {text, text + "x"}) {
      const std::clock_t begin = std::clock();  // not the wall's: other tests run beside this one
      const auto ids = tokenizer.encode(whole, true, true);
      const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      failures.check(tokenizer.fewest_tokens(whole) <= ids.size(), name + ": fewer tokens than the fewest of " + unit);
      failures.check(seconds < 1, name + ": 100 kB of " + json::serialize(json::value(unit)) + " took " + std::to_string(seconds) + " s");
    }
  }
}

json::value read(const std::string& name) {
  std::ifstream file{test::source_directory() / "tests/tokenizers" / name, std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  const auto whole = json::parse(text);
  if (!whole.ok()) throw std::runtime_error(name + ": " + whole.status().text);
  return *whole;
}

void check_sentencepiece(Failures& failures) {
  const json::value whole = read("spm_vectors.json");
  for (const json::value& row : whole.at("tokenizers").as_array()) {
    const std::string name = "tokenizer.model " + text_of(row.at("name"));
    const auto tokenizer = text::Tokenizer::create(json::object{{"hf", json::object{{"sentencepiece_base64", row.at("model")}}}});
    failures.check(tokenizer.ok(), name + ": " + tokenizer.status().text);
    if (!tokenizer.ok()) continue;
    for (const json::value& one : row.at("cases").as_array()) {
      const std::string text = text_of(whole.at("texts").at(static_cast<std::size_t>(one.at("text").as_int64())));
      test::check_ids(failures, **tokenizer, name, text, ids_of(one.at("ids")));
    }
    check_long_runs(failures, **tokenizer, name);
  }
}

int run() {
  const json::value whole = read("hf_vectors.json");
  Failures failures;
  check_sentencepiece(failures);
  for (const json::value& row : whole.at("tokenizers").as_array()) {
    const std::string name = text_of(row.at("name"));
    json::object described = row.at("rest").as_object();
    described["model"] = whole.at("models").at(text_of(row.at("model")));
    const auto tokenizer = text::Tokenizer::create(json::object{{"hf", json::object{{"tokenizer_json", described}}}});
    failures.check(tokenizer.ok(), name + ": " + tokenizer.status().text);
    if (!tokenizer.ok()) continue;
    for (const json::value& one : row.at("cases").as_array()) check_case(failures, **tokenizer, name, one, whole.at("texts").as_array());
    check_long_runs(failures, **tokenizer, name);
  }
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
