#include "engine/blocks.hpp"

#include "support/catch.hpp"

using namespace mekik::engine;

TEST_CASE("a block is free again when its last lease goes") {
  Pool pool{2};
  auto a = pool.take();
  auto b = a.share();
  CHECK(a.id() == b.id());
  CHECK(pool.references(a.id()) == 2);
  a.reset();
  CHECK(pool.free() == 1);
  CHECK(pool.held() == 1);
  b = Lease{};
  CHECK(pool.free() == 2);
}

TEST_CASE("a block that a submitted call names waits for that call") {
  Pool pool{1};
  auto a = pool.take();
  pool.named(a.id(), 5);
  a.reset();
  CHECK(pool.free() == 0);
  CHECK(pool.pending() == 1);
  CHECK_FALSE(pool.take());
  pool.completed(4);
  CHECK(pool.pending() == 1);
  pool.completed(5);
  CHECK(pool.free() == 1);
  auto again = pool.take();
  again.reset();  // ticket 5 is over: free at once
  CHECK(pool.free() == 1);
}
