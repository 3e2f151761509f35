#include "server/generate.hpp"

namespace mekik::server {

net::awaitable<void> handle_completions(Exchange& exchange, std::string body) {
  return generate(exchange, std::move(body), openai::prepare_completion);
}

}  // namespace mekik::server
