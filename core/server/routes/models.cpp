#include "base/json.hpp"
#include "server/route.hpp"

namespace mekik::server {

namespace {

json::object describe(const Served& served, std::int64_t created) {
  json::object out;
  out["id"] = served.name;
  out["object"] = "model";
  out["created"] = created;
  out["owned_by"] = "mekik";
  out["max_model_len"] = served.context;
  out["task"] = served.task == program::Task::generate ? "generate" : served.task == program::Task::embed ? "embed" : "score";
  out["chat_template"] = served.chat_template != nullptr;
  if (served.chat_template == nullptr && !served.template_error.empty()) out["chat_template_error"] = served.template_error;
  return out;
}

}  // namespace

net::awaitable<void> handle_models(Exchange& exchange, std::string) {
  json::array list;
  for (const Served& served : exchange.shared().models) list.push_back(describe(served, exchange.shared().created));
  Response response;
  response.body = json::serialize(json::object{{"object", "list"}, {"data", std::move(list)}});
  return exchange.reply(std::move(response));
}

net::awaitable<void> handle_model(Exchange& exchange, std::string) {
  for (const Served& served : exchange.shared().models) {
    if (served.name != exchange.path_rest()) continue;
    Response response;
    response.body = json::serialize(describe(served, exchange.shared().created));
    return exchange.reply(std::move(response));
  }
  return exchange.fail({404, "there is no model of this name here; GET /v1/models lists them", "model", "model_not_found", {}});
}

}  // namespace mekik::server
