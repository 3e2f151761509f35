// Framing. The head is checked here byte by byte, since Beast accepts more than is safe behind a proxy; Beast then parses it and
// decodes the body.
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/text.hpp"
#include "server/http.hpp"

namespace mekik::server {

namespace http = boost::beast::http;
namespace net = boost::asio;

namespace {

constexpr std::string_view kEndOfHead = "\r\n\r\n";
constexpr std::string_view kLeastChunks = "0\r\n\r\n";

bool is_token_char(char c) {
  if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) return true;
  return std::string_view{"!#$%&'*+-.^_`|~"}.find(c) != std::string_view::npos;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

HttpError bad(std::string message) { return {400, std::move(message)}; }

// "http://host/path?query" and "/path?query" to path and query.
HttpError split_target(std::string_view target, Head& head) {
  if (target.empty()) return bad("the request line has no target");
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.size() < scheme.size() || !equals_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    const std::size_t slash = target.find('/', scheme.size());
    target = slash == std::string_view::npos ? std::string_view{"/"} : target.substr(slash);
  }
  if (target != "*" && target.front() != '/') return bad("the request target must start with '/'");
  const std::size_t question = target.find('?');
  if (question != std::string_view::npos) head.query = target.substr(question + 1);
  const auto path = percent_decode(target.substr(0, question));
  if (!path) return bad("the request target is not percent-encoded UTF-8");
  head.path = *path;
  return {};
}

HttpError parse_request_line(std::string_view line, Head& head) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last || line.find(' ', first + 1) != last)
    return bad("the request line is not \"METHOD TARGET HTTP/1.1\"");
  head.method = line.substr(0, first);
  for (const char c : head.method)
    if (!is_token_char(c)) return bad("the method has a character that is not allowed");
  const std::string_view version = line.substr(last + 1);
  if (version.size() != 8 || version.substr(0, 5) != "HTTP/" || version[6] != '.') return bad("the request line has no HTTP version");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return {505, "only HTTP/1.1 and HTTP/1.0 are spoken here"};
  head.http_1_1 = version == "HTTP/1.1";
  const std::string_view target = line.substr(first + 1, last - first - 1);
  for (const char c : target)
    if (static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7F)
      return bad("the request target has a character that must be percent-encoded");
  return split_target(target, head);
}

HttpError parse_field(std::string_view line, Head& head) {
  if (line.front() == ' ' || line.front() == '\t') return bad("a folded header field is not allowed");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return bad("a header field has no name or no colon");
  const std::string_view name = line.substr(0, colon), value = trim(line.substr(colon + 1));
  for (const char c : name)
    if (!is_token_char(c)) return bad("a header field's name has a character that is not allowed");
  for (const char c : value)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F) return bad("a header field's value has a control character");
  head.headers.emplace_back(name, value);
  return {};
}

HttpError check_framing(Head& head) {
  for (const char* once : {"Content-Length", "Transfer-Encoding", "Host", "Content-Type", "Content-Encoding", "Authorization"})
    if (head.count(once) > 1) return bad(std::string{once} + " occurs more than once");
  if (head.http_1_1 && head.count("Host") == 0) return bad("HTTP/1.1 needs a Host header");
  if (const std::string* length = head.header("Content-Length")) {
    if (length->empty() || length->size() > 18 || length->find_first_not_of("0123456789") != std::string::npos)
      return bad("Content-Length is not a number of bytes");
    head.content_length = std::stoull(*length);
  }
  if (const std::string* coding = head.header("Transfer-Encoding")) {
    if (head.content_length) return bad("Content-Length and Transfer-Encoding together are not allowed");
    if (!head.http_1_1) return bad("HTTP/1.0 has no Transfer-Encoding");
    if (!equals_ignoring_case(*coding, "chunked")) return {501, "the only Transfer-Encoding understood is chunked"};
    head.chunked = true;
  }
  return {};
}

HttpError check_connection(Head& head) {
  head.keep_alive = head.http_1_1;
  for (const Header& field : head.headers) {
    if (!equals_ignoring_case(field.first, "Connection")) continue;
    for (const std::string& option : split(field.second, ',')) {
      if (equals_ignoring_case(trim(option), "close")) head.keep_alive = false;
      if (equals_ignoring_case(trim(option), "keep-alive") && !head.http_1_1) head.keep_alive = true;
    }
  }
  if (const std::string* expect = head.header("Expect")) {
    if (!equals_ignoring_case(*expect, "100-continue")) return {417, "the only expectation understood is 100-continue"};
    head.expects_continue = head.http_1_1 && head.has_body();
  }
  return {};
}

// The whole head, with its blank line.
HttpError parse_head(std::string_view raw, Head& head) {
  raw.remove_suffix(2);  // every line now ends in CR LF
  bool first = true;
  while (!raw.empty()) {
    const std::size_t end = raw.find("\r\n");
    const std::string_view line = raw.substr(0, end);
    if (line.find_first_of(std::string_view{"\r\n\0", 3}) != std::string_view::npos)
      return bad("a line of the header has a bare carriage return, line feed or NUL");
    HttpError error = first ? parse_request_line(line, head) : parse_field(line, head);
    if (error.status != 0) return error;
    first = false;
    raw.remove_prefix(end + 2);
  }
  if (HttpError error = check_framing(head); error.status != 0) return error;
  return check_connection(head);
}

}  // namespace

struct RequestReader::Impl {
  explicit Impl(const Limits& limits_in) : limits{limits_in} {}

  std::size_t feed_head(std::string_view data);
  std::size_t feed_body(std::string_view data);
  std::size_t start_body(std::string_view raw);
  void fail(HttpError why) {
    error = std::move(why);
    state = State::failed;
  }

  Limits limits;
  State state = State::head;
  HttpError error;
  Head head;
  std::optional<http::request_parser<http::string_body>> body;  // Beast's, from the head on
};

std::size_t RequestReader::Impl::feed_head(std::string_view data) {
  // An empty line before a request is left over from sloppy clients (RFC 9112, 2.2); two are enough.
  std::size_t skipped = 0;
  while (skipped < 4 && data.substr(skipped, 2) == "\r\n") skipped += 2;
  const std::string_view rest = data.substr(skipped, limits.header_bytes);
  const std::size_t end = rest.find(kEndOfHead);
  // Fail early on what can no longer become a request, so that a client that speaks TLS or sends bare line feeds gets its answer.
  if (!rest.empty() && !is_token_char(rest.front()) && rest.front() != '\r') {
    fail(bad("this is not an HTTP/1.x request"));
    return 0;
  }
  if (end == std::string_view::npos) {
    if (rest.size() >= limits.header_bytes) fail({431, "the header has more than " + std::to_string(limits.header_bytes) + " bytes"});
    else if (rest.find("\n\n") != std::string_view::npos) fail(bad("lines of the header must end in CR LF"));
    return 0;
  }
  const std::size_t size = end + kEndOfHead.size();
  if (HttpError why = parse_head(rest.substr(0, size), head); why.status != 0) {
    fail(std::move(why));
    return 0;
  }
  start_body(rest.substr(0, size));
  return skipped + size;
}

// Beast gets the head again: it then knows the framing, and decodes the body.
std::size_t RequestReader::Impl::start_body(std::string_view raw) {
  body.emplace();
  body->header_limit(static_cast<std::uint32_t>(limits.header_bytes + 1024));
  body->body_limit(limits.body_bytes);
  body->eager(false);
  state = State::body;
  if (head.content_length.value_or(0) > limits.body_bytes) {
    fail({413,
          "the body has " + std::to_string(*head.content_length) + " bytes; at most " + std::to_string(limits.body_bytes) + " are read"});
    return 0;
  }
  boost::beast::error_code ec;
  const std::size_t used = body->put(net::buffer(raw.data(), raw.size()), ec);
  if (ec || !body->is_header_done()) {
    fail(bad("the header is not well formed"));
    return used;
  }
  body->eager(true);
  if (!head.has_body()) state = State::done;
  return used;
}

std::size_t RequestReader::Impl::feed_body(std::string_view data) {
  std::size_t used = 0;
  while (used < data.size() && !body->is_done()) {
    // No chunked body ends in fewer bytes, and Beast before 1.86 asserts that it is not asked about fewer (boostorg/beast#2861).
    if (head.chunked && data.size() - used < kLeastChunks.size()) break;
    boost::beast::error_code ec;
    const std::size_t took = body->put(net::buffer(data.data() + used, data.size() - used), ec);
    used += took;
    if (ec == http::error::need_more) break;
    if (ec == http::error::body_limit) fail({413, "the body has more than " + std::to_string(limits.body_bytes) + " bytes"});
    else if (ec) fail(bad("the body is not well framed: " + ec.message()));
    if (ec) return used;
    if (took == 0) break;
  }
  // What Beast does not take yet (a part of a chunk's head or of the trailer) stays with the caller, and must not grow without bound.
  if (!body->is_done() && data.size() - used > limits.header_bytes) fail({431, "a chunk's header or the trailer is too long"});
  if (body->is_done()) state = State::done;
  return used;
}

RequestReader::RequestReader(const Limits& limits) : impl_{std::make_unique<Impl>(limits)} {}
RequestReader::~RequestReader() = default;
RequestReader::RequestReader(RequestReader&&) noexcept = default;
RequestReader& RequestReader::operator=(RequestReader&&) noexcept = default;
RequestReader::State RequestReader::state() const { return impl_->state; }
const HttpError& RequestReader::error() const { return impl_->error; }
const Head& RequestReader::head() const { return impl_->head; }
std::string RequestReader::take_body() { return impl_->body ? std::move(impl_->body->get().body()) : std::string{}; }

std::size_t RequestReader::feed(std::string_view data) {
  if (impl_->state == State::head) return impl_->feed_head(data);
  if (impl_->state == State::body) return impl_->feed_body(data);
  return 0;
}

}  // namespace mekik::server
