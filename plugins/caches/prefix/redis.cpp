#include "redis.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mekik/plugin.hpp>
#include <string_view>
#include <vector>

#include "value.hpp"

namespace mekik::prefix_cache {

namespace {

constexpr std::uint64_t kFirstQuietNs = 100'000'000, kMostQuietNs = 15'000'000'000, kNoWritesNs = 10'000'000'000;
constexpr std::uint64_t kNsPerMiB = 100'000'000;                // that a value may take on top of the time limit
constexpr std::uint64_t kMostBytes = std::uint64_t{500} << 20;  // Redis takes 512 MiB
constexpr std::size_t kSlack = 4096, kPiece = std::size_t{256} << 10, kMostSaid = 160;

std::uint64_t now() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

struct Broken : std::runtime_error {  // the connection cannot be used any more
  using std::runtime_error::runtime_error;
};
struct Closed : Broken {  // by the other side, before it answered
  using Broken::Broken;
};

// Of what a server says: one short line.
std::string printable(std::string_view text) {
  std::string out{text.substr(0, kMostSaid)};
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return out;
}

// We ask for nothing that is answered with a list.
template <class Size>
void* no_array(const redisReadTask*, Size) {
  return nullptr;
}

struct Refused : std::runtime_error {  // an answer that says no: the connection is good
  using std::runtime_error::runtime_error;
};

// Everything that comes from the other side is doubted: it has limits in time and size.
struct Connection {
  explicit Connection(const RedisOptions& options) {
    const timeval limit{static_cast<time_t>(options.timeout_ns / 1'000'000'000),
                        static_cast<suseconds_t>(options.timeout_ns / 1000 % 1'000'000)};
    context.reset(options.socket.empty() ? redisConnectWithTimeout(options.host.c_str(), options.port, limit)
                                         : redisConnectUnixWithTimeout(options.socket.c_str(), limit));
    if (!context) throw Broken{"no memory for a connection"};
    if (context->err != 0) throw Broken{context->errstr};
    if (::fcntl(context->fd, F_SETFL, ::fcntl(context->fd, F_GETFL) | O_NONBLOCK) != 0) throw Broken{std::strerror(errno)};
    functions = *context->reader->fn;
    functions.createArray = &no_array;
    context->reader->fn = &functions;
  }
  struct Free {
    void operator()(redisContext* c) const { redisFree(c); }
  };
  struct FreeReply {
    void operator()(redisReply* r) const { freeReplyObject(r); }
  };
  using Reply = std::unique_ptr<redisReply, FreeReply>;

  void wait(short events, std::uint64_t deadline_ns) const {
    while (true) {
      const std::uint64_t time = now();
      if (time >= deadline_ns) throw Broken{"did not answer in time"};
      pollfd entry{context->fd, events, 0};
      const int n = ::poll(&entry, 1, static_cast<int>(std::min<std::uint64_t>((deadline_ns - time) / 1'000'000 + 1, 60'000)));
      if (n > 0) return;
      if (n < 0 && errno != EINTR) throw Broken{std::strerror(errno)};
    }
  }
  void send(const void* data, std::size_t bytes, std::uint64_t deadline_ns) const {
    const auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t n = ::send(context->fd, from, bytes, MSG_NOSIGNAL);
      if (n > 0) {
        from += n;
        bytes -= static_cast<std::size_t>(n);
      } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        wait(POLLOUT, deadline_ns);
      } else if (n == 0 || errno != EINTR) {
        throw Closed{"closed the connection"};
      }
    }
  }
  // Small ones only.
  void command(std::initializer_list<std::string_view> words) {
    std::vector<const char*> data;
    std::vector<std::size_t> sizes;
    for (const auto word : words) data.push_back(word.data()), sizes.push_back(word.size());
    char* text = nullptr;
    const int bytes = redisFormatCommandArgv(&text, static_cast<int>(data.size()), data.data(), sizes.data());
    if (bytes < 0) throw std::bad_alloc{};
    pending.append(text, static_cast<std::size_t>(bytes));
    redisFreeCommand(text);
  }
  void flush(std::uint64_t deadline_ns) {
    send(pending.data(), pending.size(), deadline_ns);
    pending.clear();
  }
  // At most `most` bytes of it.
  Reply reply(std::size_t most, std::uint64_t deadline_ns) {
    void* out = nullptr;
    while (true) {
      if (redisReaderGetReply(context->reader, &out) != REDIS_OK) throw Broken{"answered what is no Redis reply"};
      if (out != nullptr) return Reply{static_cast<redisReply*>(out)};
      if (context->reader->len > most + kSlack) throw Broken{"answered more than was asked for"};
      wait(POLLIN, deadline_ns);
      const ssize_t n = ::recv(context->fd, piece.data(), piece.size(), 0);
      if (n == 0 || (n < 0 && errno == ECONNRESET)) throw Closed{"closed the connection"};
      if (n < 0 && errno != EAGAIN && errno != EINTR) throw Broken{std::strerror(errno)};
      if (n > 0 && redisReaderFeed(context->reader, piece.data(), static_cast<std::size_t>(n)) != REDIS_OK)
        throw Broken{"answered what is no Redis reply"};
    }
  }
  // Of commands that are answered with a word.
  void expect_ok(std::uint64_t deadline_ns) {
    const Reply r = reply(kSlack, deadline_ns);
    if (r->type == REDIS_REPLY_ERROR) throw Refused{printable({r->str, r->len})};
    if (r->type != REDIS_REPLY_STATUS) throw Broken{"answered what is no Redis reply"};
  }

  std::unique_ptr<redisContext, Free> context;
  redisReplyObjectFunctions functions{};
  std::string pending;
  std::vector<char> piece = std::vector<char>(kPiece);
  bool used = false;
};

// A call that fails closes the connection, and for a while, longer each time, others fail at once without asking.
class RedisLink final : public Remote {
 public:
  explicit RedisLink(const RedisOptions& options) : options_{options} {}
  void lengths(std::span<const mekik_key> keys, std::uint64_t* out) override;
  void read(const mekik_key& key, void* data, std::uint64_t bytes) override;
  void write(const mekik_key& key, const void* data, std::uint64_t bytes) override;

 private:
  std::string name_of(const mekik_key& key) const;
  Connection& connected();
  template <class Call>
  void attempt(Call&& call);
  [[noreturn]] void lost(const std::string& why);

  const RedisOptions& options_;
  std::unique_ptr<Connection> connection_;
  std::uint64_t quiet_until_ns_ = 0, quiet_ns_ = 0, no_writes_until_ns_ = 0;
};

std::string RedisLink::name_of(const mekik_key& key) const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string name = options_.prefix;
  for (const std::uint8_t byte : key.sha256) name += {digits[byte >> 4], digits[byte & 15]};
  return name;
}

Connection& RedisLink::connected() {
  if (connection_) return *connection_;
  if (now() < quiet_until_ns_) throw Error{MEKIK_E_CANCELLED, "Redis is not asked for a while"};
  auto made = std::make_unique<Connection>(options_);
  const std::uint64_t deadline = now() + options_.timeout_ns;
  int answers = 0;
  if (!options_.password.empty()) {
    if (options_.user.empty()) made->command({"AUTH", options_.password});
    else made->command({"AUTH", options_.user, options_.password});
    ++answers;
  }
  made->command({"SELECT", std::to_string(options_.db)});
  made->flush(deadline);
  try {
    for (++answers; answers > 0; --answers) made->expect_ok(deadline);
  } catch (const Refused& e) {
    throw Broken{std::string{"said: "} + e.what()};
  }
  quiet_ns_ = 0;
  connection_ = std::move(made);
  return *connection_;
}

void RedisLink::lost(const std::string& why) {
  connection_.reset();
  quiet_ns_ = quiet_ns_ == 0 ? kFirstQuietNs : std::min(2 * quiet_ns_, kMostQuietNs);
  quiet_until_ns_ = now() + quiet_ns_;
  throw Error{MEKIK_E_IO, options_.shown() + " " + why};
}

// A server may close what was idle: that is no failure, once.
template <class Call>
void RedisLink::attempt(Call&& call) {
  for (bool again = false;; again = true) {
    bool idle = false;
    try {
      Connection& c = connected();
      idle = c.used;
      call(c);
      c.used = true;
      return;
    } catch (const Closed& e) {
      connection_.reset();
      if (!idle || again) lost(e.what());
    } catch (const Broken& e) {
      lost(e.what());
    } catch (const Refused& e) {
      connection_->used = true;
      throw Error{MEKIK_E_IO, options_.shown() + " said: " + e.what()};
    }
  }
}

void RedisLink::lengths(std::span<const mekik_key> keys, std::uint64_t* out) {
  attempt([&](Connection& c) {
    const std::uint64_t deadline = now() + options_.timeout_ns;
    for (const mekik_key& key : keys) c.command({"STRLEN", name_of(key)});
    c.flush(deadline);
    std::string refused;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Connection::Reply r = c.reply(kSlack, deadline);
      out[i] = 0;
      if (r->type == REDIS_REPLY_ERROR) refused = printable({r->str, r->len});
      else if (r->type != REDIS_REPLY_INTEGER) throw Broken{"answered what is no Redis reply"};
      else if (r->integer > static_cast<long long>(sizeof(ValueHead))) out[i] = static_cast<std::uint64_t>(r->integer) - sizeof(ValueHead);
    }
    if (!refused.empty()) throw Refused{refused};
  });
}

void RedisLink::read(const mekik_key& key, void* data, std::uint64_t bytes) {
  bool damaged = false;
  attempt([&](Connection& c) {
    const std::uint64_t size = sizeof(ValueHead) + bytes, deadline = now() + options_.timeout_ns + (size >> 20) * kNsPerMiB;
    c.command({"GET", name_of(key)});
    c.flush(deadline);
    const Connection::Reply r = c.reply(size, deadline);
    if (r->type == REDIS_REPLY_ERROR) throw Refused{printable({r->str, r->len})};
    if (r->type == REDIS_REPLY_NIL) throw Error{MEKIK_E_INVALID, "Redis has it no more"};
    if (r->type != REDIS_REPLY_STRING) throw Broken{"answered what is no Redis reply"};
    if (r->len != size) throw Error{MEKIK_E_INVALID, "Redis has another length of it"};
    ValueHead head{};
    std::memcpy(&head, r->str, sizeof head);
    std::memcpy(data, r->str + sizeof head, bytes);
    damaged = !is_whole(head, key, data, bytes);
    if (!damaged) return;
    c.command({"DEL", name_of(key)});
    c.flush(deadline);
    const Connection::Reply gone = c.reply(kSlack, deadline);  // a replica refuses, and that is all right
  });
  if (!damaged) return;
  throw Error{MEKIK_E_IO, options_.shown() + " gave a damaged value"};
}

// What is there already stays, and lives on. A server that refuses a value is not offered others for a while: it may be full, or a replica.
void RedisLink::write(const mekik_key& key, const void* data, std::uint64_t bytes) {
  if (now() < no_writes_until_ns_) throw Error{MEKIK_E_CANCELLED, "Redis is offered nothing for a while"};
  const std::uint64_t size = sizeof(ValueHead) + bytes;
  if (size > kMostBytes) throw Error{MEKIK_E_INVALID, "Redis takes no value of " + std::to_string(size) + " bytes"};
  try {
    attempt([&](Connection& c) {
      const std::uint64_t deadline = now() + options_.timeout_ns + (size >> 20) * kNsPerMiB;
      const std::string name = name_of(key), ttl = std::to_string(std::max<std::uint64_t>(options_.ttl_ns / 1'000'000, 1));
      c.command({"STRLEN", name});
      if (options_.ttl_ns > 0) c.command({"PEXPIRE", name, ttl});
      c.flush(deadline);
      const Connection::Reply there = c.reply(kSlack, deadline);
      if (options_.ttl_ns > 0) c.reply(kSlack, deadline);
      if (there->type == REDIS_REPLY_INTEGER && static_cast<std::uint64_t>(there->integer) == size) return;
      const auto argument = [&](std::string_view word) {
        c.pending += "$" + std::to_string(word.size()) + "\r\n" + std::string{word} + "\r\n";
      };
      c.pending += options_.ttl_ns > 0 ? "*4\r\n" : "*3\r\n";
      argument(options_.ttl_ns > 0 ? "PSETEX" : "SET");
      argument(name);
      if (options_.ttl_ns > 0) argument(ttl);
      const ValueHead head = head_of(key, data, bytes);
      c.pending += "$" + std::to_string(size) + "\r\n";
      c.pending.append(reinterpret_cast<const char*>(&head), sizeof head);
      c.flush(deadline);
      c.send(data, bytes, deadline);  // not copied
      c.send("\r\n", 2, deadline);
      c.expect_ok(deadline);
    });
  } catch (const Error& e) {
    if (e.code == MEKIK_E_IO && connection_) no_writes_until_ns_ = now() + kNoWritesNs;
    throw;
  }
}

}  // namespace

std::unique_ptr<Remote> make_redis(const RedisOptions& options) { return std::make_unique<RedisLink>(options); }

}  // namespace mekik::prefix_cache
