#include "server/generate.hpp"

namespace mekik::server {

net::awaitable<void> handle_embeddings(Exchange& exchange, std::string body) {
  return generate(exchange, std::move(body), openai::prepare_embeddings);
}
net::awaitable<void> handle_rerank(Exchange& exchange, std::string body) {
  return generate(exchange, std::move(body), openai::prepare_rerank);
}

}  // namespace mekik::server
