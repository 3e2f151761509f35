#include "engine/tier.hpp"

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "plugin/registry.hpp"

namespace mekik::engine {
namespace {

constexpr std::uint64_t kInFlight = std::uint64_t{256} << 20;  // bytes on their way to or from the tier
constexpr std::uint64_t kTurnBytes = std::uint64_t{8} << 20;   // read out beside steps in one turn
constexpr std::uint64_t kLeastWaitNs = 500'000'000;            // for a fetch; longer where computing takes longer
constexpr std::uint64_t kFirstWaitNs = 3'000'000'000;          // before anything is known of computing: at a start disks are cold, too
constexpr std::size_t kMaxOffers = 65536;
constexpr char kMagic[8] = {'m', 'e', 'k', 'i', 'k', 'k', 'v', '1'};

// In front of every value. Behind it the tokens, then the blocks of the groups in `groups`, or a slot; each begins at a multiple of 64.
struct Head {
  char magic[8];
  std::uint32_t what, n_tokens, groups, n_states;  // n_states: of a note, the tokens of the node after which there are states
  std::uint64_t bytes;                             // of all
  std::uint8_t parent[32];
};

std::uint64_t up(std::uint64_t x) { return (x + 63) / 64 * 64; }
std::uint64_t body(std::uint64_t n_words) { return up(sizeof(Head) + n_words * sizeof(std::int32_t)); }

}  // namespace

Tier::Tier(const Runtime& runtime, PrefixIndex& prefixes, Telemetry& telemetry, Hooks hooks)
    : runtime_{runtime}, prefixes_{prefixes}, telemetry_{telemetry}, hooks_{std::move(hooks)} {
  const auto* table = runtime.cache ? runtime.cache.operator->() : nullptr;
  on_ = prefixes.on() && runtime.tier && table->has != nullptr && table->store != nullptr && table->fetch != nullptr &&
        table->cancel != nullptr && runtime.backend->state_read != nullptr && runtime.backend->state_write != nullptr;
}

Tier::~Tier() {
  for (Fetch& fetch : fetches_)
    for (Operation& o : fetch.operations)
      if (!o.done) runtime_.cache->cancel(runtime_.cache.get(), &o);
  for (Operation& o : stores_)
    if (!o.done) runtime_.cache->cancel(runtime_.cache.get(), &o);
  std::unique_lock lock{mutex_};
  ended_.wait(lock, [this] {
    const auto over = [](const Operation& o) { return o.done.load(); };
    return std::all_of(stores_.begin(), stores_.end(), over) && std::all_of(fetches_.begin(), fetches_.end(), [&](const Fetch& f) {
             return std::all_of(f.operations.begin(), f.operations.end(), over);
           });
  });
}

void Tier::completed(void* operation, mekik_status status) {
  auto& o = *static_cast<Operation*>(operation);
  Tier& tier = *o.tier;
  {
    const std::lock_guard lock{tier.mutex_};  // the destructor may not go on before this call is over
    o.status = status;
    o.done = true;
    tier.hooks_.wake();
    tier.ended_.notify_all();
  }
}

TierPrefix Tier::look(const Request& request) const {
  TierPrefix out;
  if (!on_ || request.score_prompt || request.vector) return out;
  const std::uint32_t block = runtime_.limits.block_tokens;
  const std::size_t last = request.prompt.size() - 1;
  const auto has = [&](const Key& key) {
    mekik_key k{};
    std::memcpy(k.sha256, key.data(), key.size());
    std::uint64_t bytes = 0, expected = 0;
    if (runtime_.cache->has(runtime_.cache.get(), &k, &bytes, &expected) != 1) return false;
    out.expected_ns += expected;
    return true;
  };
  std::vector<Key> keys{prefixes_.root_of(request)};
  for (std::size_t b = 0; b < last / block; ++b) {
    const Key next = PrefixIndex::key(keys[b], std::span{request.prompt}.subspan(b * block, block));
    if (!runtime_.groups.empty() && !has(next)) break;
    keys.push_back(next);
  }
  out.blocks = static_cast<std::uint32_t>(keys.size() - 1);
  for (std::size_t b = out.blocks;; --b) {
    if (out.note < 0 && has(PrefixIndex::note_key(keys[b]))) out.note = static_cast<std::int32_t>(b);
    if (!runtime_.slots || b == 0) break;
    if (!has(PrefixIndex::state_key(keys[b - 1], std::span{request.prompt}.subspan((b - 1) * block, block)))) continue;
    out.state = static_cast<std::uint32_t>(b);
    break;
  }
  if (runtime_.slots) out.blocks = std::max(out.state, static_cast<std::uint32_t>(std::max(out.note, 0)));
  return out;
}

// Starts to fetch one value. False: the plugin does not have it any more, or there is no room.
bool Tier::begin(Fetch& fetch, What what, const Key& parent, std::uint32_t at, std::span<const std::int32_t> tokens) {
  const Key key = what == What::node    ? PrefixIndex::key(parent, tokens)
                  : what == What::state ? PrefixIndex::state_key(parent, tokens)
                                        : PrefixIndex::note_key(parent);
  mekik_key k{};
  std::memcpy(k.sha256, key.data(), key.size());
  std::uint64_t bytes = 0, expected = 0;
  if (runtime_.cache->has(runtime_.cache.get(), &k, &bytes, &expected) != 1) return false;
  if (bytes < sizeof(Head) || bytes > kInFlight || in_flight() + bytes > kInFlight) return false;
  Operation& o = fetch.operations.emplace_back();
  o.tier = this;
  o.what = what;
  o.parent = parent;
  o.at = at;
  o.tokens.assign(tokens.begin(), tokens.end());
  o.bytes = bytes;
  o.memory = std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
  const auto code = runtime_.cache->fetch(runtime_.cache.get(), &k, o.memory.get(), bytes, &completed, &o);
  if (code == MEKIK_OK) return true;
  failed("read", code);
  fetch.operations.pop_back();
  return false;
}

void Tier::fetch(const Sequence& s, std::uint64_t now_ns) {
  const std::uint32_t block = runtime_.limits.block_tokens;
  if (!on_ || (s.tier.blocks == 0 && s.tier.note < 0)) return;
  const auto& prompt = s.request->request.prompt;
  Fetch& fetch = fetches_.emplace_back();
  fetch.sequence = s.id;
  fetch.tokens.assign(prompt.begin(), prompt.end() - 1);
  Key parent = fetch.root = prefixes_.root_of(s.request->request);
  bool in_memory = true;
  std::uint32_t missing = 0;
  for (std::uint32_t b = 0;; ++b) {
    const auto tokens = std::span{fetch.tokens}.subspan(std::size_t{b} * block);
    if (s.tier.note == static_cast<std::int32_t>(b)) begin(fetch, What::note, parent, b * block, {});
    if (b >= s.tier.blocks) break;
    const Key next = PrefixIndex::key(parent, tokens.first(block));
    in_memory = in_memory && prefixes_.node(next) != nullptr;
    if (!in_memory && !runtime_.groups.empty()) {
      if (!begin(fetch, What::node, parent, b * block, tokens.first(block))) break;
      ++missing;
    }
    if (s.tier.state == b + 1 && !begin(fetch, What::state, parent, b * block, tokens.first(block))) break;
    parent = next;
  }
  const std::uint64_t compute = prefixes_.token_ns() * block * (missing + 1);
  if (fetch.operations.empty() || (compute > 0 && s.tier.expected_ns > compute)) fetch.waited_for = false;
  fetch.deadline_ns = now_ns + (compute == 0 ? kFirstWaitNs : std::max(kLeastWaitNs, compute));
}

bool Tier::fetching(std::uint64_t sequence) const {
  return std::any_of(fetches_.begin(), fetches_.end(), [&](const Fetch& f) { return f.sequence == sequence && f.waited_for; });
}

void Tier::forget(std::uint64_t sequence) {
  for (Fetch& fetch : fetches_)
    if (fetch.sequence == sequence) fetch.waited_for = false;
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
  const auto next = std::span{fetch.tokens}.subspan(std::min<std::size_t>(note.at, fetch.tokens.size()));
  const auto same = std::mismatch(tokens.begin(), tokens.end(), next.begin(), next.end()).first - tokens.begin();
  if (same == 0) return;
  std::int32_t state = 0;
  for (const std::int32_t n : states)
    if (n <= same && n > state) state = n;
  if (runtime_.slots && state == 0) return;
  if (!runtime_.groups.empty() && prefixes_.node(PrefixIndex::key(note.parent, tokens)) == nullptr &&
      !begin(fetch, What::node, note.parent, note.at, tokens))
    return;
  if (runtime_.slots) begin(fetch, What::state, note.parent, note.at, std::span{tokens}.first(static_cast<std::size_t>(state)));
}

// Whether a value is what was asked for.
bool Tier::check(const Operation& o) const {
  Head head{};
  std::memcpy(&head, o.memory.get(), sizeof head);
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0 || head.what != static_cast<std::uint32_t>(o.what) || head.bytes != o.bytes)
    return false;
  if (std::memcmp(head.parent, o.parent.data(), o.parent.size()) != 0) return false;
  if (o.what == What::note) return true;
  if (head.n_tokens != o.tokens.size() || body(head.n_tokens) > o.bytes) return false;
  if (std::memcmp(o.memory.get() + sizeof head, o.tokens.data(), o.tokens.size() * sizeof(std::int32_t)) != 0) return false;
  std::uint64_t bytes = body(head.n_tokens);
  for (std::size_t g = 0; g < runtime_.groups.size(); ++g)
    if ((head.groups >> g & 1) != 0) bytes += up(runtime_.plan.block_bytes[g]);
  if (o.what == What::state) bytes += up(runtime_.plan.slot_bytes);
  return bytes == o.bytes;
}

// Brings a value into memory of the backend and into the index. False: what is behind it is of no use.
bool Tier::place(const Fetch& fetch, const Operation& o, std::uint64_t now_ns) {
  Head head{};
  std::memcpy(&head, o.memory.get(), sizeof head);
  const std::uint8_t* from = o.memory.get() + body(head.n_tokens);
  const auto write = [&](std::uint32_t what, std::uint32_t group, const Lease& to, std::uint64_t bytes) {
    std::uint64_t ticket = 0;
    const auto code = runtime_.backend->state_write(runtime_.exec, what, group, to.id(), from, bytes, &ticket);
    from += up(bytes);
    return plugin::to_status(code, "backend").ok() && hooks_.wait(ticket).ok();
  };
  if (o.what == What::state) {
    Lease slot = hooks_.take_slot();
    if (!slot || !write(MEKIK_WHAT_SLOT, 0, slot, runtime_.plan.slot_bytes)) return false;
    return prefixes_.place_state(fetch.root, o.parent, std::span{fetch.tokens}.first(o.at + o.tokens.size()), std::move(slot), now_ns);
  }
  std::vector<Lease> blocks(runtime_.groups.size());
  for (std::uint32_t g = 0; g < blocks.size(); ++g) {
    if ((head.groups >> g & 1) == 0) continue;
    blocks[g] = hooks_.take_block(g);
    if (!blocks[g] || !write(MEKIK_WHAT_BLOCK, g, blocks[g], runtime_.plan.block_bytes[g])) return false;
  }
  if (o.at > 0 && prefixes_.node(o.parent) == nullptr) return false;
  prefixes_.place(o.parent, o.tokens, std::move(blocks), now_ns);
  telemetry_.fetched(o.bytes);
  return true;
}

void Tier::place(Fetch& fetch, std::uint64_t now_ns) {
  fetch.operations.sort([](const Operation& a, const Operation& b) { return a.at != b.at ? a.at < b.at : a.what < b.what; });
  for (const Operation& o : fetch.operations) {
    if (o.status != MEKIK_OK) {
      if (o.status != MEKIK_E_INVALID && o.status != MEKIK_E_CANCELLED) failed("read", o.status);
      return;
    }
    if (!check(o)) return failed("read", MEKIK_E_INVALID);
    if (o.what != What::note && !place(fetch, o, now_ns)) return;
  }
}

void Tier::offer(const Sequence& s) {
  if (!on_) return;
  const std::uint32_t block = runtime_.limits.block_tokens, end = (s.prompt_tokens - 1) / block;
  Key parent = prefixes_.root_of(s.request->request);
  for (std::uint32_t b = 0; std::size_t{b} * block < s.computed && offers_.size() < kMaxOffers; ++b) {
    const std::uint32_t n = std::min(block, s.computed - b * block);
    const Key key = PrefixIndex::key(parent, std::span{s.tokens}.subspan(std::size_t{b} * block, n));
    const PrefixIndex::Node* node = prefixes_.node(key);
    if (node == nullptr && !runtime_.groups.empty()) return;
    if (node != nullptr && !node->offered && !runtime_.groups.empty()) offers_.push_back({What::node, key, n});
    for (std::size_t i = 0; node != nullptr && i < node->states.size(); ++i)
      if (!node->states[i].offered) offers_.push_back({What::state, key, node->states[i].tokens});
    if (node != nullptr && (b == end || n < block)) offers_.push_back({What::note, key, n});
    parent = key;
  }
}

// Reads a value out of the backend and gives it to the plugin. False: later, too much is on its way.
bool Tier::store(const Offer& offer) {
  PrefixIndex::Node* node = prefixes_.node(offer.key);
  if (node == nullptr) return true;
  const auto state = std::find_if(node->states.begin(), node->states.end(), [&](const auto& s) { return s.tokens == offer.tokens; });
  if (offer.what == What::state && (state == node->states.end() || state->offered)) return true;
  if (offer.what == What::node && node->offered) return true;
  Head head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.what = static_cast<std::uint32_t>(offer.what);
  head.n_tokens = offer.what == What::state ? offer.tokens : static_cast<std::uint32_t>(node->tokens.size());
  std::memcpy(head.parent, node->parent.data(), node->parent.size());
  std::vector<std::int32_t> words(node->tokens.begin(), node->tokens.begin() + head.n_tokens);
  if (offer.what == What::note) {
    for (const auto& s : node->states) words.push_back(static_cast<std::int32_t>(s.tokens));
    head.n_states = static_cast<std::uint32_t>(node->states.size());
  }
  head.bytes = body(words.size());
  if (offer.what == What::state) head.bytes += up(runtime_.plan.slot_bytes);
  for (std::size_t g = 0; offer.what == What::node && g < node->blocks.size(); ++g) {
    if (!node->blocks[g]) continue;
    head.groups |= 1u << g;
    head.bytes += up(runtime_.plan.block_bytes[g]);
  }
  if (in_flight() + head.bytes > kInFlight) return false;
  const Key key = offer.what == What::node    ? offer.key
                  : offer.what == What::state ? PrefixIndex::state_key(node->parent, std::span{node->tokens}.first(offer.tokens))
                                              : PrefixIndex::note_key(node->parent);
  Operation& o = stores_.emplace_back();
  o.tier = this;
  o.bytes = head.bytes;
  o.memory = std::make_unique<std::uint8_t[]>(head.bytes);
  std::memcpy(o.memory.get(), &head, sizeof head);
  std::memcpy(o.memory.get() + sizeof head, words.data(), words.size() * sizeof(std::int32_t));
  std::uint8_t* to = o.memory.get() + body(words.size());
  const auto read = [&](std::uint32_t what, std::uint32_t group, std::int32_t id, std::uint64_t bytes) {
    std::uint64_t ticket = 0;
    const auto code = runtime_.backend->state_read(runtime_.exec, what, group, id, to, bytes, &ticket);
    to += up(bytes);
    return plugin::to_status(code, "backend").ok() && hooks_.wait(ticket).ok();
  };
  bool good = true;
  if (offer.what == What::state) good = read(MEKIK_WHAT_SLOT, 0, state->slot.id(), runtime_.plan.slot_bytes);
  for (std::uint32_t g = 0; good && g < runtime_.groups.size(); ++g)
    if ((head.groups >> g & 1) != 0) good = read(MEKIK_WHAT_BLOCK, g, node->blocks[g].id(), runtime_.plan.block_bytes[g]);
  mekik_key k{};
  std::memcpy(k.sha256, key.data(), key.size());
  mekik_status code = MEKIK_E_INTERNAL;
  if (good) code = runtime_.cache->store(runtime_.cache.get(), &k, o.memory.get(), o.bytes, &completed, &o);
  if (good && code == MEKIK_OK) telemetry_.stored(head.bytes);
  if (code != MEKIK_OK) {
    failed("written", code);
    stores_.pop_back();
  }
  if (offer.what == What::state) state->offered = true;
  if (offer.what == What::node) node->offered = true;
  return true;
}

bool Tier::turn(bool idle, std::uint64_t now_ns) {
  if (!on_) return false;
  for (auto at = fetches_.begin(); at != fetches_.end();) {
    Fetch& fetch = *at;
    for (auto o = fetch.operations.begin(); o != fetch.operations.end();) {
      if (!o->done || o->what != What::note) {
        ++o;
        continue;
      }
      if (o->status == MEKIK_OK && check(*o)) read_note(fetch, *o);
      o = fetch.operations.erase(o);
    }
    if (std::all_of(fetch.operations.begin(), fetch.operations.end(), [](const Operation& o) { return o.done.load(); })) {
      if (fetch.waited_for) place(fetch, now_ns);
      at = fetches_.erase(at);
      continue;
    }
    if (now_ns > fetch.deadline_ns && fetch.waited_for) {
      log::warning("cache", "the slower tier is late; what it has of a prompt is computed instead");
      telemetry_.tier_failed();
      fetch.waited_for = false;
    }
    if (!fetch.waited_for)
      for (Operation& o : fetch.operations)
        if (!o.done) runtime_.cache->cancel(runtime_.cache.get(), &o);
    ++at;
  }
  for (auto o = stores_.begin(); o != stores_.end();) {
    if (!o->done) {
      ++o;
      continue;
    }
    if (o->status != MEKIK_OK && o->status != MEKIK_E_CANCELLED) failed("written", o->status);
    o = stores_.erase(o);
  }
  const std::uint64_t before = in_flight();
  while (!offers_.empty() && (idle || in_flight() < before + kTurnBytes)) {
    if (!store(offers_.front())) break;
    offers_.pop_front();
  }
  return !offers_.empty() || !fetches_.empty() || !stores_.empty();
}

void Tier::flush(std::uint64_t most_ns) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds{most_ns};
  while (on_ && turn(true, 0) && std::chrono::steady_clock::now() < until) {
    std::unique_lock lock{mutex_};
    ended_.wait_for(lock, std::chrono::milliseconds{5});
  }
}

std::uint64_t Tier::in_flight() const {
  std::uint64_t bytes = 0;
  for (const Operation& o : stores_) bytes += o.bytes;
  for (const Fetch& fetch : fetches_)
    for (const Operation& o : fetch.operations) bytes += o.bytes;
  return bytes;
}

// The plugin says in the log what is wrong; here it is counted.
void Tier::failed(const char* what, mekik_status code) {
  telemetry_.tier_failed();
  log::debug("cache", std::string{"a value of the slower tier was not "} + what + ": " + plugin::to_status(code, "cache").text);
}

}  // namespace mekik::engine
