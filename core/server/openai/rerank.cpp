// POST /v1/rerank: documents ordered by how well they answer a query, as Jina, Cohere and vLLM have it.
#include <algorithm>
#include <numeric>

#include "base/text.hpp"
#include "server/limits.hpp"
#include "server/openai/prepare.hpp"
#include "server/openai/vector_answer.hpp"
#include "text/pair.hpp"

namespace mekik::server::openai {

namespace {

class RankAnswer final : public VectorAnswer {
 public:
  // `documents`: to be shown beside the scores; empty: not.
  RankAnswer(AnswerOptions options, const engine::Scoring& scoring, std::size_t top, json::array documents)
      : VectorAnswer{std::move(options)}, scoring_{scoring}, top_{top}, documents_(std::move(documents)) {}
  json::object result() override {
    std::vector<double> scores;
    for (const std::vector<float>& row : rows_) scores.push_back(scoring_.of(row));
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    order.resize(std::min(top_, order.size()));
    json::array results;
    for (const std::size_t i : order) {
      json::object entry{{"index", i}, {"relevance_score", scores[i]}};
      if (!documents_.empty()) entry["document"] = json::object{{"text", documents_[i]}};
      results.push_back(std::move(entry));
    }
    json::object out{{"id", options_.id}, {"model", options_.model}, {"usage", tokens_used()}, {"results", std::move(results)}};
    if (!options_.warnings.empty()) out["warnings"] = warnings();
    return out;
  }

 private:
  engine::Scoring scoring_;
  std::size_t top_;
  json::array documents_;
};

// Each a string, or an object with its text.
MaybeError read_documents(const json::array& from, json::array& out, std::vector<std::string>& warnings) {
  if (from.empty()) return bad_field("documents", "documents: at least one is needed");
  if (from.size() > kMaxDocuments) return bad_field("documents", "documents: at most " + std::to_string(kMaxDocuments) + " are allowed");
  for (const json::value& one : from) {
    const json::value* text = one.is_string() ? &one : json::find(one, "text");
    if (text == nullptr || !text->is_string())
      return bad_field("documents", "documents: each must be a string, or an object with its text");
    out.push_back(*text);
    if (const json::object* members = one.if_object(); members != nullptr && members->size() > 1 && warnings.empty())
      for (const auto& member : *members)
        if (member.key() != "text")
          warnings.push_back("only the text of a document is read, not its " + mekik::quoted(std::string_view{member.key()}));
  }
  return std::nullopt;
}

MaybeError add_pair(const Served& served, std::string_view query, std::string_view document, const engine::Request& request,
                    Prepared& out) {
  if (MaybeError error = check_length(served, std::string{query}.append(document))) return error;
  text::TypedTokens pair = text::encode_pair(*served.tokenizer, served.pair_template, query, document);
  if (pair.ids.size() > served.context) return context_exceeded(served, pair.ids.size(), false);
  out.requests.push_back(request);
  out.requests.back().prompt = std::move(pair.ids);
  out.requests.back().token_types = std::move(pair.types);
  return std::nullopt;
}

}  // namespace

MaybeError prepare_rerank(const Input& input, Prepared& out) {
  MaybeError error;
  const auto body = parse_body(input.body, input.max_bytes, error);
  if (!body) return error;
  Fields fields{*body};
  out.served = find_model(input.models, program::Task::score, fields, error);
  if (out.served == nullptr) return error;
  if (out.served->tokenizer == nullptr)
    return ApiError{400, "this model has no tokenizer: " + out.served->tokenizer_error, "model", "no_tokenizer", {}};
  AnswerOptions options;
  options.model = out.served->name;
  options.id = "rerank-" + std::string{input.id};
  const auto query = fields.text("query");
  const json::array* texts = fields.array("documents");
  if (!query && !fields.error()) fields.fail("query", "is missing");
  if (texts == nullptr && !fields.error()) fields.fail("documents", "is missing");
  const auto top = fields.integer("top_n", 1, kMaxDocuments);
  const bool show = fields.boolean("return_documents", false);
  engine::Request request;
  request.probe = out.served->score_tokens;
  if ((error = read_vector_fields(fields, kRerank, input, request, options, out))) return error;
  json::array documents;
  if ((error = read_documents(*texts, documents, options.warnings))) return error;
  if (query->size() > kMaxQueryBytes / documents.size())
    return bad_field("query", "query: " + std::to_string(query->size()) + " bytes, tokenized with each of " +
                                  std::to_string(documents.size()) + " documents, are too many; shorten it, or send fewer at once");
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if ((error = check_client(input))) return error;
    if ((error = add_pair(*out.served, *query, documents[i].get_string(), request, out))) {
      error->param = "documents";
      error->message = "documents[" + std::to_string(i) + "] with the query: " + error->message;
      return error;
    }
  }
  options.choices = static_cast<std::uint32_t>(documents.size());
  const auto shown = static_cast<std::size_t>(top.value_or(kMaxDocuments));
  out.answer = std::make_unique<RankAnswer>(std::move(options), out.served->scoring, shown, show ? std::move(documents) : json::array());
  return std::nullopt;
}

}  // namespace mekik::server::openai
