#include "base/text.hpp"
#include "server/route.hpp"

namespace mekik::server {

namespace {

constexpr Route kRoutes[] = {
    {"POST", "/v1/chat/completions", false, true, handle_chat_completions},
    {"POST", "/v1/completions", false, true, handle_completions},
    {"POST", "/v1/embeddings", false, true, handle_embeddings},
    {"POST", "/v1/rerank", false, true, handle_rerank},
    {"GET", "/v1/models", false, true, handle_models},
    {"GET", "/v1/models/", false, true, handle_model},
    {"POST", "/tokenize", false, true, handle_tokenize},
    {"POST", "/detokenize", false, true, handle_detokenize},
    {"GET", "/health/live", true, false, handle_live},
    {"GET", "/health/ready", true, false, handle_ready},
    {"GET", "/metrics", false, true, handle_metrics},
};

bool covers(const Route& route, std::string_view path) {
  const std::string_view pattern = route.path;
  if (pattern.back() == '/') return path.size() > pattern.size() && path.substr(0, pattern.size()) == pattern;
  return path == pattern;
}

ApiError no_route(const std::string& path) {
  std::vector<std::string> known;
  for (const Route& route : kRoutes) known.emplace_back(route.path);
  std::string message = "there is nothing at this path";
  if (const auto near = closest(path, known)) message += "; did you mean " + *near + "?";
  return {404, message, "", "not_found", {}};
}

}  // namespace

std::span<const Route> routes() { return kRoutes; }

Match match_route(const Head& head, const KeyCheck& keys) {
  Match match;
  const Route* at_path = nullptr;
  for (const Route& route : kRoutes) {
    if (!covers(route, head.path)) continue;
    at_path = &route;
    const std::string_view method = route.method;
    match.allow = std::string{method} + (method == "GET" ? ", HEAD, OPTIONS" : ", OPTIONS");
    match.rest = head.path.substr(std::string_view{route.path}.size());
    if (head.method == method || (head.method == "HEAD" && method == "GET")) match.route = &route;
  }
  const bool open = at_path != nullptr && at_path->open;
  const bool options = head.method == "OPTIONS" && (at_path != nullptr || head.path == "*");
  if (options && head.path == "*") match.allow = "GET, HEAD, POST, OPTIONS";
  if (!open && !options) match.error = keys.check(head, match.tenant);
  if (match.error || match.route != nullptr || options) return match;
  if (at_path == nullptr) match.error = no_route(head.path);
  else
    match.error = ApiError{405,
                           "this path does not take the method " + mekik::quoted(head.method) + "; it takes " + match.allow,
                           "",
                           "method_not_allowed",
                           {{"Allow", match.allow}}};
  return match;
}

}  // namespace mekik::server
