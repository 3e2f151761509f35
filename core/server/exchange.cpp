#include <cstdio>

#include "server/connection.hpp"

namespace mekik::server {

namespace {

std::string chunk(const std::string& data) {
  char size[24];
  std::snprintf(size, sizeof size, "%zx\r\n", data.size());
  return size + data + "\r\n";
}

}  // namespace

Exchange::Exchange(Connection& connection, const Head& head, std::string id) : connection_{connection}, head_{head}, id_{std::move(id)} {}

SharedState& Exchange::shared() { return connection_.shared(); }

bool Exchange::keep_alive() const { return head_.keep_alive && !must_close_ && !connection_.shared().draining; }

std::string Exchange::render(const Response& response) const {
  std::vector<Header> headers;
  if (!response.content_type.empty() && response.status != 204) headers.emplace_back("Content-Type", response.content_type);
  headers.emplace_back("X-Request-Id", id_);
  headers.insert(headers.end(), response.headers.begin(), response.headers.end());
  const std::string framing = response.status == 204 ? "" : "Content-Length: " + std::to_string(response.body.size());
  std::string out = serialize_head(response.status, head_.http_1_1, headers, framing, keep_alive());
  if (head_.method != "HEAD") out += response.body;
  return out;
}

std::string Exchange::stream_head() const {
  const std::vector<Header> headers = {{"Content-Type", "text/event-stream; charset=utf-8"},
                                       {"Cache-Control", "no-cache"},
                                       {"X-Accel-Buffering", "no"},
                                       {"X-Request-Id", id_}};
  return serialize_head(200, head_.http_1_1, headers, head_.http_1_1 ? "Transfer-Encoding: chunked" : "", keep_alive());
}

net::awaitable<void> Exchange::reply(Response response) {
  status_ = response.status;
  const std::string out = render(response);
  const bool ok = co_await connection_.write(out);
  if (!ok) must_close_ = true;
}

net::awaitable<void> Exchange::fail(ApiError error) { return reply(error_response(error, id_)); }

net::awaitable<bool> Exchange::begin_stream() {
  status_ = 200;
  if (!head_.http_1_1) must_close_ = true;  // the end of the stream is the end of the connection
  const std::string out = stream_head();
  const bool ok = co_await connection_.write(out);
  if (!ok) must_close_ = true;
  co_return ok;
}

net::awaitable<bool> Exchange::send(std::string events) {
  if (events.empty()) co_return true;
  if (head_.http_1_1) events = chunk(events);
  const bool ok = co_await connection_.write(events);
  if (!ok) must_close_ = true;
  co_return ok;
}

net::awaitable<void> Exchange::end_stream() {
  if (!head_.http_1_1) co_return;
  const bool ok = co_await connection_.write("0\r\n\r\n");
  if (!ok) must_close_ = true;
}

}  // namespace mekik::server
