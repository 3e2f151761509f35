// Addresses that a server listens on. Internal.
#pragma once
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace mekik::server {

namespace net = boost::asio;

// One bound and listening socket. Closes itself; removes its Unix socket file, if it is still its own.
class Listener {
 public:
  using Acceptor = net::basic_socket_acceptor<net::generic::stream_protocol>;
  // "tcp://HOST:PORT" (all addresses of HOST that this machine has; port 0: any) or "unix:PATH". Errors name the address.
  static Result<std::vector<Listener>> listen(net::io_context& io, const std::string& address);
  ~Listener();
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  void close();  // stops accepting; a Unix socket's file goes with it

  Acceptor acceptor;
  std::string address;     // what is really bound
  bool is_public = false;  // reachable from other machines

 private:
  explicit Listener(net::io_context& io) : acceptor{io} {}
  static boost::system::error_code open(Listener& listener, const net::generic::stream_protocol::endpoint& endpoint);
  static Result<std::vector<Listener>> listen_tcp(net::io_context& io, const std::string& address);
  static Result<std::vector<Listener>> listen_unix(net::io_context& io, const std::string& address);
  std::string socket_path_;  // empty: TCP
  std::uint64_t device_ = 0, inode_ = 0;
};

}  // namespace mekik::server
