// serve: bind first, so that a taken port is told before anything is loaded; then load; then wait for a signal.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <future>
#include <mutex>

#include "app/session.hpp"
#include "app/verbs.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "config/listen.hpp"
#include "server/server.hpp"

namespace mekik::app {

namespace {

struct Site {  // one pipeline: its server, its model, its engine. Destroyed in the opposite order of use.
  std::string operand;
  config::Pipeline pipeline;
  std::unique_ptr<engine::Model> model;
  std::optional<text::AnswerFormat> format;  // of a model that chats
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<server::Server> server;
  std::unique_ptr<std::atomic<bool>> stop = std::make_unique<std::atomic<bool>>(false);
  std::future<void> resident;

  Site() = default;
  Site(Site&&) = default;
  ~Site() {
    if (stop != nullptr) *stop = true;
    if (resident.valid()) resident.wait();
  }
};

// SIGINT and SIGTERM are taken by one thread that asks for them, and by no other: threads made later inherit the mask.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  // The signal that came within the time, or 0.
  int wait(std::chrono::milliseconds time) const {
    const timespec limit{time.count() / 1000, (time.count() % 1000) * 1'000'000};
    const int signal = sigtimedwait(&set_, nullptr, &limit);
    return signal > 0 ? signal : 0;
  }

 private:
  sigset_t set_{};
};

void refuse_shared_addresses(const std::vector<Site>& sites) {
  for (std::size_t i = 0; i < sites.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      for (const std::string& address : sites[i].pipeline.server.listen)
        for (const std::string& other : sites[j].pipeline.server.listen)
          if (address == other && !config::is_any_port(address))
            throw misused(sites[j].operand + " and " + sites[i].operand + " both listen on " + address +
                          "; give one of them another address in [server] listen");
}

// The thread that loads hands models to servers; once a signal came, no more of them.
class Turnstile {
 public:
  template <class Work>
  void pass(Work&& work) {
    const std::lock_guard lock{mutex_};
    if (stopped_) return;
    work();
    ++passed_;
  }
  // Nobody is inside when it returns, nor gets in afterwards. How many passed.
  std::size_t stop() {
    const std::lock_guard lock{mutex_};
    stopped_ = true;
    return passed_;
  }

 private:
  std::mutex mutex_;
  bool stopped_ = false;
  std::size_t passed_ = 0;
};

void load(Session& session, Site& site, Turnstile& turnstile) {
  site.model = session.open(site.pipeline);
  need(site.model->scoring_status());
  if (site.model->tokenizer() == nullptr) log::warning("model", site.model->tokenizer_status().text);
  session.load(*site.model);
  site.engine = session.start(*site.model);
  server::Served served;
  served.engine = site.engine.get();
  served.name = site.model->name();
  served.tokenizer = site.model->tokenizer();
  served.tokenizer_error = site.model->tokenizer_status().text;
  served.chat_template = site.model->chat_template();
  served.template_error = site.model->template_status().text;
  if (served.chat_template != nullptr) {
    site.format = session.answer_format(*served.chat_template);
    served.format = &*site.format;
    log::info("server", site.model->name() + ": answers as by " + site.format->name + (site.format->calls() ? "" : ", without calls"));
  }
  served.context = site.model->context();
  served.vocab = site.model->vocab();
  served.task = site.model->task();
  served.vector_size = static_cast<std::uint32_t>(program::output_size(site.model->program()));
  served.scoring = site.model->scoring();
  served.score_tokens = site.model->score_tokens();
  served.pair_template = site.model->pair_template();
  served.max_queue = site.pipeline.server.max_queue;
  for (const config::Use& use : site.pipeline.samplers) served.samplers.push_back(need(session.registry().component("sampler", use)));
  turnstile.pass([&] {
    need(site.server->serve({std::move(served)}));
    log::info("server", site.model->name() + " is ready on " + join(site.server->addresses(), ", "));
    site.resident = std::async(std::launch::async, [&site] { site.model->make_resident(*site.stop); });
  });
}

// Runs `work` on a thread of its own while signals are watched; each calls `on_signal`.
template <class Work, class OnSignal>
void watch(const Signals& signals, Work&& work, OnSignal&& on_signal) {
  std::future<void> running = std::async(std::launch::async, std::forward<Work>(work));
  while (running.wait_for(std::chrono::seconds{0}) != std::future_status::ready)
    if (const int signal = signals.wait(std::chrono::milliseconds{50})) on_signal(signal);
  running.get();
}

// All sites at once: none takes requests while another lets its own end.
void drain(const Signals& signals, std::vector<Site>& sites) {
  log::info("server", "draining; a second signal ends at once");
  watch(
      signals,
      [&] {
        std::vector<std::future<void>> stops;
        for (Site& site : sites) stops.push_back(std::async(std::launch::async, [&site] { site.server->stop(); }));
        for (std::future<void>& stop : stops) stop.get();
      },
      [](int second) { _exit(128 + second); });
}

int run_serve(const Arguments& arguments) {
  const Signals signals;
  Session session;
  std::vector<Site> sites;
  for (const std::string& operand : arguments.operands) {
    const auto pipeline = session.pipeline(arguments, operand);
    if (!pipeline) return kSuccess;
    sites.emplace_back();
    sites.back().operand = operand;
    sites.back().pipeline = *pipeline;
  }
  refuse_shared_addresses(sites);
  for (Site& site : sites) {
    site.server = need(server::Server::bind(site.pipeline.server));
    log::info("server", "listening on " + join(site.server->addresses(), ", "));
  }
  int signal = 0;
  Turnstile turnstile;
  watch(
      signals,
      [&] {
        for (Site& site : sites) load(session, site, turnstile);
      },
      [&](int came) {
        signal = came;
        const std::size_t served = turnstile.stop();
        if (served == sites.size()) return;  // it came just after
        // Loading cannot be interrupted half-way: the process ends beside it.
        log::info("server", "stopped while loading");
        drain(signals, sites);
        _exit(kSuccess);
      });
  while (signal == 0) signal = signals.wait(std::chrono::hours{1});
  drain(signals, sites);
  return kSuccess;
}

}  // namespace

const Verb kServe{"serve",
                  "PIPELINE...",
                  "The server: OpenAI's API over TCP and Unix sockets.",
                  "mekik serve pipelines/chat.toml",
                  [](po::options_description&) {},
                  1,
                  64,
                  true,
                  run_serve};

}  // namespace mekik::app
