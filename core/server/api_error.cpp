#include "server/api_error.hpp"

#include "base/log.hpp"
#include "base/text.hpp"

namespace mekik::server {

namespace {

const char* type_of(int status) {
  if (status == 401) return "authentication_error";
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

json::value text_or_null(const std::string& text) { return text.empty() ? json::value(nullptr) : json::value(text); }

}  // namespace

ApiError bad_field(std::string_view param, std::string message) { return {400, std::move(message), std::string{param}, "", {}}; }

ApiError from_status(const Status& status, std::string_view request_id) {
  switch (status.code) {
    case Code::invalid:
      return {400, status.text, "", "", {}};
    case Code::unsupported:
      return {400, status.text, "", "unsupported", {}};
    case Code::busy:
      return {429, "the queue of this model is full; try again soon", "", "queue_full", {{"Retry-After", "1"}}};
    case Code::no_memory:
      return {503, "there is not enough memory for this request now; try again", "", "out_of_memory", {{"Retry-After", "1"}}};
    case Code::cancelled:
      return {503, "the request was cancelled because the server is shutting down", "", "shutting_down", {{"Retry-After", "5"}}};
    default:
      break;
  }
  log::error("server", std::string{request_id} + ": " + status.text);
  return {500, "an internal error; the server's log has the details under the request id", "", "internal_error", {}};
}

json::object error_body(const ApiError& error, std::string_view request_id) {
  json::object inner;
  inner["message"] = utf8_replace_invalid(error.message);
  inner["type"] = type_of(error.status);
  inner["param"] = text_or_null(error.param);
  inner["code"] = text_or_null(error.code);
  inner["request_id"] = request_id;
  json::object out;
  out["error"] = std::move(inner);
  return out;
}

Response error_response(const ApiError& error, std::string_view request_id) {
  Response response;
  response.status = error.status;
  response.body = json::serialize(error_body(error, request_id)) + "\n";
  response.headers = error.headers;
  return response;
}

}  // namespace mekik::server
