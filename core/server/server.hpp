// The HTTP server: OpenAI's API over one or several engines. docs/api.md says what each route and field does.
#pragma once
#include <mekik/plugin.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "config/pipeline.hpp"
#include "engine/engine.hpp"
#include "engine/vectors.hpp"
#include "text/answer/format.hpp"
#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace mekik::server {

// One model as the server sees it. Plain data instead of an engine::Model, so that tests need no model.
// Everything pointed to must outlive the server.
struct Served {
  engine::Engine* engine = nullptr;
  std::string name;                                   // the request's `model`; unique in one server
  const text::Tokenizer* tokenizer = nullptr;         // nullptr: prompts must be token ids
  std::string tokenizer_error;                        // why there is none; shown to clients, so no paths
  const text::ChatTemplate* chat_template = nullptr;  // nullptr: chat requests are refused
  std::string template_error;                         // why there is none, as a sentence; shown to clients, so no paths
  const text::AnswerFormat* format = nullptr;         // of its answers; nullptr: they are content and nothing else
  std::uint32_t context = 0, vocab = 0;               // tokens a sequence may have; ids are 0 .. vocab-1
  std::uint32_t max_queue = 256;                      // of the engine: more prompts in one request never fit
  program::Task task = program::Task::generate;       // what it answers to; never automatic
  std::uint32_t vector_size = 0;                      // numbers of an embedding
  engine::Scoring scoring;                            // how a row becomes a score, with
  std::vector<std::int32_t> score_tokens;             // the tokens that the row consists of, in a model that generates, and
  std::string pair_template;                          // the form of a pair; empty: the tokenizer's
  std::vector<const mekik_component*> samplers;       // the chain; its option rows are the request's sampler fields
};

// Threads: one for sockets, one that parses and tokenizes. bind, serve and stop are called from one thread of the caller.
class Server {
 public:
  // Binds and listens on every address of `use.listen`, and answers from now on: /health/live with 200, the rest with 503 until
  // serve(). All or nothing; errors name the address. Limits that are 0 in `use` take the defaults of server/limits.hpp.
  // SIGPIPE is ignored in this process from here on.
  static Result<std::unique_ptr<Server>> bind(const config::ServerUse& use);
  virtual ~Server() = default;  // stops at once when stop() was not called

  // Makes the models available. Once, and not after stop(). Fails when names are empty or occur twice.
  virtual Status serve(std::vector<Served> models) = 0;
  // Stops accepting, lets requests finish for at most drain_timeout, then cancels them and ends their streams with an error
  // event. Blocks until all is closed; at most drain_timeout and a few seconds.
  virtual void stop() = 0;
  // What is really bound, as in `listen` ("tcp://127.0.0.1:43121" where port 0 was asked for).
  virtual const std::vector<std::string>& addresses() const = 0;
};

}  // namespace mekik::server
