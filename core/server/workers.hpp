// The threads for what takes time: bodies are parsed, templates rendered, texts tokenized and long answers written here, so that none of it
// holds up the streams of others. Internal.
#pragma once
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <thread>
#include <vector>

namespace mekik::server {

namespace net = boost::asio;

// Short work has a thread of its own, so it never waits behind long work. Long work shares a few threads, among which the operating system
// divides what time there is, and which give way to short work and to the engines.
class Workers {
 public:
  static constexpr std::size_t kShortBytes = 64u << 10;
  static constexpr std::size_t kLongThreads = 4;

  Workers();
  ~Workers() { join(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Where work on this much text belongs.
  net::io_context& of(std::size_t bytes) { return bytes <= kShortBytes ? short_ : long_; }
  void join();  // after all that was given is done

 private:
  net::io_context short_{1}, long_{static_cast<int>(kLongThreads)};
  using Guard = net::executor_work_guard<net::io_context::executor_type>;
  Guard short_guard_, long_guard_;
  std::vector<std::thread> threads_;
};

}  // namespace mekik::server
