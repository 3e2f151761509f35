// What all connections of one server share. Internal.
#pragma once
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/auth.hpp"
#include "server/limits.hpp"
#include "server/server.hpp"
#include "server/workers.hpp"

namespace mekik::server {

namespace net = boost::asio;
class Connection;

struct SharedState {
  explicit SharedState(const config::ServerUse& use) : limits{Limits::of(use)}, keys{use.api_keys}, share_prefixes{use.share_prefixes} {}

  const Limits limits;
  const KeyCheck keys;
  const bool share_prefixes;
  net::io_context io{1};
  Workers workers;
  std::atomic<bool> draining{false};

  // Only on the I/O thread.
  std::vector<Served> models;  // constant once `serving`; the worker reads it then
  bool serving = false;
  std::int64_t created = 0;  // Unix time of serve()
  std::map<const Connection*, std::weak_ptr<Connection>> connections;
};

}  // namespace mekik::server
