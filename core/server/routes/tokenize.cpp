#include "server/generate.hpp"

namespace mekik::server {

net::awaitable<void> handle_tokenize(Exchange& exchange, std::string body) {
  return compute(exchange, std::move(body), openai::run_tokenize);
}
net::awaitable<void> handle_detokenize(Exchange& exchange, std::string body) {
  return compute(exchange, std::move(body), openai::run_detokenize);
}

}  // namespace mekik::server
