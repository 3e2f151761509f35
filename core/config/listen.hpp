// Addresses that a server listens on.
#pragma once
#include <string>

#include "base/status.hpp"
#include "config/value.hpp"

namespace mekik::config {

// "tcp://HOST:PORT" (port 0: any free one) or "unix:PATH", checked; the path of the second made absolute from the file that names it.
Result<std::string> check_listen(const std::string& address, const Origin& named_in);
bool is_any_port(const std::string& checked);  // such an address may be named more than once

}  // namespace mekik::config
