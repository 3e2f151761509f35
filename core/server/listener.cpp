#include "server/listener.hpp"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstring>

#include "base/text.hpp"

namespace mekik::server {

namespace {

using Generic = net::generic::stream_protocol;
constexpr std::string_view kTcp = "tcp://", kUnix = "unix:";

Status cannot(const std::string& address, const std::string& why) { return {Code::io, "cannot listen on " + address + ": " + why}; }
Status taken(const std::string& address) {
  return cannot(address, "another program listens there; stop it, or choose another address in [server] listen");
}
// What the system said, and what to do about it where that is known.
Status cannot(const std::string& address, const boost::system::error_code& ec) {
  if (ec == net::error::address_in_use) return taken(address);
  if (ec == boost::system::errc::permission_denied)
    return cannot(address, "it is not allowed here; ports below 1024 and sockets in others' folders need privileges");
  if (ec == boost::system::errc::no_such_file_or_directory) return cannot(address, "its folder does not exist; make it first");
  return cannot(address, ec.message());
}

struct HostPort {
  std::string host, port;
};

Result<HostPort> split_address(const std::string& address) {
  const std::string_view rest = std::string_view{address}.substr(kTcp.size());
  const std::size_t colon = rest.rfind(':');
  const auto bad = [&] { return invalid("cannot listen on " + address + ": write tcp://HOST:PORT, for instance tcp://127.0.0.1:8080"); };
  if (colon == std::string_view::npos) return bad();
  std::string host{rest.substr(0, colon)};
  const std::string port{rest.substr(colon + 1)};
  if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos || std::stoul(port) > 65535)
    return bad();
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string::npos) return bad();
  if (host.empty()) return bad();
  return HostPort{host, port};
}

// A socket file that nobody listens on is left over from a process that was killed.
Status remove_stale(const std::string& address, const std::string& path, net::io_context& io) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0)
    return errno == ENOENT ? Status{} : cannot(address, boost::system::error_code{errno, boost::system::generic_category()});
  if (!S_ISSOCK(info.st_mode)) return cannot(address, "the file exists and is no socket; remove it or choose another path");
  net::local::stream_protocol::socket probe{io};
  boost::system::error_code ec;
  probe.connect(net::local::stream_protocol::endpoint{path}, ec);
  if (!ec || ec == net::error::try_again) return taken(address);  // the second: with a full queue
  if (ec != net::error::connection_refused) return cannot(address, ec);
  if (unlink(path.c_str()) != 0 && errno != ENOENT)
    return cannot(address, "cannot remove the stale socket: " + std::generic_category().message(errno));
  return {};
}

// Host and port as they are after binding: the port may have been 0.
std::string bound_address(const Generic::endpoint& endpoint) {
  net::ip::tcp::endpoint tcp;
  tcp.resize(endpoint.size());
  std::memcpy(tcp.data(), endpoint.data(), endpoint.size());
  const std::string host = tcp.address().to_string();
  return (tcp.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(tcp.port());
}

}  // namespace

Listener::Listener(Listener&& other) noexcept
    : acceptor{std::move(other.acceptor)},
      address{std::move(other.address)},
      is_public{other.is_public},
      socket_path_{std::move(other.socket_path_)},
      device_{other.device_},
      inode_{other.inode_} {
  other.socket_path_.clear();
}

Listener::~Listener() { close(); }

void Listener::close() {
  struct stat info {};
  const bool ours = !socket_path_.empty() && lstat(socket_path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
  if (ours) unlink(socket_path_.c_str());
  socket_path_.clear();
  boost::system::error_code ignored;
  acceptor.close(ignored);
}

boost::system::error_code Listener::open(Listener& listener, const Generic::endpoint& endpoint) {
  boost::system::error_code ec;
  const int family = endpoint.protocol().family();
  listener.acceptor.open(endpoint.protocol(), ec);
  // Each family has its own socket, so that [::] and 0.0.0.0 can both be listed.
  if (!ec && family == AF_INET6) listener.acceptor.set_option(net::ip::v6_only{true}, ec);
  if (!ec && family != AF_UNIX) listener.acceptor.set_option(net::socket_base::reuse_address{true}, ec);
  if (!ec) listener.acceptor.bind(endpoint, ec);
  if (!ec) listener.acceptor.listen(1024, ec);
  return ec;
}

Result<std::vector<Listener>> Listener::listen_tcp(net::io_context& io, const std::string& address) {
  MEKIK_TRY(parts, split_address(address));
  net::ip::tcp::resolver resolver{io};
  boost::system::error_code ec;
  const auto found = resolver.resolve(parts.host, parts.port, net::ip::tcp::resolver::passive, ec);
  if (ec) return cannot(address, "the host is not known (" + ec.message() + "); correct [server] listen");
  std::vector<Listener> out;
  for (const auto& entry : found) {
    const net::ip::tcp::endpoint wanted = entry.endpoint();
    Listener listener{io};
    ec = open(listener, Generic::endpoint{wanted});
    // "localhost" names ::1 on machines without IPv6, too.
    if (ec == net::error::address_family_not_supported || ec == boost::system::errc::address_not_available) continue;
    if (ec) return cannot(address, ec);
    listener.address = std::string{kTcp} + bound_address(listener.acceptor.local_endpoint(ec));
    listener.is_public = !wanted.address().is_loopback();
    out.push_back(std::move(listener));
  }
  if (out.empty()) return cannot(address, "this machine does not have this address; correct [server] listen");
  return out;
}

Result<std::vector<Listener>> Listener::listen_unix(net::io_context& io, const std::string& address) {
  const std::string path = address.substr(kUnix.size());
  if (path.empty() || path.find('\0') != std::string::npos) return invalid("cannot listen on " + address + ": write unix:PATH");
  if (path.size() >= sizeof(sockaddr_un{}.sun_path))
    return cannot(address,
                  "the path is longer than the " + std::to_string(sizeof(sockaddr_un{}.sun_path) - 1) + " bytes that a socket may have");
  MEKIK_CHECK_OK(remove_stale(address, path, io));
  Listener listener{io};
  listener.socket_path_ = path;
  const boost::system::error_code ec = open(listener, net::local::stream_protocol::endpoint{path});
  if (ec) return cannot(address, ec);
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return cannot(address, "the socket vanished");
  listener.device_ = info.st_dev;
  listener.inode_ = info.st_ino;
  listener.address = address;
  std::vector<Listener> out;
  out.push_back(std::move(listener));
  return out;
}

Result<std::vector<Listener>> Listener::listen(net::io_context& io, const std::string& address) {
  if (address.compare(0, kTcp.size(), kTcp) == 0) return listen_tcp(io, address);
  if (address.compare(0, kUnix.size(), kUnix) == 0) return listen_unix(io, address);
  return invalid("cannot listen on " + mekik::quoted(address) + ": write tcp://HOST:PORT or unix:PATH");
}

}  // namespace mekik::server
