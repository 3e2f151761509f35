#include "base/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "support/catch.hpp"

using namespace mekik;

namespace {

std::string take_all(int descriptor) {
  std::string out;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(descriptor, buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<std::size_t>(n));
  return out;
}

}  // namespace

TEST_CASE("a log that nobody reads stops nobody, and tells later what was lost") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
  const int kept = dup(STDERR_FILENO);
  REQUIRE(dup2(ends[1], STDERR_FILENO) >= 0);
  const std::string text(1000, 'x');
  for (int i = 0; i < 1000; ++i) log::warning("test", text);  // a megabyte into 64 KiB
  const std::string first = take_all(ends[0]);
  log::warning("test", "there is room again");
  const std::string second = take_all(ends[0]);
  dup2(kept, STDERR_FILENO);
  close(kept);
  close(ends[0]);
  close(ends[1]);
  CHECK(first.size() > 30'000);
  CHECK(first.size() < 200'000);
  CHECK(second.find(" messages were lost here: nobody read them\n") != std::string::npos);
  CHECK(second.find("[test] there is room again\n") != std::string::npos);
}
