// Framing, byte by byte and at once: the two must agree.
#include "server/http.hpp"
#include "support/catch.hpp"

using namespace mekik::server;

namespace {

struct Outcome {
  RequestReader::State state;
  int error;
  std::string body, rest;
};

Outcome read(const std::string& bytes, std::size_t piece, Limits limits = {}) {
  RequestReader reader{limits};
  std::string input;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    input += bytes.substr(at, piece);
    for (auto before = reader.state();; before = reader.state()) {
      if (reader.state() == RequestReader::State::done || reader.state() == RequestReader::State::failed) break;
      input.erase(0, reader.feed(input));
      if (reader.state() == before) break;
    }
  }
  const bool done = reader.state() == RequestReader::State::done;
  return {reader.state(), reader.error().status, done ? reader.take_body() : "", input};
}

int status_of(const std::string& bytes) {
  const Outcome whole = read(bytes, bytes.size()), slow = read(bytes, 1);
  CHECK(whole.error == slow.error);
  CHECK((whole.state == slow.state));
  CHECK(whole.body == slow.body);
  return whole.state == RequestReader::State::done ? 200 : whole.error;
}

std::string post(const std::string& headers, const std::string& body = "") {
  return "POST /v1/completions HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n" + body;
}

}  // namespace

TEST_CASE("Bodies with a length and in chunks") {
  CHECK(status_of(post("Content-Length: 5\r\n", "hello")) == 200);
  const std::string chunked = post("Transfer-Encoding: chunked\r\n", "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n");
  CHECK(status_of(chunked) == 200);
  CHECK(read(chunked, 7).body == "hello");
  // Beast asserted here when the end came in pieces.
  CHECK(status_of(post("Transfer-Encoding: chunked\r\n", "0\r\n\r\n")) == 200);
  CHECK(status_of("GET / HTTP/1.0\r\n\r\n") == 200);
  CHECK(status_of("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n") == 200);
}

TEST_CASE("What follows a request is left for the next") {
  const Outcome outcome = read(post("Content-Length: 2\r\n", "{}GET / HTTP/1.1\r\n"), 1000);
  CHECK(outcome.body == "{}");
  CHECK(outcome.rest == "GET / HTTP/1.1\r\n");
}

TEST_CASE("B128: ambiguous framing is refused") {
  CHECK(status_of(post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")) == 400);
  CHECK(status_of(post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n")) == 400);
  CHECK(status_of(post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello")) == 400);
  CHECK(status_of(post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello")) == 400);
  for (const char* length : {"+5", "5, 5", "-1", "0x5", "5 ", "", "99999999999999999999", "5;", " 5 5"})
    CHECK(status_of(post("Content-Length: " + std::string{length} + "\r\n", "hello")) == (std::string{length} == "5 " ? 200 : 400));
  CHECK(status_of(post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")) == 501);
  CHECK(status_of(post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")) == 501);
  CHECK(status_of(post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")) == 400);
  CHECK(status_of(post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n")) == 400);
  CHECK(status_of(post(" Transfer-Encoding: chunked\r\n", "0\r\n\r\n")) == 400);
  CHECK(status_of(post("X: a\r\n b\r\n")) == 400);
  CHECK(status_of(post("X: a\rb\r\n")) == 400);
  CHECK(status_of(post("X: a\nContent-Length: 5\r\n", "hello")) == 400);
  CHECK(status_of(post(std::string{"X: a\0b\r\n", 8})) == 400);
  CHECK(status_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") == 400);
  CHECK(status_of("GET / HTTP/1.1\n\nHost: a\n\n") == 400);
  CHECK(status_of(post("Transfer-Encoding: chunked\r\n", "5\nhello\r\n0\r\n\r\n")) == 400);
  CHECK(status_of(post("Transfer-Encoding: chunked\r\n", "-5\r\nhello\r\n0\r\n\r\n")) == 400);
  CHECK(status_of(post("Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\nhello\r\n")) == 400);
}

TEST_CASE("Request lines and hosts") {
  CHECK(status_of("GET / HTTP/1.1\r\n\r\n") == 400);
  CHECK(status_of("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n") == 400);
  CHECK(status_of("GET  / HTTP/1.1\r\nHost: a\r\n\r\n") == 400);
  CHECK(status_of("GET / HTTP/2.0\r\nHost: a\r\n\r\n") == 505);
  CHECK(status_of("GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n") == 400);
  CHECK(status_of("GET /%ff HTTP/1.1\r\nHost: a\r\n\r\n") == 400);
  CHECK(status_of("GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n") == 400);
  CHECK(status_of("GET /%2 HTTP/1.1\r\nHost: a\r\n\r\n") == 400);
  CHECK(status_of("GET etc HTTP/1.1\r\nHost: a\r\n\r\n") == 400);
  CHECK(status_of("GET http://a/b HTTP/1.1\r\nHost: a\r\n\r\n") == 200);
  CHECK(status_of("\x16\x03\x01\x02") == 400);
  CHECK(status_of("GET / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\n\r\n") == 417);
}

TEST_CASE("Limits") {
  Limits small;
  small.header_bytes = 200;
  small.body_bytes = 10;
  CHECK(read("GET /" + std::string(300, 'a') + " HTTP/1.1\r\n\r\n", 50, small).error == 431);
  CHECK(read(post("Content-Length: 11\r\n"), 1000, small).error == 413);
  CHECK(read(post("Content-Length: 10000000000\r\n"), 1000, small).error == 413);
  CHECK(read(post("Transfer-Encoding: chunked\r\n", "b\r\nhello hello\r\n0\r\n\r\n"), 1000, small).error == 413);
  CHECK(read(post("Transfer-Encoding: chunked\r\n", "6\r\nhello \r\n6\r\nhello \r\n0\r\n\r\n"), 1, small).error == 413);
  CHECK(read(post("Transfer-Encoding: chunked\r\n", "1;" + std::string(5000, 'x')), 1, small).error != 0);
  CHECK(read(post("Transfer-Encoding: chunked\r\n", "0\r\n" + std::string(5000, 'x')), 1, small).error != 0);
}

TEST_CASE("Trailers never become headers") {
  RequestReader reader{Limits{}};
  std::string input = post("Transfer-Encoding: chunked\r\n", "0\r\nAuthorization: Bearer k\r\n\r\n");
  input.erase(0, reader.feed(input));
  input.erase(0, reader.feed(input));
  CHECK((reader.state() == RequestReader::State::done));
  CHECK(reader.head().count("Authorization") == 0);
}

TEST_CASE("Keep-alive") {
  const auto kept = [](const std::string& head) {
    RequestReader reader{Limits{}};
    (void)reader.feed(head);
    return reader.head().keep_alive;
  };
  CHECK(kept("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  CHECK_FALSE(kept("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n"));
  CHECK_FALSE(kept("GET / HTTP/1.0\r\n\r\n"));
  CHECK(kept("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}
