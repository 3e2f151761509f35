// One client's socket: requests in order, timeouts, answers and streams. Internal; everything on the I/O thread.
#pragma once
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "server/http.hpp"
#include "server/route.hpp"
#include "server/shared_state.hpp"

namespace mekik::server {

// A shared_ptr because the session, the timer and the watch for a client that leaves each keep it alive until their last handler ran.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = net::generic::stream_protocol::socket;
  Connection(Socket socket, SharedState& shared);

  net::awaitable<void> run();
  // Writes all, or false: the client is gone, or took nothing for the stall timeout.
  net::awaitable<bool> write(std::string_view bytes);
  // From now until unwatch(): calls `gone` once when the client closes its side. What it sends meanwhile is kept for the next request.
  void watch(std::function<void()> gone);
  void unwatch();
  void close();
  void close_if_idle();  // for shutdown
  SharedState& shared() { return shared_; }

 private:
  net::awaitable<bool> serve_one();
  net::awaitable<bool> read_head(RequestReader& reader);
  net::awaitable<bool> read_body(RequestReader& reader, Exchange& exchange);
  net::awaitable<bool> read_more();
  net::awaitable<void> linger();
  void arm(std::uint64_t ns);
  void disarm();
  void watch_step(std::uint64_t generation);

  Socket socket_;
  SharedState& shared_;
  net::steady_timer timer_;
  std::uint64_t armed_ = 0;  // generation of the timer: a handler of an older one does nothing
  bool timed_out_ = false, idle_ = true, first_ = true;
  std::string input_;  // read and not yet consumed
  std::array<char, 16384> buffer_;
  std::uint64_t watching_ = 0;  // generation of the watch
  std::function<void()> gone_;
};

}  // namespace mekik::server
