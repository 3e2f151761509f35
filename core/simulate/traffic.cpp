#include "simulate/traffic.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "metrics/names.hpp"
#include "simulate/random.hpp"

namespace mekik::simulate {
namespace {

constexpr double kSecond = 1e9;
constexpr std::uint64_t kRetryNs = 1'000'000'000;  // what a server tells who finds its queue full
enum Purpose : std::uint64_t { kTenant = 1, kPrefixed, kPrefix, kPrompt, kAnswer, kText, kCancel, kCancelAfter, kThink, kTime, kSeed };

std::uint64_t ns_of(double mean_ns, double factor) { return static_cast<std::uint64_t>(std::llround(std::min(mean_ns * factor, 9e18))); }

// Moves `at` (seconds) on until `need` arrivals are expected, at a rate that changes; false: that is after `end`.
bool advance(const Load& load, double need, double& at) {
  const double begin = static_cast<double>(load.begin_ns) / kSecond, end = static_cast<double>(load.end_ns) / kSecond;
  const std::size_t parts = std::max<std::size_t>(1, load.shape.size());
  const double length = (end - begin) / static_cast<double>(parts);
  for (auto part = static_cast<std::size_t>(std::max(0.0, (at - begin) / length)); part < parts; ++part) {
    const double until = part + 1 == parts ? end : begin + length * static_cast<double>(part + 1);
    if (until <= at) continue;
    const double rate = load.rate * (load.shape.empty() ? 1 : load.shape[part]);
    if (rate > 0 && at + need / rate <= until) {
      at += need / rate;
      return true;
    }
    need -= (until - at) * rate;
    at = until;
  }
  return false;
}

}  // namespace

void Tally::add(const Tally& o) {
  for (auto member : {&Tally::sent, &Tally::finished, &Tally::cancelled, &Tally::failed, &Tally::refused_queue, &Tally::refused_scheduler,
                      &Tally::invalid, &Tally::given_up, &Tally::prompt_tokens, &Tally::cached_tokens, &Tally::generated_tokens,
                      &Tally::in_time, &Tally::with_targets})
    this->*member += o.*member;
  for (auto member : {&Tally::queue, &Tally::ttft, &Tally::tpot, &Tally::total, &Tally::gap})
    (this->*member).insert((this->*member).end(), (o.*member).begin(), (o.*member).end());
  if (first_error.empty()) first_error = o.first_error;
}

// A client with a chat of one or more turns.
struct Traffic::Chat {
  std::uint32_t load = 0, tenant = 0;
  std::uint64_t number = 0, user = 0;  // user + 1 of a closed load; 0: none
  std::int32_t priority = 0;
  std::uint32_t turn = 0, turns = 1, answer = 0, retries = 0;
  std::vector<std::int32_t> tokens;  // so far, the turn's own included
};

// A request that is under way.
struct Traffic::Sent {
  std::shared_ptr<Chat> chat;
  engine::RequestId id = 0;
  std::uint64_t at = 0, last_token_ns = 0, gap_ns = 0;
  std::vector<std::int32_t> answer;  // where a further turn needs it
  bool over = false;
};

Traffic::Traffic(const Scenario& scenario, std::uint32_t context, std::uint32_t vocabulary, std::uint64_t epoch_ns, Engine engine)
    : scenario_{scenario}, context_{context}, vocabulary_{vocabulary}, epoch_ns_{epoch_ns}, engine_{std::move(engine)} {
  std::vector<std::uint32_t> numbers;
  for (const Load& load : scenario.loads) {
    tallies_.emplace_back().name = load.name;
    for (std::size_t i = 0; i < load.tenants.size(); ++i) numbers.push_back(load.first_tenant + static_cast<std::uint32_t>(i));
    for (const Arrival& a : load.trace) numbers.push_back(load.first_tenant + a.tenant);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  for (const auto number : numbers) tenants_.emplace_back(number, Tally{}).second.name = "tenant " + std::to_string(number);
  salted_ = numbers.size() > 1 && !scenario.share_prefixes;
  sources_.resize(scenario.loads.size());
  for (std::uint32_t l = 0; l < scenario.loads.size(); ++l) {
    const Load& load = scenario.loads[l];
    sources_[l].at_seconds = static_cast<double>(load.begin_ns) / kSecond;
    if (load.arrivals != Arrivals::closed || !load.trace.empty()) {
      schedule(l);
      continue;
    }
    for (std::uint32_t user = 0; user < load.users && (load.requests == 0 || user < load.requests); ++user) {
      auto chat = chat_of(l, sources_[l].made++, user + 1);
      push(
          {load.begin_ns + ns_of(static_cast<double>(load.think_ns), unit(bits(*chat, kTime))), 0, What::ask, l, std::move(chat), nullptr});
    }
  }
}

Traffic::~Traffic() = default;

std::uint64_t Traffic::bits(const Chat& chat, std::uint64_t purpose) const {
  return mix(scenario_.seed, chat.load, chat.number, chat.turn, purpose);
}

void Traffic::push(Due due) {
  due.order = order_++;
  due_.push(std::move(due));
}

// The next arrival of a load that is not closed.
void Traffic::schedule(std::uint32_t l) {
  const Load& load = scenario_.loads[l];
  Source& source = sources_[l];
  if (load.requests > 0 && source.made >= load.requests) return;
  if (!load.trace.empty()) {
    if (source.traced >= load.trace.size()) return;
    const std::uint64_t at = load.begin_ns + load.trace[source.traced].at_ns;
    if (at < load.end_ns) push({at, 0, What::arrive, l, nullptr, nullptr});
    return;
  }
  const double need = load.arrivals == Arrivals::poisson ? exponential(mix(scenario_.seed, l, source.made, kTime)) : 1;
  if (advance(load, need, source.at_seconds))
    push({static_cast<std::uint64_t>(std::llround(source.at_seconds * kSecond)), 0, What::arrive, l, nullptr, nullptr});
}

void Traffic::arrive(std::uint32_t l, std::uint64_t now) {
  const Load& load = scenario_.loads[l];
  Source& source = sources_[l];
  const std::uint32_t burst = load.trace.empty() ? load.burst : 1;
  for (std::uint32_t i = 0; i < burst && (load.requests == 0 || source.made < load.requests); ++i)
    push({now, 0, What::ask, l, chat_of(l, source.made++, 0), nullptr});
  if (!load.trace.empty()) ++source.traced;
  schedule(l);
}

std::shared_ptr<Traffic::Chat> Traffic::chat_of(std::uint32_t l, std::uint64_t number, std::uint64_t user) {
  const Load& load = scenario_.loads[l];
  auto chat = std::make_shared<Chat>();
  chat->load = l;
  chat->number = number;
  chat->user = user;
  chat->turns = load.turns;
  chat->priority = load.priority;
  std::uint32_t prefix = 0;  // + 1
  if (load.trace.empty()) {
    double sum = 0, at = unit(bits(*chat, kTenant));
    for (const double part : load.tenants) sum += part;
    for (at *= sum; chat->tenant + 1 < load.tenants.size() && at >= load.tenants[chat->tenant]; ++chat->tenant)
      at -= load.tenants[chat->tenant];
    if (load.prefix_groups > 0 && unit(bits(*chat, kPrefixed)) < load.prefix_share)
      prefix = 1 + static_cast<std::uint32_t>(unit(bits(*chat, kPrefix)) * load.prefix_groups);
  } else {
    const Arrival& a = load.trace[sources_[l].traced];
    chat->tenant = a.tenant;
    prefix = load.prefix_groups > 0 && a.prefix > 0 ? 1 + (a.prefix - 1) % load.prefix_groups : 0;
    if (a.has_priority) chat->priority = a.priority;
  }
  chat->tenant += load.first_tenant;
  for (std::uint32_t i = 0; prefix > 0 && i < load.prefix_tokens; ++i)
    chat->tokens.push_back(static_cast<std::int32_t>(mix(scenario_.seed, l, prefix, i, kPrefix) % vocabulary_));
  return chat;
}

// Adds what the client says in this turn, unless that is there.
engine::Request Traffic::request_of(Chat& chat) const {
  const Load& load = scenario_.loads[chat.load];
  if (chat.answer == 0) {
    const Lengths& said = chat.turn == 0 ? load.prompt : load.said;
    std::uint32_t n = 0;
    if (load.trace.empty()) {
      n = said.draw(unit(bits(chat, kPrompt)), normal(bits(chat, kPrompt)));
      chat.answer = load.answer.draw(unit(bits(chat, kAnswer)), normal(bits(chat, kAnswer)));
    } else {
      n = load.trace[chat.number].prompt;
      chat.answer = load.trace[chat.number].answer;
    }
    for (std::uint32_t i = 0; i < n; ++i) chat.tokens.push_back(static_cast<std::int32_t>(mix(bits(chat, kText), i) % vocabulary_));
  }
  engine::Request r;
  r.prompt = chat.tokens;
  r.max_tokens = chat.answer;
  r.ignore_eos = true;
  r.sampler_json = "{\"temperature\":0}";
  r.seed = bits(chat, kSeed);
  r.tenant = chat.tenant;
  r.salt = salted_ ? chat.tenant : 0;
  r.priority = chat.priority;
  r.ttft_ns = load.ttft_ns;
  r.tpot_ns = load.tpot_ns;
  r.id = load.name + "-" + std::to_string(chat.number) + "-" + std::to_string(chat.turn);
  return r;
}

std::uint64_t Traffic::next_ns() const {
  const std::lock_guard lock{mutex_};
  return due_.empty() ? kNever : due_.top().at;
}

bool Traffic::done() const {
  const std::lock_guard lock{mutex_};
  return due_.empty() && open_ == 0;
}

void Traffic::wait(std::uint64_t now_ns, std::uint64_t until_ns) {
  std::unique_lock lock{mutex_};
  const std::uint64_t ends = ends_;
  changed_.wait_for(lock, std::chrono::nanoseconds{until_ns - std::min(now_ns, until_ns)}, [&] { return ends_ != ends; });
}

void Traffic::release(std::uint64_t now_ns) {
  while (true) {
    Due due;
    {
      const std::lock_guard lock{mutex_};
      if (due_.empty() || due_.top().at > now_ns) return;
      due = due_.top();
      due_.pop();
      if (due.what == What::arrive) {
        arrive(due.load, due.at);
        continue;
      }
      if (due.what == What::cancel && due.sent->over) continue;
    }
    if (due.what == What::cancel) engine_.cancel(due.sent->id);
    else ask(due.chat, now_ns);
  }
}

void Traffic::ask(const std::shared_ptr<Chat>& chat, std::uint64_t now) {
  const Load& load = scenario_.loads[chat->load];
  engine::Request request = request_of(*chat);
  if (load.deadline_ns > 0) request.deadline_ns = epoch_ns_ + now + load.deadline_ns;
  auto sent = std::make_shared<Sent>();
  sent->chat = chat;
  sent->at = now;
  {
    const std::lock_guard lock{mutex_};
    ++open_;
  }
  auto id = engine_.submit(std::move(request), [this, sent](const engine::Event& event) { happened(sent, event); });
  const std::lock_guard lock{mutex_};
  Tally counted;
  counted.sent = 1;
  if (id) {
    sent->id = *id;
    if (load.cancel > 0 && unit(bits(*chat, kCancel)) < load.cancel)
      push({now + ns_of(static_cast<double>(load.cancel_after_ns), exponential(bits(*chat, kCancelAfter))), 0, What::cancel, chat->load,
            nullptr, sent});
  } else {
    --open_;
    ++ends_;
    if (id.status().code == Code::busy) {
      ++counted.refused_queue;
      refused(chat, now, kRetryNs, counted);
    } else {
      ++counted.invalid;
      counted.first_error = id.status().text;
      next_turn(chat, now, false);
    }
  }
  tallies_[chat->load].add(counted);
  tally(*chat).add(counted);
}

Tally& Traffic::tally(const Chat& chat) {
  return std::lower_bound(tenants_.begin(), tenants_.end(), chat.tenant, [](const auto& t, std::uint32_t n) { return t.first < n; })
      ->second;
}

// The client tries again, or goes away.
void Traffic::refused(const std::shared_ptr<Chat>& chat, std::uint64_t now, std::uint64_t retry_ns, Tally& counted) {
  if (chat->retries < scenario_.loads[chat->load].retries) {
    ++chat->retries;
    push({now + std::max<std::uint64_t>(retry_ns, 1), 0, What::ask, chat->load, chat, nullptr});
    return;
  }
  ++counted.given_up;
  next_turn(chat, now, false);
}

// Of a chat, or of a user who begins another one.
void Traffic::next_turn(const std::shared_ptr<Chat>& chat, std::uint64_t now, bool answered) {
  const Load& load = scenario_.loads[chat->load];
  const double think = exponential(bits(*chat, kThink));
  if (answered && chat->turn + 1 < chat->turns && chat->tokens.size() < context_) {
    ++chat->turn;
    chat->answer = chat->retries = 0;
    push({now + ns_of(static_cast<double>(load.turn_think_ns), think), 0, What::ask, chat->load, chat, nullptr});
    return;
  }
  if (chat->user == 0) return;
  Source& source = sources_[chat->load];
  const std::uint64_t at = now + std::max<std::uint64_t>(ns_of(static_cast<double>(load.think_ns), think), answered ? 0 : 1'000'000);
  if (at >= load.end_ns || (load.requests > 0 && source.made >= load.requests)) return;
  push({at, 0, What::ask, chat->load, chat_of(chat->load, source.made++, chat->user), nullptr});
}

void Traffic::happened(const std::shared_ptr<Sent>& sent, const engine::Event& event) {
  if (!event.tokens.empty()) {
    if (sent->last_token_ns > 0) sent->gap_ns = std::max(sent->gap_ns, event.timings.total - sent->last_token_ns);
    sent->last_token_ns = event.timings.total;
    if (sent->chat->turn + 1 < sent->chat->turns)
      for (const auto& token : event.tokens) sent->answer.push_back(token.id);
  }
  if (event.finish != engine::Finish::none) ended(sent, event);
}

void Traffic::ended(const std::shared_ptr<Sent>& sent, const engine::Event& event) {
  const auto seconds = [](std::uint64_t ns) { return static_cast<double>(ns) / kSecond; };
  const auto& chat = sent->chat;
  const Load& load = scenario_.loads[chat->load];
  const std::uint64_t now = sent->at + event.timings.total;
  const bool answered = event.finish == engine::Finish::length || event.finish == engine::Finish::stop;
  Tally counted;
  counted.generated_tokens = event.usage.completion_tokens;
  const std::lock_guard lock{mutex_};
  sent->over = true;
  if (event.retry_ns > 0) {
    ++counted.refused_scheduler;
    refused(chat, now, event.retry_ns, counted);
  } else {
    ++(answered ? counted.finished : event.finish == engine::Finish::cancelled ? counted.cancelled : counted.failed);
    counted.prompt_tokens = event.usage.prompt_tokens;
    counted.cached_tokens = event.usage.cached_tokens;
    if (!answered && event.finish != engine::Finish::cancelled) counted.first_error = event.error.text;
  }
  if (event.usage.completion_tokens > 0) counted.ttft.push_back(seconds(event.timings.ttft));
  const auto tpot = metrics::tpot_seconds(event.timings.decode, event.usage.completion_tokens);
  if (answered) {
    counted.queue.push_back(seconds(event.timings.queued));
    counted.total.push_back(seconds(event.timings.total));
    if (tpot) counted.tpot.push_back(*tpot);
    if (tpot) counted.gap.push_back(seconds(sent->gap_ns));
    counted.with_targets = load.ttft_ns > 0 || load.tpot_ns > 0 ? 1 : 0;
    const bool in_time =
        (load.ttft_ns == 0 || event.timings.ttft <= load.ttft_ns) && (load.tpot_ns == 0 || !tpot || *tpot <= seconds(load.tpot_ns));
    counted.in_time = counted.with_targets > 0 && in_time ? 1 : 0;
  }
  tallies_[chat->load].add(counted);
  tally(*chat).add(counted);
  chat->tokens.insert(chat->tokens.end(), sent->answer.begin(), sent->answer.end());
  if (event.retry_ns == 0) next_turn(chat, now, answered);
  last_ns_ = std::max(last_ns_, now);
  --open_;
  ++ends_;
  changed_.notify_all();
}

std::vector<Tally> Traffic::tallies() const {
  const std::lock_guard lock{mutex_};
  return tallies_;
}

std::vector<std::pair<std::uint32_t, Tally>> Traffic::tenants() const {
  const std::lock_guard lock{mutex_};
  return tenants_;
}

}  // namespace mekik::simulate
