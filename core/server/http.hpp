// HTTP/1.x messages without sockets: what a request is, how its bytes are framed, what an answer is.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/limits.hpp"

namespace mekik::server {

using Header = std::pair<std::string, std::string>;  // name as sent, value without surrounding space

struct Head {
  std::string method, path, query;  // the path is percent-decoded UTF-8 without NUL; the query is as sent
  bool http_1_1 = true;
  bool keep_alive = true;
  bool expects_continue = false;
  bool chunked = false;
  std::optional<std::uint64_t> content_length;
  std::vector<Header> headers;

  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
  std::size_t count(std::string_view name) const;          // case-insensitive
  const std::string* header(std::string_view name) const;  // the first, or nullptr
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<Header> headers;
};

// What a client did wrong on the level of HTTP; the connection is closed after it.
struct HttpError {
  int status = 0;  // 0: none
  std::string message;
};

// Reads one request out of a stream of bytes. Stricter than RFC 9112 where servers and proxies disagree about framing: no bare CR or
// LF, no folded fields, no space before a colon, one Content-Length of digits only, "chunked" as the only coding and never together
// with a length. No sockets, no clock: the connection and the fuzzer feed the same code.
class RequestReader {
 public:
  enum class State { head, body, done, failed };

  explicit RequestReader(const Limits& limits);
  ~RequestReader();
  RequestReader(RequestReader&&) noexcept;
  RequestReader& operator=(RequestReader&&) noexcept;

  // Takes what it needs from the front of `data` and returns how much that was. In State::head nothing is taken until the whole head
  // is there (give the same bytes again, with more behind them); it stops after the head so that the caller can refuse the body.
  std::size_t feed(std::string_view data);
  State state() const;
  const HttpError& error() const;
  const Head& head() const;  // from State::body on
  std::string take_body();   // in State::done

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string_view reason_phrase(int status);
// The status line and headers of an answer, with Date and the blank line. `framing`: "Content-Length: 12" or the like; may be empty.
std::string serialize_head(int status, bool http_1_1, const std::vector<Header>& headers, std::string_view framing, bool keep_alive);
bool equals_ignoring_case(std::string_view a, std::string_view b);  // ASCII
// Percent-decodes; nothing when an escape is broken or the result has a NUL or is not UTF-8.
std::optional<std::string> percent_decode(std::string_view text);

}  // namespace mekik::server
