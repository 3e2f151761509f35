// Runs prepared requests on an engine and sends what comes back. Internal; on the I/O thread.
#pragma once
#include "server/openai/prepare.hpp"
#include "server/route.hpp"

namespace mekik::server {

// Parses `body` with `prepare` on the worker thread, runs the requests, and answers: whole, or as a stream. When the client leaves,
// or takes its stream too slowly, all of its requests are cancelled.
net::awaitable<void> generate(Exchange& exchange, std::string body,
                              MaybeError (*prepare)(const openai::Input& input, openai::Prepared& out));
// `run` on the worker thread; its object is the answer. For routes that need no engine.
net::awaitable<void> compute(Exchange& exchange, std::string body, MaybeError (*run)(const openai::Input& input, json::object& out));

}  // namespace mekik::server
