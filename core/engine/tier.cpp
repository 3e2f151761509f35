// The slower tier: its life, and what is written to it.
#include "engine/tier.hpp"

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "engine/tier_values.hpp"
#include "plugin/registry.hpp"

namespace mekik::engine {

using namespace tier;

namespace {

constexpr std::uint64_t kTurnBytes = std::uint64_t{8} << 20;    // read out beside steps in one turn
constexpr std::uint64_t kPlaceBytes = std::uint64_t{32} << 20;  // brought in, in one turn
constexpr std::size_t kMaxOffers = 65536;

}  // namespace

Tier::Tier(const Runtime& runtime, PrefixIndex& prefixes, Telemetry& telemetry, Hooks hooks)
    : runtime_{runtime}, prefixes_{prefixes}, telemetry_{telemetry}, hooks_{std::move(hooks)} {
  const auto* table = runtime.cache ? runtime.cache.operator->() : nullptr;
  on_ = prefixes.on() && runtime.tier && table->has != nullptr && table->store != nullptr && table->fetch != nullptr &&
        table->cancel != nullptr && runtime.backend->state_read != nullptr && runtime.backend->state_write != nullptr;
  if (on_) prefixes.on_leaving([this](const Key& key, PrefixIndex::Node& node) { leaving(key, node); });
}

Tier::~Tier() {
  for (Fetch& fetch : fetches_) give_up(fetch);
  for (Operation& o : stores_)
    if (!o.done) runtime_.cache->cancel(runtime_.cache.get(), &o);
  std::unique_lock lock{mutex_};
  ended_.wait(lock, [this] {
    const auto over = [](const Operation& o) { return o.done.load(); };
    return std::all_of(stores_.begin(), stores_.end(), over) && std::all_of(fetches_.begin(), fetches_.end(), [&](const Fetch& f) {
             return (!f.asking || f.question.done) && std::all_of(f.operations.begin(), f.operations.end(), over);
           });
  });
}

void Tier::completed(void* call, mekik_status status) {
  auto& c = *static_cast<Call*>(call);
  Tier& tier = *c.tier;
  const std::lock_guard lock{tier.mutex_};  // the destructor may not go on before this call is over
  c.status = status;
  c.done_ns = tier.runtime_.clock->now_ns();
  c.done = true;
  tier.hooks_.wake();
  tier.ended_.notify_all();
}

bool Tier::fetching(std::uint64_t sequence) const {
  return std::any_of(fetches_.begin(), fetches_.end(), [&](const Fetch& f) { return f.sequence == sequence && f.waited_for; });
}

void Tier::forget(std::uint64_t sequence) {
  for (Fetch& fetch : fetches_)
    if (fetch.sequence == sequence) give_up(fetch);
}

bool Tier::release() {
  bool any = false;
  for (Fetch& fetch : fetches_) {
    if (fetch.stopped_at == 0 || !fetch.waited_for) continue;
    give_up(fetch);
    any = true;
  }
  return any;
}

void Tier::count(std::vector<std::vector<std::uint32_t>>& counts) const {
  const auto add = [&](const Value& value) {
    for (std::size_t g = 0; g < value.blocks.size(); ++g)
      if (value.blocks[g]) ++counts[g][static_cast<std::size_t>(value.blocks[g].id())];
  };
  for (const Fetch& fetch : fetches_) {
    for (const auto& [group, block] : fetch.pins) ++counts[group][static_cast<std::size_t>(block.id())];
    for (const Value& value : fetch.wanted) add(value);
    for (const Operation& o : fetch.operations) add(o.value);
  }
}

std::uint64_t Tier::swap_bytes(Sequence& s, std::uint64_t now_ns) const {
  if (!on_ || s.computed == 0 || s.scoring() || s.request->request.vector) return 0;
  std::uint64_t bytes = s.slot ? runtime_.plan.slot_bytes : 0;
  for (std::size_t g = 0; g < s.blocks.size(); ++g)
    for (const Lease& block : s.blocks[g])
      if (block) bytes += runtime_.plan.block_bytes[g];
  s.swap_pays = costs_.pays(bytes, s.computed, prefixes_.token_ns(), s.swap_pays, now_ns);
  return s.swap_pays ? bytes : 0;
}

void Tier::offer(const Sequence& s, bool swap) {
  if (!on_) return;
  const std::uint32_t block = runtime_.limits.block_tokens, end = (s.prompt_tokens - 1) / block;
  Key parent = prefixes_.root_of(s.request->request);
  for (std::uint32_t b = 0; std::size_t{b} * block < s.computed && offers_.size() < kMaxOffers; ++b) {
    const std::uint32_t n = std::min(block, s.computed - b * block);
    const Key key = PrefixIndex::key(parent, std::span{s.tokens}.subspan(std::size_t{b} * block, n));
    PrefixIndex::Node* node = prefixes_.node(key);
    if (node == nullptr && !runtime_.groups.empty()) return;
    if (node != nullptr && !node->offered && !runtime_.groups.empty()) {
      node->wanted = node->wanted || swap;
      offers_.push_back({What::node, key, n});
    }
    for (std::size_t i = 0; node != nullptr && i < node->states.size(); ++i) {
      auto& state = node->states[i];
      if (state.offered) continue;
      state.wanted = state.wanted || (swap && b * block + state.tokens == s.computed);
      if (!swap || state.wanted) offers_.push_back({What::state, key, state.tokens});
    }
    if (node != nullptr && !swap && (b == end || n < block)) offers_.push_back({What::note, key, n});
    parent = key;
  }
}

// A node, or a state of it, is about to be given up: what a swapped sequence will go on from is stored now.
void Tier::leaving(const Key& key, PrefixIndex::Node& node) {
  if (node.wanted && !node.offered) store({What::node, key, static_cast<std::uint32_t>(node.tokens.size())});
  for (std::size_t i = 0; i < node.states.size(); ++i)
    if (node.states[i].wanted && !node.states[i].offered) store({What::state, key, node.states[i].tokens});
}

// Reads a value out of the backend and gives it to the plugin. False: later, too much is on its way.
bool Tier::store(const Offer& offer) {
  PrefixIndex::Node* node = prefixes_.node(offer.key);
  if (node == nullptr) return true;
  const auto state = std::find_if(node->states.begin(), node->states.end(), [&](const auto& s) { return s.tokens == offer.tokens; });
  if (offer.what == What::state && (state == node->states.end() || state->offered)) return true;
  if (offer.what == What::node && node->offered) return true;
  const auto began = runtime_.clock->now_ns();
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
  Operation& o = stores_.emplace_back();
  o.tier = this;
  o.value.what = offer.what;
  o.value.parent = node->parent;
  if (offer.what != What::note) o.value.tokens.assign(node->tokens.begin(), node->tokens.begin() + head.n_tokens);
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
  if (offer.what == What::state) state->offered = true;
  if (offer.what == What::node) node->offered = true;
  const mekik_key k = key_of(o.value);
  mekik_status code = MEKIK_E_INTERNAL;
  if (good) code = runtime_.cache->store(runtime_.cache.get(), &k, o.memory.get(), o.bytes, &completed, &o);
  if (code == MEKIK_OK) {
    telemetry_.stored(head.bytes);
    const auto now = runtime_.clock->now_ns();
    costs_.wrote(head.bytes, now - std::min(now, began), now);
  } else {
    failed("written", code);
    stores_.pop_back();
  }
  return true;
}

mekik_key Tier::key_of(const Value& value) {
  const Key key = value.what == What::node    ? PrefixIndex::key(value.parent, value.tokens)
                  : value.what == What::state ? PrefixIndex::state_key(value.parent, value.tokens)
                                              : PrefixIndex::note_key(value.parent);
  mekik_key out{};
  std::memcpy(out.sha256, key.data(), key.size());
  return out;
}

bool Tier::turn(bool idle, std::uint64_t now_ns) {
  if (!on_) return false;
  std::uint64_t room = kPlaceBytes;
  for (auto at = fetches_.begin(); at != fetches_.end();) at = advance(*at, room, now_ns) ? fetches_.erase(at) : std::next(at);
  if (room == 0) hooks_.wake();
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
