// A tokenizer of bytes and an engine that says what the prompt tells it to: the server's tests need no model.
#pragma once
#include <mekik/plugin.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "engine/engine.hpp"
#include "server/server.hpp"

namespace mekik::test {

// Ids 0..255 are bytes, then <bos>, <eos>, <|im_start|>, <|im_end|>.
class FakeTokenizer final : public text::Tokenizer {
 public:
  static constexpr std::int32_t kBos = 256, kEos = 257, kFirstSpecial = 256;
  explicit FakeTokenizer(bool adds_bos = false) : adds_bos_{adds_bos} {
    for (int i = 0; i < 256; ++i) spelled_.emplace_back(1, static_cast<char>(i));
    for (const char* special : {"<bos>", "<eos>", "<|im_start|>", "<|im_end|>"}) spelled_.emplace_back(special);
  }
  using text::Tokenizer::encode;
  std::vector<std::int32_t> encode(std::span<const text::TextPart> parts, bool add_special) const override {
    std::vector<std::int32_t> out;
    if (add_special && adds_bos_) out.push_back(kBos);
    for (const text::TextPart& part : parts)
      for (std::size_t at = 0; at < part.text.size();) {
        const std::int32_t special = part.trusted ? special_at(part.text, at) : -1;
        out.push_back(special >= 0 ? special : static_cast<unsigned char>(part.text[at]));
        at += special >= 0 ? spelled_[static_cast<std::size_t>(special)].size() : 1;
      }
    return out;
  }
  std::uint32_t size() const override { return static_cast<std::uint32_t>(spelled_.size()); }
  std::string_view piece(std::int32_t id) const override {
    return id < kFirstSpecial ? std::string_view{spelled_[static_cast<std::size_t>(id)]} : std::string_view{};
  }
  std::string_view token(std::int32_t id) const override { return spelled_[static_cast<std::size_t>(id)]; }
  std::uint32_t flags(std::int32_t id) const override { return id >= kFirstSpecial ? text::kTokenSpecial : 0u; }
  std::int32_t bos() const override { return kBos; }
  std::int32_t eos() const override { return kEos; }
  const std::vector<std::int32_t>& ends() const override { return ends_; }
  std::string decode(std::span<const std::int32_t> ids, bool special) const override {
    std::string out;
    for (const std::int32_t id : ids)
      if (special || id < kFirstSpecial) out += spelled_[static_cast<std::size_t>(id)];
    return out;
  }
  std::string kind() const override { return "bytes"; }

 private:
  std::int32_t special_at(std::string_view text, std::size_t at) const {
    for (std::size_t id = kFirstSpecial; id < spelled_.size(); ++id)
      if (text.substr(at, spelled_[id].size()) == spelled_[id]) return static_cast<std::int32_t>(id);
    return -1;
  }
  bool adds_bos_;
  std::vector<std::string> spelled_;
  std::vector<std::int32_t> ends_ = {kEos};
};

// What the prompt makes it do: FORCE(text) answers the text; LONG goes on to max_tokens; PREFILL waits a second before the first
// token; FAIL ends in an internal error whose text must not reach the client. Else it answers a sentence that depends on seed and
// index. Token k has the log-probability -(k % 7) / 8 - 0.125.
class FakeEngine final : public engine::Engine {
 public:
  struct Behaviour {
    std::chrono::microseconds token_time{500};
    std::uint32_t max_running = 4, max_queue = 8;
  };
  FakeEngine(const text::Tokenizer& tokenizer, Behaviour behaviour) : tokenizer_{tokenizer}, behaviour_{behaviour} {
    thread_ = std::thread{[this] { loop(); }};
  }
  ~FakeEngine() override {
    {
      const std::lock_guard lock{mutex_};
      end_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  Result<engine::RequestId> submit(engine::Request request, engine::OnEvent on_event) override {
    const std::lock_guard lock{mutex_};
    if (draining_) return fail(Code::busy, "draining");
    if (jobs_.size() >= behaviour_.max_running + behaviour_.max_queue) return fail(Code::busy, "the queue is full");
    last_ = request;
    Job job;
    job.prompt = tokenizer_.decode(request.prompt, true);
    if (job.prompt.find("PREFILL") != std::string::npos) job.begin = std::chrono::steady_clock::now() + std::chrono::seconds{1};
    for (std::uint32_t i = 0; i < request.n; ++i) job.answers.push_back(plan(request, job.prompt, i));
    job.request = std::move(request);
    job.on_event = std::move(on_event);
    jobs_.emplace(++next_, std::move(job));
    wake_.notify_all();
    return next_;
  }
  void cancel(engine::RequestId id) override {
    const std::lock_guard lock{mutex_};
    if (jobs_.erase(id) != 0) ++aborted;
    wake_.notify_all();
  }
  engine::EngineStats stats() const override {
    const std::lock_guard lock{mutex_};
    engine::EngineStats out;
    out.running = std::min(static_cast<std::uint32_t>(jobs_.size()), behaviour_.max_running);
    out.waiting = static_cast<std::uint32_t>(jobs_.size()) - out.running;
    out.stuck = stuck;
    return out;
  }
  void drain(std::uint64_t timeout_ns) override {
    std::unique_lock lock{mutex_};
    draining_ = true;
    wake_.wait_for(lock, std::chrono::nanoseconds{timeout_ns}, [&] { return jobs_.empty(); });
    for (auto& job : jobs_)
      for (std::uint32_t i = 0; i < job.second.answers.size(); ++i)
        if (!job.second.answers[i].done) finish(job.second, i, engine::Finish::cancelled, {});
    jobs_.clear();
  }
  bool draining() const override { return draining_; }
  Result<Scrape> scrape(std::string_view) override {
    if (!scrapable) return unsupported("no sink");
    return Scrape{"text/plain; version=0.0.4", "# TYPE fake_aborted_total counter\nfake_aborted_total " + std::to_string(aborted) + "\n"};
  }
  engine::Model& model() override { std::abort(); }  // the server never asks

  engine::Request last() const {
    const std::lock_guard lock{mutex_};
    return last_;
  }
  std::atomic<std::uint64_t> aborted{0};
  std::atomic<bool> stuck{false}, scrapable{true};

 private:
  struct AnswerState {
    std::vector<std::int32_t> tokens;
    std::string text;               // all of it, without a stop text and what follows
    std::size_t at = 0, shown = 0;  // tokens made, bytes of text sent
    engine::Finish finish = engine::Finish::stop;
    bool done = false, prompt_sent = false;
  };
  struct Job {
    engine::Request request;
    engine::OnEvent on_event;
    std::string prompt;
    std::vector<AnswerState> answers;
    std::chrono::steady_clock::time_point begin{};
  };

  AnswerState plan(const engine::Request& request, const std::string& prompt, std::uint32_t index) const {
    AnswerState out;
    std::string text = "answer " + std::to_string(index) + " of seed " + std::to_string(request.seed.value_or(next_ * 7919)) + ".";
    const std::size_t force = prompt.rfind("FORCE(");
    if (force != std::string::npos) text = prompt.substr(force + 6, prompt.find(')', force) - force - 6);
    if (prompt.find("LONG") != std::string::npos)
      for (text = "la la "; text.size() < request.max_tokens;) text += text.substr(0, 3072);
    std::size_t cut = std::string::npos;
    for (const std::string& stop : request.stop) cut = std::min(cut, text.find(stop));
    std::size_t length = text.size();
    if (cut != std::string::npos)
      for (const std::string& stop : request.stop)
        if (text.compare(cut, stop.size(), stop) == 0) length = cut + stop.size();
    if (length > request.max_tokens) {
      length = request.max_tokens;
      out.finish = engine::Finish::length;
    }
    for (std::size_t i = 0; i < length; ++i) out.tokens.push_back(static_cast<unsigned char>(text[i]));
    out.text = text.substr(0, std::min(cut, length));
    return out;
  }

  void loop() {
    std::unique_lock lock{mutex_};
    while (!end_) {
      if (jobs_.empty()) wake_.wait(lock, [&] { return end_ || !jobs_.empty(); });
      else wake_.wait_for(lock, behaviour_.token_time);
      std::uint32_t running = 0;
      for (auto job = jobs_.begin(); job != jobs_.end() && running < behaviour_.max_running; ++running) {
        if (job->second.begin <= std::chrono::steady_clock::now()) step(job->second);
        const auto& answers = job->second.answers;
        const bool done = std::all_of(answers.begin(), answers.end(), [](const AnswerState& one) { return one.done; });
        job = done ? jobs_.erase(job) : std::next(job);
      }
      if (jobs_.empty()) wake_.notify_all();
    }
  }

  engine::TokenInfo info(std::int32_t id, std::int32_t logprobs, bool first) const {
    const auto logprob = [](std::int32_t token) { return -static_cast<float>(token % 7) / 8 - 0.125f; };
    engine::TokenInfo out{id, first ? std::nanf("") : logprob(id), {}};
    if (!first)
      for (std::int32_t i = 0; i < logprobs; ++i) out.top.push_back({i == 0 ? id : (id + i) % 256, logprob(id) - static_cast<float>(i)});
    return out;
  }

  void step(Job& job) {
    const engine::Request& request = job.request;
    for (std::uint32_t i = 0; i < job.answers.size(); ++i) {
      AnswerState& answer = job.answers[i];
      if (answer.done) continue;
      if (job.prompt.find("FAIL") != std::string::npos) {
        finish(job, i, engine::Finish::error, internal_error("cannot open /secret/path"));
        continue;
      }
      engine::Event event = blank(job, i);
      if (request.score_prompt && !answer.prompt_sent && i == 0)
        for (std::size_t k = 0; k < request.prompt.size(); ++k) event.prompt.push_back(info(request.prompt[k], request.logprobs, k == 0));
      answer.prompt_sent = true;
      if (answer.at < answer.tokens.size()) event.tokens.push_back(info(answer.tokens[answer.at++], request.logprobs, false));
      // Text goes out up to the last whole character.
      const std::size_t made = std::min(answer.at, answer.text.size());
      std::size_t whole = made;
      while (whole > answer.shown && whole < answer.text.size() && (answer.text[whole] & 0xC0) == 0x80) --whole;
      event.text = answer.text.substr(answer.shown, whole - answer.shown);
      answer.shown = whole;
      event.unsaid = static_cast<std::uint32_t>(answer.at - answer.shown);
      if (answer.at == answer.tokens.size()) {
        event.finish = answer.finish;
        answer.done = true;
      }
      event.usage.completion_tokens = static_cast<std::uint32_t>(answer.at);
      job.on_event(event);
    }
  }

  engine::Event blank(const Job& job, std::uint32_t index) const {
    engine::Event event;
    event.index = index;
    event.usage.prompt_tokens = static_cast<std::uint32_t>(job.request.prompt.size());
    return event;
  }
  void finish(Job& job, std::uint32_t index, engine::Finish why, Status error) {
    engine::Event event = blank(job, index);
    event.finish = why;
    event.error = std::move(error);
    job.answers[index].done = true;
    job.on_event(event);
  }

  const text::Tokenizer& tokenizer_;
  const Behaviour behaviour_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<engine::RequestId, Job> jobs_;
  engine::Request last_;
  engine::RequestId next_ = 0;
  bool end_ = false;
  std::atomic<bool> draining_{false};
  std::thread thread_;
};

// Option rows like those of the usual sampler; the table of functions is never called.
inline const mekik_component& fake_sampler() {
  static constexpr std::array kOptions{
      mekik::opt::real("temperature", "1.0", 0, 2, "Temperature."), mekik::opt::real("top_p", "1.0", 0, 1, "Nucleus."),
      mekik::opt::integer("top_k", "0", 0, 1000000, "Candidates."), mekik::opt::text("logit_bias", "\"\"", "Biases.")};
  static const mekik_component component = [] {
    mekik_component out{};
    out.struct_size = sizeof out;
    out.kind = MEKIK_KIND_SAMPLER;
    out.name = "fake";
    out.version = "1";
    out.summary = "Option rows for tests.";
    out.options = kOptions.data();
    out.n_options = kOptions.size();
    out.option_size = sizeof(mekik_option);
    return out;
  }();
  return component;
}

inline constexpr const char* kChatML =
    "{% for m in messages %}{% if m.role == 'tool' and not m.content %}{{ raise_exception('a tool must say something') }}{% endif %}"
    "{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

// Shows tools and calls, and begins an answer inside of reasoning when `thinks` says so.
inline constexpr const char* kWithTools =
    "{% if tools %}{{ '<|im_start|>system\nCall with <tool_call></tool_call>: ' }}{{ tools | tojson }}{{ '<|im_end|>\n' }}{% endif %}"
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}"
    "{% if m.reasoning_content %}{{ '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ '\n<tool_call>\n{\"name\": \"' + c.function.name + '\", \"arguments\": ' }}"
    "{{ c.function.arguments | tojson }}{{ '}\n</tool_call>' }}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% if thinks %}{{ '<think>\n' }}{% endif %}{% endif %}";

inline server::Served fake_served(engine::Engine& engine, const text::Tokenizer& tokenizer, const text::ChatTemplate* chat_template) {
  server::Served served;
  served.engine = &engine;
  served.name = "fake";
  served.tokenizer = &tokenizer;
  served.chat_template = chat_template;
  served.context = 8192;
  served.vocab = tokenizer.size();
  served.samplers = {&fake_sampler()};
  return served;
}

}  // namespace mekik::test
