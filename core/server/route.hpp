// The table of routes, and what a handler may do. A new endpoint is a file in routes/ and a row in routes.cpp. Internal.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <span>
#include <string>
#include <string_view>

#include "server/api_error.hpp"
#include "server/http.hpp"
#include "server/shared_state.hpp"

namespace mekik::server {

// One request and its answer. A handler calls reply() or fail() once, or begin_stream(), send().. and end_stream().
class Exchange {
 public:
  Exchange(Connection& connection, const Head& head, std::string id);

  const Head& head() const { return head_; }
  const std::string& id() const { return id_; }
  const std::string& path_rest() const { return path_rest_; }  // what a route that ends in '/' leaves over
  SharedState& shared();
  Connection& connection() { return connection_; }

  net::awaitable<void> reply(Response response);
  net::awaitable<void> fail(ApiError error);
  // Server-sent events. false: the client is gone.
  net::awaitable<bool> begin_stream();
  net::awaitable<bool> send(std::string events);  // whole events, each with its blank line
  net::awaitable<void> end_stream();

  bool keep_alive() const;
  void set_tenant(std::uint64_t tenant) { tenant_ = tenant; }
  std::uint64_t tenant() const { return tenant_; }  // see KeyCheck
  void set_path_rest(std::string rest) { path_rest_ = std::move(rest); }
  void forbid_keep_alive() { must_close_ = true; }
  void allow_keep_alive() { must_close_ = false; }
  bool answered() const { return status_ != 0; }
  int status() const { return status_; }

 private:
  std::string render(const Response& response) const;
  std::string stream_head() const;

  Connection& connection_;
  const Head& head_;
  std::string id_, path_rest_;
  bool must_close_ = false;
  int status_ = 0;
  std::uint64_t tenant_ = 0;
};

struct Route {
  const char* method;
  const char* path;   // ends in '/': everything below it
  bool open;          // no API key asked for
  bool needs_models;  // 503 until serve()
  net::awaitable<void> (*handler)(Exchange& exchange, std::string body);
};

std::span<const Route> routes();
// The route of a request, or why there is none (404, 405 with Allow, 401). OPTIONS is answered by the caller with `allow`.
struct Match {
  const Route* route = nullptr;
  std::string rest, allow;
  MaybeError error;
  std::uint64_t tenant = 0;  // of the key that the request carries
};
Match match_route(const Head& head, const KeyCheck& keys);

// The handlers, one file each in routes/.
net::awaitable<void> handle_chat_completions(Exchange& exchange, std::string body);
net::awaitable<void> handle_completions(Exchange& exchange, std::string body);
net::awaitable<void> handle_embeddings(Exchange& exchange, std::string body);
net::awaitable<void> handle_rerank(Exchange& exchange, std::string body);
net::awaitable<void> handle_models(Exchange& exchange, std::string body);
net::awaitable<void> handle_model(Exchange& exchange, std::string body);
net::awaitable<void> handle_tokenize(Exchange& exchange, std::string body);
net::awaitable<void> handle_detokenize(Exchange& exchange, std::string body);
net::awaitable<void> handle_live(Exchange& exchange, std::string body);
net::awaitable<void> handle_ready(Exchange& exchange, std::string body);
net::awaitable<void> handle_metrics(Exchange& exchange, std::string body);

}  // namespace mekik::server
