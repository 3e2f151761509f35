// Carries events from engines' threads to a coroutine of the I/O thread, within a bound. Internal.
#pragma once
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/engine.hpp"
#include "server/limits.hpp"

namespace mekik::server {

namespace net = boost::asio;

struct Mail {
  std::uint32_t choice = 0;
  engine::Event event;
};

// A shared_ptr because an engine may still call back after the request's coroutine is gone.
class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  explicit Mailbox(net::io_context& io) : io_{&io}, timer_{io} {}

  // [any thread] Does not block. Events beyond the bound are dropped and overflowed() becomes true: the request is then cancelled.
  void push(std::uint32_t choice, const engine::Event& event) {
    const std::lock_guard lock{mutex_};
    if (io_ == nullptr) return;
    std::size_t bytes = 256 + event.text.size() + event.prompt.size() * 64 + event.vector.size() * sizeof(float);
    for (const engine::TokenInfo& token : event.tokens) bytes += 64 + token.top.size() * 64;
    bytes_ += bytes;
    if (bytes_ > kMaxUnsentBytes) overflowed_ = true;
    else mail_.push_back({choice, event});
    if (signalled_) return;
    signalled_ = true;
    net::post(*io_, [self = shared_from_this()] { self->wake(); });
  }

  // [I/O thread] The rest. Waits for mail, an overflow or wake().
  net::awaitable<std::vector<Mail>> take() {
    std::vector<Mail> out;
    for (;;) {
      {
        const std::lock_guard lock{mutex_};
        out.swap(mail_);
        bytes_ = 0;
        signalled_ = false;
        if (!out.empty() || overflowed_ || woken_) co_return out;
      }
      timer_.expires_at(net::steady_timer::time_point::max());
      co_await timer_.async_wait(net::as_tuple(net::use_awaitable));
    }
  }
  // Ends take() for good: the client has gone.
  void stop() {
    woken_ = true;
    timer_.cancel();
  }
  bool overflowed() {
    const std::lock_guard lock{mutex_};
    return overflowed_;
  }
  void on_overflow(std::function<void()> call) { on_overflow_ = std::move(call); }
  // No event is taken from now on, and the I/O context is not touched again.
  void close() {
    const std::lock_guard lock{mutex_};
    io_ = nullptr;
    on_overflow_ = nullptr;
  }

 private:
  void wake() {
    timer_.cancel();
    if (on_overflow_ && overflowed()) on_overflow_();
  }

  std::mutex mutex_;  // over the next five
  net::io_context* io_;
  std::vector<Mail> mail_;
  std::size_t bytes_ = 0;
  bool signalled_ = false, overflowed_ = false;
  // Only on the I/O thread.
  net::steady_timer timer_;
  bool woken_ = false;
  std::function<void()> on_overflow_;
};

}  // namespace mekik::server
