// POST /v1/embeddings.
#include <openssl/evp.h>

#include <bit>
#include <charconv>

#include "base/text.hpp"
#include "server/limits.hpp"
#include "server/openai/prepare.hpp"
#include "server/openai/vector_answer.hpp"

namespace mekik::server::openai {

namespace {

static_assert(std::endian::native == std::endian::little, "base64 embeddings are little-endian");

// The double that is written with the fewest digits among those that are read back as this float.
double shortest(float x) {
  char text[32];
  const char* end = std::to_chars(text, text + sizeof text, x).ptr;
  double out = 0;
  std::from_chars(text, end, out);
  return out;
}

std::string base64(const std::vector<float>& row) {
  const auto bytes = row.size() * sizeof(float);
  std::string out(4 * ((bytes + 2) / 3) + 1, '\0');  // OpenSSL ends it with a zero
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), reinterpret_cast<const unsigned char*>(row.data()),
                                   static_cast<int>(bytes));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

struct Shape {
  bool base64 = false;
  std::size_t dimensions = 0;  // 0: all
};

class EmbeddingAnswer final : public VectorAnswer {
 public:
  EmbeddingAnswer(AnswerOptions options, Shape shape) : VectorAnswer{std::move(options)}, shape_{shape} {}
  json::object result() override {
    json::array data;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::vector<float> row = engine::normalised(rows_[i], shape_.dimensions);
      json::object entry{{"object", "embedding"}, {"index", i}};
      if (shape_.base64) {
        entry["embedding"] = base64(row);
      } else {
        json::array numbers;
        numbers.reserve(row.size());
        for (const float x : row) numbers.emplace_back(shortest(x));
        entry["embedding"] = std::move(numbers);
      }
      data.push_back(std::move(entry));
    }
    json::object out{{"object", "list"}, {"data", std::move(data)}, {"model", options_.model}, {"usage", tokens_used()}};
    if (!options_.warnings.empty()) out["warnings"] = warnings();
    return out;
  }

 private:
  Shape shape_;
};

constexpr std::string_view kInputs = "must be a string, an array of strings, an array of token ids or an array of those";

MaybeError add_input(const json::value& one, const Served& served, std::vector<std::vector<std::int32_t>>& out) {
  std::vector<std::int32_t> tokens;
  const std::string which = "input: text " + std::to_string(out.size()) + " ";
  if (const json::array* ids = one.if_array()) {
    if (ids->empty() || !read_tokens(*ids, served.vocab, tokens))
      return bad_field("input", which + "must have token ids from 0 to " + std::to_string(served.vocab - 1) + ", at least one");
  } else if (const json::string* text = one.if_string()) {
    if (served.tokenizer == nullptr)
      return bad_field("input", "input: this model has no tokenizer, so give token ids: " + served.tokenizer_error);
    if (MaybeError error = check_length(served, *text)) return error;
    tokens = served.tokenizer->encode(*text, true, false);
    if (tokens.empty()) return bad_field("input", which + "is empty");
  } else {
    return bad_field("input", "input: " + std::string{kInputs});
  }
  if (tokens.size() > served.context) return context_exceeded(served, tokens.size(), false);
  out.push_back(std::move(tokens));
  return std::nullopt;
}

MaybeError read_inputs(const json::value& value, const Served& served, const Input& input, std::vector<std::vector<std::int32_t>>& out) {
  const json::array* list = value.if_array();
  if (list == nullptr || (!list->empty() && list->front().is_number())) return add_input(value, served, out);
  if (list->empty()) return bad_field("input", "input: " + std::string{kInputs} + ", at least one");
  const std::size_t bytes = list->size() * served.vector_size * kVectorNumberBytes;
  if (bytes > kMaxVectorBytes)
    return bad_field("input", "input: " + std::to_string(list->size()) + " texts make an answer of about " + human_bytes(bytes) +
                                  "; send at most " + std::to_string(kMaxVectorBytes / kVectorNumberBytes / served.vector_size) +
                                  " at once");
  for (const json::value& one : *list) {
    if (MaybeError error = check_client(input)) return error;
    if (MaybeError error = add_input(one, served, out)) return error;
  }
  return std::nullopt;
}

Shape read_shape(Fields& fields, const Served& served, std::vector<std::string>& warnings) {
  Shape shape;
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") fields.fail("encoding_format", "must be float or base64");
  shape.base64 = format == "base64";
  if (const auto dimensions = fields.integer("dimensions", 1, served.vector_size)) {
    shape.dimensions = static_cast<std::size_t>(*dimensions);
    if (shape.dimensions < served.vector_size)
      warnings.push_back("the first " + std::to_string(shape.dimensions) + " of " + std::to_string(served.vector_size) +
                         " dimensions: good only for models that were trained to be cut");
  }
  return shape;
}

}  // namespace

MaybeError prepare_embeddings(const Input& input, Prepared& out) {
  MaybeError error;
  const auto body = parse_body(input.body, input.max_bytes, error);
  if (!body) return error;
  Fields fields{*body};
  out.served = find_model(input.models, program::Task::embed, fields, error);
  if (out.served == nullptr) return error;
  AnswerOptions options;
  options.model = out.served->name;
  const Shape shape = read_shape(fields, *out.served, options.warnings);
  const json::value* texts = fields.get("input");
  if (texts == nullptr) fields.fail("input", "is missing");
  engine::Request request;
  if ((error = read_vector_fields(fields, kEmbeddings, input, request, options, out))) return error;
  std::vector<std::vector<std::int32_t>> prompts;
  if ((error = read_inputs(*texts, *out.served, input, prompts))) return error;
  for (std::vector<std::int32_t>& tokens : prompts) {
    out.requests.push_back(request);
    out.requests.back().prompt = std::move(tokens);
  }
  options.choices = static_cast<std::uint32_t>(prompts.size());
  out.answer = std::make_unique<EmbeddingAnswer>(std::move(options), shape);
  return std::nullopt;
}

}  // namespace mekik::server::openai
