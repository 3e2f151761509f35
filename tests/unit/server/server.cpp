// The server's life: bind, serve, stop, in whatever order somebody calls them.
#include "server/server.hpp"

#include "server/fakes.hpp"
#include "support/catch.hpp"

using namespace mekik;
using namespace mekik::server;

namespace {

struct Fixture {
  test::FakeTokenizer tokenizer;
  test::FakeEngine engine{tokenizer, {}};
  config::ServerUse use;
  Fixture() { use.listen = {"tcp://127.0.0.1:0"}; }
  std::vector<Served> models(const char* name = "fake") {
    std::vector<Served> out{test::fake_served(engine, tokenizer, nullptr)};
    out[0].name = name;
    return out;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "A server takes its models once, and not after its end") {
  auto server = Server::bind(use);
  REQUIRE(server.ok());
  CHECK((*server)->serve({}).code == Code::invalid);
  CHECK((*server)->serve(models("")).code == Code::invalid);
  auto twice = models();
  twice.push_back(twice[0]);
  CHECK((*server)->serve(twice).text == "two models are called \"fake\"; set [model] name");
  CHECK((*server)->serve(models()).ok());
  CHECK((*server)->serve(models()).code == Code::internal);
  (*server)->stop();
  CHECK_FALSE((*server)->serve(models()).ok());
  (*server)->stop();  // again does nothing
}

TEST_CASE_METHOD(Fixture, "A server that never served ends, and does not begin afterwards") {
  auto server = Server::bind(use);
  REQUIRE(server.ok());
  (*server)->stop();
  CHECK((*server)->serve(models()).text == "the server has ended");
}

TEST_CASE_METHOD(Fixture, "An address is free again after the end, and taken before it") {
  auto first = Server::bind(use);
  REQUIRE(first.ok());
  config::ServerUse same;
  same.listen = (*first)->addresses();
  CHECK(Server::bind(same).status().text ==
        "cannot listen on " + same.listen[0] + ": another program listens there; stop it, or choose another address in [server] listen");
  (*first)->stop();
  CHECK(Server::bind(same).ok());
}
