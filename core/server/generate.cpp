#include "server/generate.hpp"

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <ctime>
#include <new>

#include "base/log.hpp"
#include "server/connection.hpp"
#include "server/mailbox.hpp"
#include "server/sse.hpp"
#include "text/tokenizer.hpp"

namespace mekik::server {

namespace {

constexpr std::size_t kMostVectors = 128;  // requests for vectors that one exchange has in the engine

// Sees the client leave, from the end of its request's body on.
class Client {
 public:
  explicit Client(Connection& connection) : connection_{connection} {
    connection.watch([this] {
      gone_ = true;
      if (mailbox_ != nullptr) mailbox_->stop();
    });
  }
  ~Client() { connection_.unwatch(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const std::atomic<bool>& gone() const { return gone_; }  // any thread
  void stops(Mailbox* mailbox) { mailbox_ = mailbox; }     // until the next call, when it leaves
  void close() { connection_.close(); }

 private:
  Connection& connection_;
  Mailbox* mailbox_ = nullptr;
  std::atomic<bool> gone_{false};
};

// The engine's requests of one exchange. Whatever way the coroutine ends, they are cancelled and nothing calls back into it.
class Running {
 public:
  Running(Exchange& exchange, Client& client, engine::Engine& engine)
      : exchange_{exchange}, client_{client}, engine_{engine}, mailbox_{std::make_shared<Mailbox>(exchange.shared().io)} {
    client.stops(mailbox_.get());
    mailbox_->on_overflow([&client] { client.close(); });
  }
  ~Running() {
    mailbox_->close();
    client_.stops(nullptr);
    for (const engine::RequestId id : ids_) engine_.cancel(id);  // finished ones do not mind
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // Hands requests to the engine in order: all at once, or, where they are many short ones, so many that others find room beside them.
  // `finished`: how many of those handed over have ended.
  MaybeError submit(std::vector<engine::Request>& requests, std::uint32_t finished = 0) {
    for (; next_ < requests.size(); ++next_) {
      engine::Request& request = requests[next_];
      const bool patient = request.vector && ids_.size() > finished;
      if (patient && ids_.size() - finished >= kMostVectors) return std::nullopt;
      const std::uint32_t n = request.n, first = first_;
      const auto id =
          engine_.submit(request, [mailbox = mailbox_, first](const engine::Event& event) { mailbox->push(first + event.index, event); });
      if (!id.ok() && id.status().code == Code::busy && engine_.draining()) return from_status({Code::cancelled, ""}, exchange_.id());
      if (!id.ok() && id.status().code == Code::busy && patient) return std::nullopt;  // when one of ours ends
      if (!id.ok()) return from_status(id.status(), exchange_.id());
      request = {};
      ids_.push_back(*id);
      first_ += n;
    }
    return std::nullopt;
  }
  net::awaitable<std::vector<Mail>> events() { return mailbox_->take(); }
  bool lost() {
    if (mailbox_->overflowed()) log::warning("server", exchange_.id() + ": the client reads too slowly; the request is cancelled");
    return client_.gone() || mailbox_->overflowed();
  }

 private:
  Exchange& exchange_;
  Client& client_;
  engine::Engine& engine_;
  std::shared_ptr<Mailbox> mailbox_;
  std::vector<engine::RequestId> ids_;
  std::size_t next_ = 0;     // of the requests
  std::uint32_t first_ = 0;  // choice of that one
};

// Why an answer ended without a reason that the API knows.
MaybeError failure(const engine::Event& event, std::string_view id) {
  if (event.finish == engine::Finish::cancelled) return from_status({Code::cancelled, ""}, id);
  if (event.finish != engine::Finish::error) return std::nullopt;
  if (event.retry_ns > 0) {
    const std::uint64_t seconds = (event.retry_ns + 999'999'999) / 1'000'000'000;
    return ApiError{429, event.error.text, "", "too_busy", {{"Retry-After", std::to_string(seconds)}}};
  }
  return from_status(event.error.ok() ? internal_error("the engine gave no reason") : event.error, id);
}

// Runs `work`, which must outlive it, on a worker thread for this much text; the coroutine goes on where it was. No exception leaves that
// thread. Work of a client that has left is not begun.
net::awaitable<MaybeError> on_worker(Exchange& exchange, const Client& client, std::size_t bytes, const std::function<MaybeError()>& work) {
  const auto guarded = [&]() -> MaybeError {
    if (client.gone()) return std::nullopt;
    try {
      return work();
    } catch (const text::TextRefused& refused) {
      return ApiError{400, std::string{"the tokenizer of this model refuses the text: "} + refused.what(), "", "text_refused", {}};
    } catch (const std::bad_alloc&) {
      return from_status(fail(Code::no_memory, "no memory to prepare a request"), exchange.id());
    }
  };
  const auto task = [&guarded]() -> net::awaitable<MaybeError> { co_return guarded(); };
  net::io_context& worker = exchange.shared().workers.of(bytes);
  co_return co_await net::co_spawn(worker, task, net::use_awaitable);
}

net::awaitable<void> answer_whole(Exchange& exchange, Client& client, Running& running, std::vector<engine::Request>& requests,
                                  openai::Answer& answer) {
  std::uint32_t finished = 0;
  while (!answer.done()) {
    const std::vector<Mail> events = co_await running.events();
    if (running.lost()) {
      exchange.connection().close();
      co_return;
    }
    for (const Mail& mail : events) {
      if (MaybeError error = failure(mail.event, exchange.id())) {
        co_await exchange.fail(std::move(*error));
        co_return;
      }
      answer.collect(mail.choice, mail.event);
      if (mail.event.finish != engine::Finish::none) ++finished;
    }
    if (MaybeError error = running.submit(requests, finished)) {
      co_await exchange.fail(std::move(*error));
      co_return;
    }
  }
  Response response;
  const std::function<MaybeError()> write = [&]() -> MaybeError {
    response.body = json::serialize(answer.result());
    return std::nullopt;
  };
  const std::size_t bytes = answer.result_bytes();
  MaybeError error;
  if (bytes > Workers::kShortBytes) error = co_await on_worker(exchange, client, bytes, write);
  else error = write();
  if (client.gone()) client.close();
  else if (error) co_await exchange.fail(std::move(*error));
  else co_await exchange.reply(std::move(response));
}

// The events of one batch as text of a stream.
std::string render(const std::vector<Mail>& events, openai::Answer& answer, std::string_view id, MaybeError& error) {
  std::string out;
  std::vector<json::object> chunks;
  for (const Mail& mail : events) {
    if ((error = failure(mail.event, id))) break;
    answer.chunks(mail.choice, mail.event, chunks);
  }
  for (const json::object& chunk : chunks) out += sse_event(chunk);
  if (error) out += sse_event(error_body(*error, id));
  else if (answer.done() && answer.wants_usage()) out += sse_event(answer.usage_chunk());
  if (error || answer.done()) out += kSseDone;
  return out;
}

// The header leaves with the first event, so that what fails before it still gets a status of its own.
net::awaitable<void> answer_stream(Exchange& exchange, Running& running, openai::Answer& answer) {
  bool begun = false;
  MaybeError error;
  while (!answer.done() && !error) {
    const std::vector<Mail> events = co_await running.events();
    if (running.lost()) {
      exchange.connection().close();
      co_return;
    }
    std::string out = render(events, answer, exchange.id(), error);
    if (error && !begun) {
      co_await exchange.fail(std::move(*error));
      co_return;
    }
    if (out.empty()) continue;
    bool there = true;
    if (!begun) there = co_await exchange.begin_stream();
    begun = true;
    if (there) there = co_await exchange.send(std::move(out));
    if (!there) co_return;
  }
  co_await exchange.end_stream();
}

ApiError shutting_down(std::string_view id) { return from_status({Code::cancelled, ""}, id); }

openai::Input input_of(Exchange& exchange, const Client& client, std::string_view body) {
  return {exchange.shared().models,
          body,
          exchange.shared().limits.body_bytes,
          exchange.id(),
          std::time(nullptr),
          &client.gone(),
          exchange.tenant(),
          exchange.shared().share_prefixes};
}

}  // namespace

net::awaitable<void> generate(Exchange& exchange, std::string body, MaybeError (*prepare)(const openai::Input&, openai::Prepared&)) {
  Client client{exchange.connection()};
  openai::Prepared prepared;
  const openai::Input input = input_of(exchange, client, body);
  const std::function<MaybeError()> work = [&]() -> MaybeError { return prepare(input, prepared); };
  MaybeError error = co_await on_worker(exchange, client, body.size(), work);
  if (client.gone()) {
    client.close();
    co_return;
  }
  if (!error && exchange.shared().draining) error = shutting_down(exchange.id());
  if (error) {
    co_await exchange.fail(std::move(*error));
    co_return;
  }
  if (!prepared.logged.empty()) log::info("server", exchange.id() + prepared.logged);
  Running running{exchange, client, *prepared.served->engine};
  MaybeError refused = running.submit(prepared.requests);
  if (refused) {
    co_await exchange.fail(std::move(*refused));
    co_return;
  }
  if (prepared.stream) co_await answer_stream(exchange, running, *prepared.answer);
  else co_await answer_whole(exchange, client, running, prepared.requests, *prepared.answer);
}

net::awaitable<void> compute(Exchange& exchange, std::string body, MaybeError (*run)(const openai::Input&, json::object&)) {
  Client client{exchange.connection()};
  Response response;
  const openai::Input input = input_of(exchange, client, body);
  const std::function<MaybeError()> work = [&]() -> MaybeError {
    json::object result;
    MaybeError refused = run(input, result);
    if (!refused) response.body = json::serialize(result);
    return refused;
  };
  MaybeError error = co_await on_worker(exchange, client, body.size(), work);
  if (client.gone()) {
    client.close();
    co_return;
  }
  if (error) {
    co_await exchange.fail(std::move(*error));
    co_return;
  }
  co_await exchange.reply(std::move(response));
}

}  // namespace mekik::server
