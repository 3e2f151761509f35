#include "server/server.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <ctime>
#include <future>
#include <thread>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "server/connection.hpp"
#include "server/listener.hpp"

namespace mekik::server {

namespace {

constexpr auto kTuple = net::as_tuple(net::use_awaitable);
constexpr std::uint64_t kLastWritesNs = 3'000'000'000;  // for the ends of streams, after the engines are drained

// Too many clients: said in a sentence, and not waited for.
void turn_away(Connection::Socket& socket) {
  const ApiError error{503, "the server has as many connections as it takes; try again soon", "", "too_many_connections", {}};
  const std::string body = json::serialize(error_body(error, "none"));
  const std::string out = serialize_head(503, true, {{"Content-Type", "application/json"}, {"Retry-After", "1"}},
                                         "Content-Length: " + std::to_string(body.size()), false) +
                          body;
  boost::system::error_code ec;
  socket.non_blocking(true, ec);
  if (!ec) socket.write_some(net::buffer(out), ec);
  socket.shutdown(Connection::Socket::shutdown_both, ec);
}

class ServerImpl final : public Server {
 public:
  explicit ServerImpl(const config::ServerUse& use) : shared_{use}, guard_{net::make_work_guard(shared_.io)} {}
  ~ServerImpl() override { end(); }

  Status listen(const config::ServerUse& use) {
    if (use.listen.empty()) return invalid("the server has no address to listen on; set [server] listen");
    for (const std::string& address : use.listen) {
      MEKIK_TRY(bound, Listener::listen(shared_.io, address));
      for (Listener& listener : bound) {
        if (listener.is_public && use.api_keys.empty())
          log::warning("server", listener.address + " can be reached from other machines, and no api_key is set");
        addresses_.push_back(listener.address);
        listeners_.push_back(std::move(listener));
      }
    }
    return {};
  }

  void start() {
    for (Listener& listener : listeners_) net::co_spawn(shared_.io, accept(listener), net::detached);
    thread_ = std::thread{[this] { shared_.io.run(); }};
  }

  Status serve(std::vector<Served> models) override {
    std::vector<std::string> names;
    for (const Served& served : models) {
      if (served.engine == nullptr || served.name.empty()) return invalid("a model needs an engine and a name");
      if (std::count(names.begin(), names.end(), served.name) != 0)
        return invalid("two models are called " + mekik::quoted(served.name) + "; set [model] name");
      names.push_back(served.name);
    }
    if (models.empty()) return invalid("there is no model to serve");
    if (served_) return internal_error("a server takes its models once");
    if (!thread_.joinable()) return fail(Code::cancelled, "the server has ended");
    served_ = true;
    on_io([&] {
      shared_.models = std::move(models);
      shared_.created = std::time(nullptr);
      shared_.serving = true;
    });
    return {};
  }

  void stop() override {
    if (!thread_.joinable()) return;
    std::vector<Served> models;
    on_io([&] {
      shared_.draining = true;
      close_listeners();
      models = shared_.models;
      for (const auto& connection : shared_.connections)
        if (const auto alive = connection.second.lock()) alive->close_if_idle();
    });
    const std::uint64_t deadline = now_ns() + shared_.limits.drain_timeout_ns;
    std::vector<std::thread> drains;  // one each, since each call blocks
    for (const Served& served : models)
      drains.emplace_back([&served, deadline] {
        const std::uint64_t now = now_ns();
        served.engine->drain(now < deadline ? deadline - now : 0);
      });
    for (std::thread& drain : drains) drain.join();
    wait_for_connections();
    end();
  }

  const std::vector<std::string>& addresses() const override { return addresses_; }

 private:
  net::awaitable<void> accept(Listener& listener) {
    for (;;) {
      auto [ec, socket] = co_await listener.acceptor.async_accept(kTuple);
      if (ec == net::error::operation_aborted || !listener.acceptor.is_open()) co_return;
      if (ec) {
        // Out of descriptors, mostly: the connection stays in the kernel's queue, so wait instead of spinning.
        log::warning("server", "cannot accept a connection: " + ec.message());
        net::steady_timer pause{shared_.io};
        pause.expires_after(std::chrono::milliseconds{100});
        co_await pause.async_wait(kTuple);
        continue;
      }
      if (shared_.connections.size() >= shared_.limits.connections) {
        turn_away(socket);
        continue;
      }
      const auto connection = std::make_shared<Connection>(std::move(socket), shared_);
      shared_.connections.emplace(connection.get(), connection);
      net::co_spawn(
          shared_.io, [connection] { return connection->run(); }, net::detached);
    }
  }

  // Runs on the I/O thread and waits for it.
  template <class Work>
  void on_io(Work work) {
    std::promise<void> done;
    net::post(shared_.io, [&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  void close_listeners() {
    for (Listener& listener : listeners_) listener.close();
  }

  void wait_for_connections() {
    for (const std::uint64_t begin = now_ns(); now_ns() - begin < kLastWritesNs;) {
      bool none = false;
      on_io([&] { none = shared_.connections.empty(); });
      if (none) return;
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
  }

  void end() {
    if (!thread_.joinable()) return;
    // Sockets are closed first, so that sessions end by themselves and cancel what they run; then what is left of them is dropped.
    on_io([&] {
      shared_.draining = true;
      close_listeners();
      for (const auto& connection : shared_.connections)
        if (const auto alive = connection.second.lock()) alive->close();
    });
    for (int i = 0; i < 200; ++i) {
      bool none = false;
      on_io([&] { none = shared_.connections.empty(); });
      if (none) break;
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    guard_.reset();
    shared_.io.stop();
    thread_.join();
    shared_.workers.join();
    listeners_.clear();
  }

  SharedState shared_;
  net::executor_work_guard<net::io_context::executor_type> guard_;
  std::vector<Listener> listeners_;
  std::vector<std::string> addresses_;
  std::thread thread_;
  bool served_ = false;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::bind(const config::ServerUse& use) {
  std::signal(SIGPIPE, SIG_IGN);
  auto server = std::make_unique<ServerImpl>(use);
  MEKIK_CHECK_OK(server->listen(use));
  server->start();
  return std::unique_ptr<Server>{std::move(server)};
}

}  // namespace mekik::server
