// A server over the fake engine, for the Python tests. Prints its addresses, one a line, then "ready"; ends on SIGTERM.
//   fake_server [--key KEY] [--unix PATH] [--fast-timeouts] [--small] [--not-ready]
//   fake_server --tables     prints as JSON what docs/api.md has tables of
#include <csignal>
#include <cstdio>
#include <string>

#include "base/json.hpp"
#include "metrics/names.hpp"
#include "server/fakes.hpp"
#include "server/openai/fields.hpp"
#include "server/route.hpp"
#include "support/paths.hpp"

namespace {

void print_tables() {
  using namespace mekik;
  json::array fields, routes, series;
  for (const server::openai::FieldRow& row : server::openai::field_rows())
    fields.push_back(json::object{
        {"name", row.name}, {"kinds", row.kinds}, {"policy", static_cast<int>(row.policy)}, {"allowed", row.allowed}, {"why", row.why}});
  for (const server::Route& route : server::routes())
    routes.push_back(json::object{{"method", route.method}, {"path", route.path}, {"open", route.open}});
  for (const metrics::Definition& metric : metrics::definitions())
    series.push_back(json::object{{"name", metric.name}, {"type", metric.type}, {"help", metric.help}});
  std::printf("%s\n", json::serialize(json::object{{"fields", fields}, {"routes", routes}, {"metrics", series}}).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  using namespace mekik;
  if (argc == 2 && std::string{argv[1]} == "--tables") {
    print_tables();
    return 0;
  }
  config::ServerUse use;
  use.listen = {"tcp://127.0.0.1:0"};
  bool serves = true;
  test::FakeEngine::Behaviour behaviour;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--key" && i + 1 < argc) use.api_keys = {argv[++i]};
    else if (word == "--unix" && i + 1 < argc) use.listen.push_back("unix:" + std::string{argv[++i]});
    else if (word == "--fast-timeouts") {
      use.header_timeout_ns = use.body_timeout_ns = use.stall_timeout_ns = 1'000'000'000;
      use.idle_timeout_ns = 2'000'000'000;
      use.drain_timeout_ns = 1'000'000'000;
    } else if (word == "--small") {
      use.max_body_bytes = 1u << 20;
      use.max_connections = 64;
      use.max_header_bytes = 8192;
    } else if (word == "--not-ready") serves = false;
    else return 2;
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const test::FakeTokenizer tokenizer;
  test::FakeEngine engine{tokenizer, behaviour};
  const auto chat_template = text::ChatTemplate::compile(test::kChatML);
  const auto with_tools = text::ChatTemplate::compile(test::kWithTools);
  if (!chat_template.ok() || !with_tools.ok()) return 1;
  config::Diagnostics diagnostics;
  const auto formats = text::AnswerFormats::load(test::source_directory() / "configs" / "formats", diagnostics);
  if (!diagnostics.ok()) {
    std::fprintf(stderr, "%s\n", diagnostics.render().c_str());
    return 1;
  }
  const text::AnswerFormat plain = text::format_of(*chat_template, formats), calling = text::format_of(*with_tools, formats);
  auto server = server::Server::bind(use);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().text.c_str());
    return 1;
  }
  for (const std::string& address : (*server)->addresses()) std::printf("%s\n", address.c_str());
  std::vector<server::Served> models = {test::fake_served(engine, tokenizer, &*chat_template)};
  models.front().format = &plain;
  models.push_back(models.front());
  models.back().name = "tools";
  models.back().chat_template = &*with_tools;
  models.back().format = &calling;
  models.push_back(models.front());
  models.back().name = "bare";
  models.back().chat_template = nullptr;
  models.back().template_error = "the model's chat template cannot be used: template:1:1: unknown filter";
  if (serves && !(*server)->serve(models).ok()) return 1;
  std::printf("ready\n");
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  (*server)->stop();
  return 0;
}
