#include "server/connection.hpp"

#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cinttypes>
#include <cstdio>
#include <random>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace mekik::server {

// In every coroutine here, what a co_await passes on is a named object, and no list in braces is made: with gcc 12 such temporaries
// corrupted the heap.
namespace {

constexpr auto kTuple = net::as_tuple(net::use_awaitable);
constexpr std::uint64_t kLingerNs = 1'000'000'000;
constexpr std::size_t kLingerBytes = 1u << 20;

// The client's own id when it is harmless in logs and headers, else a new one.
std::string request_id(const Head* head) {
  const std::string* given = head == nullptr ? nullptr : head->header("X-Request-Id");
  const bool usable = given != nullptr && !given->empty() && given->size() <= 64 &&
                      given->find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == std::string::npos;
  if (usable) return *given;
  static const std::uint64_t start = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  static std::atomic<std::uint64_t> counter{0};
  char out[40];
  std::snprintf(out, sizeof out, "req-%016" PRIx64 "%06" PRIx64, start, counter.fetch_add(1));
  return out;
}

// What can be said against a request before its body is read.
MaybeError refuse_early(const Exchange& exchange, const Route& route) {
  const Head& head = exchange.head();
  if (!head.query.empty()) return ApiError{400, "this path takes no query parameters; send fields in the JSON body", "", "", {}};
  if (const std::string* coding = head.header("Content-Encoding"); coding != nullptr && !equals_ignoring_case(*coding, "identity"))
    return ApiError{415, "bodies with a Content-Encoding are not read; send plain JSON", "", "unsupported_encoding", {}};
  if (std::string_view{route.method} == "GET") {
    if (head.has_body()) return ApiError{400, "a GET request takes no body", "", "", {}};
    return std::nullopt;
  }
  const std::string* type = head.header("Content-Type");
  if (type == nullptr) return std::nullopt;
  const std::string_view media = std::string_view{*type}.substr(0, type->find_first_of("; \t"));
  if (!equals_ignoring_case(media, "application/json"))
    return ApiError{415, "the body must be JSON; send \"Content-Type: application/json\"", "", "unsupported_media_type", {}};
  if (const auto at = type->find("charset="); at != std::string::npos) {
    std::string_view charset = std::string_view{*type}.substr(at + 8);
    charset = charset.substr(0, charset.find_first_of("; \t"));
    if (!equals_ignoring_case(charset, "utf-8") && !equals_ignoring_case(charset, "\"utf-8\""))
      return ApiError{415, "the body must be UTF-8; leave charset out", "", "unsupported_media_type", {}};
  }
  return std::nullopt;
}

ApiError late(const char* what) { return {408, std::string{"the "} + what + " of the request did not arrive in time", "", "timeout", {}}; }
ApiError http_error(const RequestReader& reader) { return {reader.error().status, reader.error().message, "", "", {}}; }

// The route's own complaints first, then those about the size, then whether there is anything to answer with.
MaybeError refuse(const Match& match, const Exchange& exchange, const RequestReader& reader, bool serving) {
  if (match.error) return match.error;
  MaybeError error;
  if (match.route != nullptr) error = refuse_early(exchange, *match.route);
  if (error) return error;
  if (reader.state() == RequestReader::State::failed) return ApiError{413, reader.error().message, "", "body_too_large", {}};
  if (match.route == nullptr || !match.route->needs_models || serving) return std::nullopt;
  return ApiError{503, "the models are still being loaded", "", "loading", {{"Retry-After", "5"}}};
}

}  // namespace

Connection::Connection(Socket socket, SharedState& shared) : socket_{std::move(socket)}, shared_{shared}, timer_{shared.io} {}

void Connection::arm(std::uint64_t ns) {
  timed_out_ = false;
  timer_.expires_after(std::chrono::nanoseconds{ns});
  timer_.async_wait([self = shared_from_this(), generation = ++armed_](boost::system::error_code ec) {
    if (ec || generation != self->armed_) return;
    self->timed_out_ = true;
    boost::system::error_code ignored;
    self->socket_.cancel(ignored);
  });
}

void Connection::disarm() {
  ++armed_;
  timer_.cancel();
}

void Connection::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

void Connection::close_if_idle() {
  if (idle_) close();
}

net::awaitable<bool> Connection::read_more() {
  const auto [ec, size] = co_await socket_.async_read_some(net::buffer(buffer_), kTuple);
  if (ec) co_return false;
  input_.append(buffer_.data(), size);
  co_return true;
}

net::awaitable<bool> Connection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    arm(shared_.limits.stall_timeout_ns);
    const auto [ec, size] = co_await socket_.async_write_some(net::buffer(bytes.data(), bytes.size()), kTuple);
    if (ec) {
      if (timed_out_) log::info("server", "a client took nothing for too long and was cut off");
      close();
      co_return false;
    }
    bytes.remove_prefix(size);
  }
  disarm();
  co_return true;
}

void Connection::watch(std::function<void()> gone) {
  gone_ = std::move(gone);
  watch_step(++watching_);
}

void Connection::unwatch() {
  ++watching_;
  gone_ = nullptr;
  boost::system::error_code ignored;
  if (socket_.is_open()) socket_.cancel(ignored);
}

void Connection::watch_step(std::uint64_t generation) {
  // Waiting instead of reading: a wait can be cancelled without losing bytes.
  socket_.async_wait(Socket::wait_read, [self = shared_from_this(), generation](boost::system::error_code ec) {
    if (generation != self->watching_) return;
    std::size_t size = 0;
    if (!ec) {
      self->socket_.non_blocking(true, ec);
      if (!ec) size = self->socket_.read_some(net::buffer(self->buffer_), ec);
      if (ec == net::error::would_block) ec = {};
    }
    if (ec) {
      if (self->gone_) self->gone_();
      return;
    }
    self->input_.append(self->buffer_.data(), size);
    if (self->input_.size() < kMaxPipelinedBytes) self->watch_step(generation);
  });
}

net::awaitable<void> Connection::run() {
  const auto self = shared_from_this();
  while (co_await serve_one()) idle_ = true;
  disarm();
  if (socket_.is_open()) co_await linger();
  close();
  shared_.connections.erase(this);
}

// Closing with unread bytes would reset the connection and could take the answer away from the client.
net::awaitable<void> Connection::linger() {
  boost::system::error_code ec;
  socket_.shutdown(Socket::shutdown_send, ec);
  if (ec) co_return;
  arm(kLingerNs);
  for (std::size_t dropped = 0; dropped < kLingerBytes && !timed_out_;) {
    const auto [error, size] = co_await socket_.async_read_some(net::buffer(buffer_), kTuple);
    if (error) break;
    dropped += size;
  }
  disarm();
}

net::awaitable<bool> Connection::read_head(RequestReader& reader) {
  arm(first_ ? shared_.limits.header_timeout_ns : shared_.limits.idle_timeout_ns);
  bool started = false;
  for (;;) {
    if (!input_.empty()) {
      idle_ = false;
      if (!started && !first_) arm(shared_.limits.header_timeout_ns);
      started = true;
      input_.erase(0, reader.feed(input_));
      if (reader.state() != RequestReader::State::head) break;
    }
    if (!co_await read_more()) co_return false;
  }
  disarm();
  first_ = false;
  co_return true;
}

net::awaitable<bool> Connection::serve_one() {
  RequestReader reader{shared_.limits};
  const Head none;
  if (!co_await read_head(reader)) {
    if (!timed_out_ || input_.empty()) co_return false;
    Exchange answer{*this, none, request_id(nullptr)};
    answer.forbid_keep_alive();
    ApiError error = late("header");
    co_await answer.fail(std::move(error));
    co_return false;
  }
  Exchange exchange{*this, reader.head(), request_id(&reader.head())};
  const std::uint64_t begin = now_ns();
  const bool again = co_await read_body(reader, exchange);
  char line[160];
  std::snprintf(line, sizeof line, "%s %.16s %d %.1f ms", exchange.id().c_str(), exchange.head().method.c_str(), exchange.status(),
                static_cast<double>(now_ns() - begin) / 1e6);
  log::info("server", line + (" " + mekik::quoted(exchange.head().path)));
  co_return again;
}

// Everything after the head: refusals that need no body, the body, the handler.
net::awaitable<bool> Connection::read_body(RequestReader& reader, Exchange& exchange) {
  using State = RequestReader::State;
  exchange.forbid_keep_alive();  // lifted once the whole body is read: else the next request's begin is unknown
  if (reader.state() == State::failed && reader.error().status != 413) {
    ApiError error = http_error(reader);
    co_await exchange.fail(std::move(error));
    co_return false;
  }
  const Head& head = exchange.head();
  Match match = match_route(head, shared_.keys);
  exchange.set_tenant(match.tenant);
  MaybeError refused = refuse(match, exchange, reader, shared_.serving);
  if (refused) {
    if (!head.has_body()) exchange.allow_keep_alive();
    co_await exchange.fail(std::move(*refused));
    co_return exchange.keep_alive();
  }
  if (head.expects_continue && reader.state() == State::body && input_.empty()) {
    const bool there = co_await write("HTTP/1.1 100 Continue\r\n\r\n");
    if (!there) co_return false;
  }
  arm(shared_.limits.body_timeout_ns);
  while (reader.state() == State::body) {
    input_.erase(0, reader.feed(input_));
    if (reader.state() != State::body) break;
    if (co_await read_more()) continue;
    if (!timed_out_) co_return false;
    ApiError error = late("body");
    co_await exchange.fail(std::move(error));
    co_return false;
  }
  disarm();
  if (reader.state() == State::failed) {
    ApiError error = http_error(reader);
    co_await exchange.fail(std::move(error));
    co_return false;
  }
  exchange.allow_keep_alive();
  if (match.route == nullptr) {
    Response options;
    options.status = 204;
    options.headers.emplace_back("Allow", match.allow);
    co_await exchange.reply(std::move(options));
  } else {
    exchange.set_path_rest(std::move(match.rest));
    std::string body = reader.take_body();
    co_await match.route->handler(exchange, std::move(body));
  }
  co_return exchange.keep_alive() && socket_.is_open();
}

}  // namespace mekik::server
