// From the body of a request to what the engine runs. Pure: no sockets and no engine, any thread, so tests and the fuzzer use it too.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.hpp"
#include "server/api_error.hpp"
#include "server/openai/answer.hpp"
#include "server/openai/fields.hpp"
#include "server/server.hpp"

namespace mekik::server::openai {

struct Prepared {
  const Served* served = nullptr;
  std::vector<engine::Request> requests;  // one per prompt; choice index = prompt * n + answer
  std::unique_ptr<Answer> answer;
  bool stream = false;
  std::string logged;  // " user=..." for the log
};

// What a route does with one body. `id`: the request's id, for the engine and the answer.
struct Input {
  const std::vector<Served>& models;
  std::string_view body;
  std::size_t max_bytes;
  std::string_view id;
  std::int64_t now;                         // Unix time, for `created`
  const std::atomic<bool>* gone = nullptr;  // the client has left: nobody waits for the rest
  std::uint64_t tenant = 0;                 // of the request's key
  bool share_prefixes = false;              // between tenants
};
MaybeError prepare_chat(const Input& input, Prepared& out);
MaybeError prepare_completion(const Input& input, Prepared& out);
MaybeError prepare_embeddings(const Input& input, Prepared& out);
MaybeError prepare_rerank(const Input& input, Prepared& out);
MaybeError run_tokenize(const Input& input, json::object& out);
MaybeError run_detokenize(const Input& input, json::object& out);

// ---- shared by the above ----

// The model that the field `model` names; may be absent when there is only one.
const Served* find_model(const std::vector<Served>& models, Fields& fields, MaybeError& error);
// The same, of those that are run for `task`: one that is not is refused with the way to what it does.
const Served* find_model(const std::vector<Served>& models, program::Task task, Fields& fields, MaybeError& error);
// Fields that chat and completions share, into `request` (all but the prompt) and `shape`.
MaybeError read_common(Fields& fields, unsigned kind, const Input& input, const Served& served, engine::Request& request,
                       AnswerOptions& options, Prepared& out);
// Fields that embeddings and rerank share, into `request` (all but the prompt); refuses those that are left.
MaybeError read_vector_fields(Fields& fields, unsigned kind, const Input& input, engine::Request& request, AnswerOptions& options,
                              Prepared& out);
// Checks a prompt against the context; cuts max_tokens to what fits, with a warning when the client asked for more.
MaybeError fit_context(const Served& served, engine::Request& request, bool asked, std::vector<std::string>& warnings);
// Refuses a text that cannot fit before it is tokenized.
MaybeError check_length(const Served& served, std::string_view text);
// Between two texts of a request: an error, which nobody reads, once the client has left.
MaybeError check_client(const Input& input);
bool read_tokens(const json::array& from, std::uint32_t vocab, std::vector<std::int32_t>& out);
ApiError context_exceeded(const Served& served, std::size_t tokens, bool at_least);

}  // namespace mekik::server::openai
