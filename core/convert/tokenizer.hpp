// A model's tokenizer from one format to the other, as far as both can say it. What cannot be said is a note, and then there is none.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/status.hpp"
#include "convert/gguf_writer.hpp"

namespace mekik::convert {

// `tokenizer`: {"hf": {..}} as the loader gives it. The file gets a token for each of `vocabulary` rows, unused ones where there is none.
Status tokenizer_to_gguf(const json::value& tokenizer, std::uint64_t vocabulary, GgufKeys& out, std::vector<std::string>& notes);

// As files say it that have none, with a note.
void no_tokenizer(GgufKeys& out, std::vector<std::string>& notes);

// `tokenizer`: the tokenizer.* keys of a GGUF file. Adds files by name, and ids of special tokens to config.json.
Status tokenizer_to_files(const json::value& tokenizer, json::object& config, std::map<std::string, std::string>& files,
                          std::vector<std::string>& notes);

// JSON for people: two spaces a level; lists of numbers on one line.
std::string indented(const json::value& value);

}  // namespace mekik::convert
