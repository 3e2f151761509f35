// The slower tier: what comes back from it. Whole blocks in front are asked for at once, then how they end; what pays is read in order and
// placed as it comes.
#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "engine/tier.hpp"
#include "engine/tier_values.hpp"
#include "plugin/registry.hpp"

namespace mekik::engine {

using namespace tier;

namespace {

constexpr std::uint64_t kLeastWaitNs = 500'000'000;    // for a fetch; longer where computing takes longer
constexpr std::uint64_t kFirstWaitNs = 3'000'000'000;  // before anything is known of computing: at a start disks are cold, too
constexpr std::uint64_t kSaidEveryNs = 60'000'000'000;

}  // namespace

void Tier::fetch(const Sequence& s, std::uint64_t now_ns) {
  if (!on_ || s.state != SequenceState::waiting || s.scoring() || s.request->request.vector) return;
  Fetch& fetch = fetches_.emplace_back();
  fetch.question.tier = this;
  fetch.sequence = s.id;
  fetch.stopped_at = s.stopped_at;
  fetch.tokens.assign(s.tokens.begin(), s.tokens.end() - 1);
  fetch.keys.push_back(prefixes_.root_of(s.request->request));
  look_in_memory(fetch);
  const std::uint32_t block = runtime_.limits.block_tokens;
  const std::uint64_t token_ns = prefixes_.token_ns();
  fetch.deadline_ns =
      now_ns + (token_ns == 0 ? kFirstWaitNs : std::max(kLeastWaitNs, token_ns * (fetch.tokens.size() + 1 - fetch.in_memory * block)));
  const std::size_t whole = (fetch.stopped_at > 0 ? fetch.stopped_at : fetch.tokens.size()) / block;
  for (std::size_t b = fetch.in_memory; b < whole; ++b) {
    const auto tokens = std::span{fetch.tokens}.subspan(b * block, block);
    if (!runtime_.groups.empty())
      fetch.question.values.push_back(
          {What::node, fetch.keys.back(), static_cast<std::uint32_t>(b * block), {tokens.begin(), tokens.end()}});
    fetch.keys.push_back(PrefixIndex::key(fetch.keys.back(), tokens));
  }
  if (fetch.question.values.empty()) ask_ends(fetch);
  else ask(fetch, true);
  if (!fetch.asking && fetch.wanted.empty()) fetches_.pop_back();  // all is in memory
}

// Whether whoever goes on where a preempted sequence stopped sees this block.
bool Tier::needed(const Fetch& fetch, std::uint32_t group, std::uint32_t block) const {
  const std::uint64_t window = runtime_.groups[group].window, next = std::uint64_t{fetch.stopped_at} + 1;
  return window == 0 || next <= window || (std::uint64_t{block} + 1) * runtime_.limits.block_tokens > next - window;
}

bool Tier::lacks(const Fetch& fetch, const PrefixIndex::Node& node, std::uint32_t block) const {
  if (fetch.stopped_at == 0) return false;
  for (std::uint32_t g = 0; g < node.blocks.size(); ++g)
    if (!node.blocks[g] && needed(fetch, g, block)) return true;
  return false;
}

// What a preempted sequence still finds must not be given up for what it does not.
void Tier::pin(Fetch& fetch, const PrefixIndex::Node& node) {
  if (fetch.stopped_at == 0) return;
  for (std::uint32_t g = 0; g < node.blocks.size(); ++g)
    if (node.blocks[g]) fetch.pins.emplace_back(g, node.blocks[g].share());
}

void Tier::look_in_memory(Fetch& fetch) {
  const std::uint32_t block = runtime_.limits.block_tokens;
  if (runtime_.groups.empty()) return;
  while ((fetch.in_memory + 1) * std::size_t{block} <= fetch.tokens.size()) {
    const Key next = PrefixIndex::key(fetch.keys.back(), std::span{fetch.tokens}.subspan(std::size_t{fetch.in_memory} * block, block));
    const PrefixIndex::Node* node = prefixes_.node(next);
    if (node == nullptr || lacks(fetch, *node, fetch.in_memory)) return;
    pin(fetch, *node);
    fetch.keys.push_back(next);
    ++fetch.in_memory;
  }
}

void Tier::ask(Fetch& fetch, bool chain) {
  Question& q = fetch.question;
  q.done = false;
  q.keys.clear();
  for (const Value& value : q.values) q.keys.push_back(key_of(value));
  q.known.assign(q.keys.size(), {});
  fetch.asking = true;
  const auto& table = *runtime_.cache.operator->();
  auto* self = runtime_.cache.get();
  if (MEKIK_HAS(mekik_cache_policy, &table, ask) && table.ask != nullptr) {
    const auto code =
        table.ask(self, q.keys.data(), static_cast<std::uint32_t>(q.keys.size()), chain, q.known.data(), sizeof q.known[0], &completed, &q);
    if (code == MEKIK_OK) return;
    failed("looked for", code);
  } else {
    for (std::size_t i = 0; i < q.keys.size(); ++i)
      if (table.has(self, &q.keys[i], &q.known[i].bytes, &q.known[i].expected_ns) != 1) {
        q.known[i] = {};
        if (chain) break;
      }
  }
  q.done = true;
}

void Tier::answered(Fetch& fetch) {
  Question& q = fetch.question;
  fetch.asking = false;
  for (std::size_t i = 0; i < q.known.size(); ++i) {
    const auto [bytes, expected_ns] = q.known[i];
    const bool good = q.status == MEKIK_OK && bytes >= sizeof(Head) && bytes <= kInFlight;
    q.values[i].bytes = good ? bytes : 0;
    q.values[i].expected_ns = expected_ns;
  }
  switch (fetch.stage) {
    case Stage::blocks:
      for (Value& value : q.values) {
        if (value.bytes == 0) break;
        fetch.nodes.push_back(std::move(value));
      }
      return ask_ends(fetch);
    case Stage::ends:
      return choose(fetch);
    case Stage::rest:
      for (Value& value : q.values)
        if (value.bytes > 0) fetch.wanted.push_back(std::move(value));
  }
}

// How a preempted sequence stopped is known; how others went on behind the blocks a note says, and which states there are.
void Tier::ask_ends(Fetch& fetch) {
  Question& q = fetch.question;
  const std::uint32_t block = runtime_.limits.block_tokens;
  const std::size_t whole = runtime_.groups.empty() ? fetch.keys.size() - 1 : fetch.in_memory + fetch.nodes.size();
  const auto tokens_of = [&](std::size_t from, std::size_t to) {
    return std::vector<std::int32_t>(fetch.tokens.begin() + static_cast<std::ptrdiff_t>(from),
                                     fetch.tokens.begin() + static_cast<std::ptrdiff_t>(to));
  };
  fetch.stage = Stage::ends;
  q.values.clear();
  const std::size_t stop = fetch.stopped_at, last = stop == 0 ? 0 : (stop - 1) / block;
  if (stop > 0 && whole == stop / block) {
    const auto tail = [&](What what) {
      return Value{what, fetch.keys[last], static_cast<std::uint32_t>(last * block), tokens_of(last * block, stop)};
    };
    const auto length = stop - last * block;
    const PrefixIndex::Node* node = prefixes_.node(PrefixIndex::key(fetch.keys[last], tokens_of(last * block, stop)));
    const bool has = node != nullptr && !lacks(fetch, *node, static_cast<std::uint32_t>(last));
    if (has) pin(fetch, *node);
    const bool state =
        node != nullptr && std::any_of(node->states.begin(), node->states.end(), [&](const auto& s) { return s.tokens == length; });
    if ((has || stop % block == 0) && (state || !runtime_.slots) && fetch.nodes.empty()) return;  // all of it is in memory
    if (!has && stop % block != 0 && !runtime_.groups.empty()) q.values.push_back(tail(What::node));
    if (runtime_.slots && !state) q.values.push_back(tail(What::state));
    if (q.values.empty()) return choose(fetch);
  }
  const auto rest = std::span{fetch.tokens}.subspan(std::min(whole * block, fetch.tokens.size()));
  if (stop == 0 && fetch.nodes.empty() && prefixes_.covers(fetch.keys[whole], rest)) return;  // so is this
  for (std::size_t b = whole;; --b) {
    q.values.push_back({What::note, fetch.keys[b], static_cast<std::uint32_t>(b * block), {}});
    if (!runtime_.slots || b == 0) break;
    q.values.push_back(
        {What::state, fetch.keys[b - 1], static_cast<std::uint32_t>((b - 1) * block), tokens_of((b - 1) * block, b * block)});
  }
  ask(fetch, false);
}

// What is to be read, if that takes less time than computing.
void Tier::choose(Fetch& fetch) {
  const std::uint32_t block = runtime_.limits.block_tokens;
  auto& values = fetch.question.values;
  fetch.stage = Stage::rest;
  std::vector<Value> ends;
  std::size_t n = 0;
  // What a preempted sequence had behind its whole blocks, if all of it is there.
  for (; n < values.size() && values[n].what != What::note; ++n) {}
  const bool exact =
      n > 0 && std::all_of(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n), [](const Value& v) { return v.bytes > 0; });
  if (exact || values.empty()) {
    for (std::size_t i = 0; i < n; ++i) ends.push_back(std::move(values[i]));
  } else {
    std::size_t blocks = 0;
    bool note = false;
    for (std::size_t i = n; i < values.size(); ++i) {
      Value& value = values[i];
      if (value.bytes == 0 || (value.what == What::note && note)) continue;
      note = note || value.what == What::note;
      blocks = std::max<std::size_t>(blocks, (value.at + value.tokens.size()) / block);
      const bool state = value.what == What::state;
      ends.push_back(std::move(value));
      if (state) break;
    }
    if (runtime_.slots) fetch.nodes.resize(std::min(fetch.nodes.size(), blocks - std::min<std::size_t>(blocks, fetch.in_memory)));
  }
  std::uint64_t expected = 0;
  for (auto* part : {&fetch.nodes, &ends})
    for (Value& value : *part) {
      expected += value.expected_ns;
      fetch.wanted.push_back(std::move(value));
    }
  std::stable_sort(fetch.wanted.begin(), fetch.wanted.end(), [](const Value& a, const Value& b) {
    const auto end = [](const Value& v) { return v.at + v.tokens.size(); };
    return end(a) != end(b) ? end(a) < end(b) : a.what < b.what;
  });
  const std::size_t from = runtime_.slots ? 0 : std::size_t{fetch.in_memory} * block;
  const std::size_t to = fetch.wanted.empty() ? from : fetch.wanted.back().at + block;
  const std::uint64_t compute = prefixes_.token_ns() * (std::max(from, to) - from);
  if (compute > 0 && expected > compute) give_up(fetch);
  fetch.chosen_ns = runtime_.clock->now_ns();
}

// The blocks that a preempted sequence will need, so that nobody else begins with them.
bool Tier::take(Fetch& fetch, Value& value) {
  if (fetch.stopped_at == 0 || value.what != What::node) return true;
  value.blocks.resize(runtime_.groups.size());
  for (std::uint32_t g = 0; g < value.blocks.size(); ++g) {
    if (!needed(fetch, g, value.at / runtime_.limits.block_tokens)) continue;
    value.blocks[g] = hooks_.take_block(g);
    if (!value.blocks[g]) return false;
  }
  return true;
}

// Starts to read the next values, as far as there is room for what is on its way.
void Tier::begin(Fetch& fetch) {
  while (!fetch.wanted.empty()) {
    Value& value = fetch.wanted.front();
    if (in_flight() + value.bytes > kInFlight) return;
    if (!take(fetch, value)) return fetch.wanted.clear();
    Operation& o = fetch.operations.emplace_back();
    o.tier = this;
    o.value = std::move(value);
    fetch.wanted.pop_front();
    o.bytes = o.value.bytes;
    o.memory = std::make_unique_for_overwrite<std::uint8_t[]>(o.bytes);
    const mekik_key key = key_of(o.value);
    const auto code = runtime_.cache->fetch(runtime_.cache.get(), &key, o.memory.get(), o.bytes, &completed, &o);
    if (code == MEKIK_OK) continue;
    failed("read", code);
    fetch.operations.pop_back();
    return fetch.wanted.clear();
  }
}

// A note says which node lies behind its parent: as much of it as the prompt has in common is fetched.
void Tier::read_note(Fetch& fetch, const Operation& note) {
  Head head{};
  std::memcpy(&head, note.memory.get(), sizeof head);
  const std::uint64_t words = std::uint64_t{head.n_tokens} + head.n_states;
  if (head.n_tokens > runtime_.limits.block_tokens || head.n_states > head.n_tokens || body(words) > note.bytes) return;
  std::vector<std::int32_t> tokens(words);
  std::memcpy(tokens.data(), note.memory.get() + sizeof head, words * sizeof(std::int32_t));
  const std::vector<std::int32_t> states(tokens.begin() + head.n_tokens, tokens.end());
  tokens.resize(head.n_tokens);
  const std::uint32_t at = note.value.at;
  const auto next = std::span{fetch.tokens}.subspan(std::min<std::size_t>(at, fetch.tokens.size()));
  const auto same = std::mismatch(tokens.begin(), tokens.end(), next.begin(), next.end()).first - tokens.begin();
  if (same == 0) return;
  std::int32_t state = 0;
  for (const std::int32_t n : states)
    if (n <= same && n > state) state = n;
  if (runtime_.slots && state == 0) return;
  auto& values = fetch.question.values;
  values.clear();
  const Key& parent = note.value.parent;
  if (!runtime_.groups.empty() && prefixes_.node(PrefixIndex::key(parent, tokens)) == nullptr)
    values.push_back({What::node, parent, at, tokens});
  tokens.resize(static_cast<std::size_t>(state));
  if (runtime_.slots) values.push_back({What::state, parent, at, tokens});
  if (!values.empty()) ask(fetch, true);
}

// Whether a value is what was asked for.
bool Tier::check(const Operation& o) const {
  Head head{};
  std::memcpy(&head, o.memory.get(), sizeof head);
  const Value& v = o.value;
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0 || head.what != static_cast<std::uint32_t>(v.what) || head.bytes != o.bytes)
    return false;
  if (std::memcmp(head.parent, v.parent.data(), v.parent.size()) != 0) return false;
  if (v.what == What::note) return true;
  if (head.n_tokens != v.tokens.size() || body(head.n_tokens) > o.bytes) return false;
  if (std::memcmp(o.memory.get() + sizeof head, v.tokens.data(), v.tokens.size() * sizeof(std::int32_t)) != 0) return false;
  std::uint64_t bytes = body(head.n_tokens);
  for (std::size_t g = 0; g < runtime_.groups.size(); ++g)
    if ((head.groups >> g & 1) != 0) bytes += up(runtime_.plan.block_bytes[g]);
  if (v.what == What::state) bytes += up(runtime_.plan.slot_bytes);
  return bytes == o.bytes;
}

// Brings a value into memory of the backend and into the index. False: what is behind it is of no use.
bool Tier::place(Fetch& fetch, Operation& o, std::uint64_t now_ns) {
  Head head{};
  std::memcpy(&head, o.memory.get(), sizeof head);
  const Value& v = o.value;
  const std::uint8_t* from = o.memory.get() + body(head.n_tokens);
  const auto write = [&](std::uint32_t what, std::uint32_t group, const Lease& to, std::uint64_t bytes) {
    std::uint64_t ticket = 0;
    const auto code = runtime_.backend->state_write(runtime_.exec, what, group, to.id(), from, bytes, &ticket);
    return plugin::to_status(code, "backend").ok() && hooks_.wait(ticket).ok();
  };
  if (v.what == What::state) {
    Lease slot = hooks_.take_slot();
    if (!slot || !write(MEKIK_WHAT_SLOT, 0, slot, runtime_.plan.slot_bytes)) return false;
    return prefixes_.place_state(fetch.keys[0], v.parent, std::span{fetch.tokens}.first(v.at + v.tokens.size()), std::move(slot), now_ns);
  }
  std::vector<Lease> blocks(runtime_.groups.size());
  for (std::uint32_t g = 0; g < blocks.size(); ++g) {
    if ((head.groups >> g & 1) == 0) continue;
    if (fetch.stopped_at == 0) blocks[g] = hooks_.take_block(g);
    else blocks[g] = std::move(o.value.blocks[g]);
    if (!blocks[g] && (fetch.stopped_at == 0 || needed(fetch, g, v.at / runtime_.limits.block_tokens))) return false;
    if (blocks[g] && !write(MEKIK_WHAT_BLOCK, g, blocks[g], runtime_.plan.block_bytes[g])) return false;
    from += up(runtime_.plan.block_bytes[g]);
  }
  if (v.at > 0 && prefixes_.node(v.parent) == nullptr) return false;
  PrefixIndex::Node* node = prefixes_.place(v.parent, v.tokens, std::move(blocks), now_ns);
  node->offered = true;
  pin(fetch, *node);
  telemetry_.fetched(o.bytes);
  return true;
}

// What has come, in order.
void Tier::place(Fetch& fetch, std::uint64_t& room, std::uint64_t now_ns) {
  while (room > 0 && !fetch.operations.empty() && fetch.operations.front().done) {
    Operation& o = fetch.operations.front();
    bool good = o.status == MEKIK_OK;
    if (!good && o.status != MEKIK_E_INVALID && o.status != MEKIK_E_CANCELLED) failed("read", o.status);
    if (good && !(good = check(o))) failed("read", MEKIK_E_INVALID);
    fetch.last_done_ns = std::max(fetch.last_done_ns, o.done_ns);
    if (good && o.value.what == What::note) {
      read_note(fetch, o);
    } else if (good) {
      const auto began = runtime_.clock->now_ns();
      good = place(fetch, o, now_ns);
      fetch.placing_ns += runtime_.clock->now_ns() - began;
      fetch.placed_bytes += good ? o.bytes : 0;
    }
    room -= std::min(room, o.bytes);
    if (!good) return give_up(fetch);
    fetch.operations.pop_front();
  }
}

// Nobody waits for it any more, and it holds nothing. It is over when its calls are.
void Tier::give_up(Fetch& fetch) {
  fetch.waited_for = false;
  fetch.wanted.clear();
  fetch.pins.clear();
  if (fetch.asking && !fetch.question.done) runtime_.cache->cancel(runtime_.cache.get(), &fetch.question);
  for (Operation& o : fetch.operations) {
    o.value.blocks.clear();
    if (!o.done) runtime_.cache->cancel(runtime_.cache.get(), &o);
  }
}

// True: it is over.
bool Tier::advance(Fetch& fetch, std::uint64_t& room, std::uint64_t now_ns) {
  while (fetch.waited_for) {
    if (fetch.asking && !fetch.question.done) break;
    if (fetch.asking) answered(fetch);
    if (fetch.asking) continue;
    begin(fetch);
    place(fetch, room, now_ns);
    if (fetch.asking && fetch.question.done) continue;
    if (!fetch.waited_for || fetch.asking || !fetch.wanted.empty() || !fetch.operations.empty()) break;
    costs_.read(fetch.placed_bytes, fetch.last_done_ns - std::min(fetch.last_done_ns, fetch.chosen_ns) + fetch.placing_ns, now_ns);
    return true;
  }
  if (fetch.waited_for && now_ns > fetch.deadline_ns) {
    if (late_said_ns_ == 0 || now_ns - late_said_ns_ > kSaidEveryNs) {
      late_said_ns_ = now_ns;
      log::warning("cache", "the slower tier is late; what it has of a prompt is computed instead");
    }
    telemetry_.tier_failed();
    give_up(fetch);
  }
  return !fetch.waited_for && (!fetch.asking || fetch.question.done) &&
         std::all_of(fetch.operations.begin(), fetch.operations.end(), [](const Operation& o) { return o.done.load(); });
}

}  // namespace mekik::engine
