// Live: the process works, restart it if not. Ready: it can take requests now.
#include "server/route.hpp"

namespace mekik::server {

namespace {

bool stuck(const SharedState& shared) {
  for (const Served& served : shared.models)
    if (served.engine->stats().stuck) return true;
  return false;
}

Response say(int status, const char* word) {
  Response response;
  response.status = status;
  response.body = std::string{"{\"status\":\""} + word + "\"}\n";
  response.headers = {{"Cache-Control", "no-store"}};
  return response;
}

}  // namespace

// An engine that makes no progress will not recover by waiting, so it is not called alive.
net::awaitable<void> handle_live(Exchange& exchange, std::string) {
  const bool bad = stuck(exchange.shared());
  return exchange.reply(say(bad ? 503 : 200, bad ? "stuck" : "live"));
}

net::awaitable<void> handle_ready(Exchange& exchange, std::string) {
  const SharedState& shared = exchange.shared();
  const char* why = !shared.serving ? "loading" : shared.draining ? "draining" : stuck(shared) ? "stuck" : nullptr;
  return exchange.reply(say(why == nullptr ? 200 : 503, why == nullptr ? "ready" : why));
}

}  // namespace mekik::server
