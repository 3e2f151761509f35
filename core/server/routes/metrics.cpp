#include "server/route.hpp"

namespace mekik::server {

// All engines of a process share one registry of metrics, so the first sink that can be scraped knows of all.
net::awaitable<void> handle_metrics(Exchange& exchange, std::string) {
  const std::string* accept = exchange.head().header("Accept");
  Status last = unsupported("");
  for (const Served& served : exchange.shared().models) {
    auto scrape = served.engine->scrape(accept == nullptr ? std::string_view{} : std::string_view{*accept});
    if (scrape.ok()) {
      Response response;
      response.content_type = scrape->content_type;
      response.body = std::move(scrape->body);
      return exchange.reply(std::move(response));
    }
    last = scrape.status();
  }
  ApiError error{404, "no sink of the pipeline can be scraped; add [[sink]] use = \"prometheus\"", "", "no_sink", {}};
  if (last.code != Code::unsupported) error = from_status(last, exchange.id());
  return exchange.fail(std::move(error));
}

}  // namespace mekik::server
