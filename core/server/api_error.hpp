// Errors in OpenAI's shape.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/status.hpp"
#include "server/http.hpp"

namespace mekik::server {

struct ApiError {
  int status = 400;
  std::string message;  // for the client: no paths, nothing of other requests
  std::string param;    // the field that is wrong; empty: null
  std::string code;     // empty: null
  std::vector<Header> headers;
};

using MaybeError = std::optional<ApiError>;

ApiError bad_field(std::string_view param, std::string message);
// What the engine or a part of the core said. Only what concerns the request's own input is passed on; the rest is logged under
// `request_id` and the client gets a general sentence.
ApiError from_status(const Status& status, std::string_view request_id);
json::object error_body(const ApiError& error, std::string_view request_id);
Response error_response(const ApiError& error, std::string_view request_id);

}  // namespace mekik::server
