#include "base/terminal.hpp"

#include "support/catch.hpp"

using namespace mekik;

TEST_CASE("what a file says cannot steer a terminal") {
  CHECK(without_controls("a\x1b[31mb\r\n\tc\x7f \xC3\xA9") == "a\\x1b[31mb\\x0d\n\tc\\x7f \xC3\xA9");
}
