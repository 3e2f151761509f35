// The engine loop: admit, ask the scheduler, check the plan against the limits (matching the cache and taking blocks), build the batch,
// submit, wait, sample, append, publish. A plan is checked whole before anything is submitted; a call that fails changes nothing
// but the requests of its step.
#include "engine/loop.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "plugin/registry.hpp"

namespace mekik::engine {
namespace {

constexpr std::uint32_t kManyTokens = 16;         // of a step from which on its time is that of its tokens
constexpr int kLooks = 64;                        // waiting prompts that are looked up in the cache again, a step
constexpr std::uint64_t kPollNs = 1'000'000'000;  // how often a wait for the backend comes up for air

}  // namespace

Loop::Turn Loop::step() {
  admit();
  end_overdue();
  sweep();
  const bool tier_works = tier_.turn(sequences_.empty(), now());
  if (sequences_.empty()) {
    publish(true);
    return tier_works ? Turn::blocked : Turn::idle;
  }
  busy_ = true;
  const auto parts = check_plan(ask_scheduler());
  if (parts.empty()) {
    make_room();
    sweep();
    publish(false);
    if (!sequences_.empty() && now() - progress_ns_ > runtime_.watchdog_ns && !std::exchange(blocked_said_, true))
      log::error("engine", "nothing has run for " + std::to_string(runtime_.watchdog_ns / 1'000'000'000) + " s: the scheduler " +
                               runtime_.scheduler_name + " plans nothing that can run for " + std::to_string(sequences_.size()) +
                               " sequences");
    return sequences_.empty() ? Turn::idle : Turn::blocked;
  }
  if (const Status status = run(parts); !status.ok()) {
    status.code == Code::device_lost ? fail_all(status) : fail_parts(parts, status);
  } else {
    advance(parts);
    for (const auto& part : parts) sample(part);
  }
  progress_ns_ = now();
  stalled_ = blocked_said_ = false;
  sweep();
  publish(false);
  return Turn::ran;
}

// Takes over what other threads have asked for since the last step.
void Loop::admit() {
  std::vector<RequestId> cancels;
  bool all = false;
  const std::size_t before = sequences_.size();
  {
    const std::lock_guard lock{mutex_};
    for (auto& [request, sequences] : inbox_) {
      requests_.push_back(std::move(request));
      for (auto& s : sequences) {
        s->id = next_sequence_++;
        sequences_.push_back(std::move(s));
      }
    }
    inbox_.clear();
    cancels.swap(cancels_);
    all = std::exchange(cancel_all_, false);
    woken_ = false;
  }
  for (std::size_t i = before; i < sequences_.size(); ++i) tier_.fetch(*sequences_[i], now());
  if (cancels.empty() && !all && !lost_) return;
  for (auto& s : sequences_) {
    if (s->state == SequenceState::done) continue;
    if (all || std::find(cancels.begin(), cancels.end(), s->request->id) != cancels.end()) finish(*s, Finish::cancelled);
    else if (lost_) finish(*s, Finish::error, fail(Code::device_lost, "the device is lost; restart the server"));
  }
}

void Loop::end_overdue() {
  const auto time = now();
  for (auto& s : sequences_) {
    const auto deadline = s->request->request.deadline_ns;
    if (s->state == SequenceState::done || deadline == 0 || deadline > time) continue;
    finish(*s, Finish::error,
           fail(Code::cancelled, "the request's deadline passed after " + std::to_string(s->generated()) + " tokens of its answer"));
  }
}

std::vector<mekik_choice> Loop::ask_scheduler() {
  view_.clear();
  view_sequences_.clear();
  int looks = kLooks;
  for (auto& s : sequences_) {
    if (!s->active()) continue;
    mekik_seq_view v{};
    v.id = s->id;
    v.tenant = s->request->request.tenant;
    v.arrival_ns = s->request->arrival_ns;
    v.deadline_ns = s->request->request.deadline_ns;
    v.ttft_ns = s->request->request.ttft_ns;
    v.tpot_ns = s->request->request.tpot_ns;
    v.priority = s->request->request.priority;
    v.waiting_fetch = s->state == SequenceState::waiting && tier_.fetching(s->id) ? 1 : 0;
    v.running = s->state == SequenceState::running ? 1 : 0;
    v.prompt_left = s->generated() > 0 && s->left() == 1 ? 0 : s->left();
    // Of all of a long queue only those in front are looked up again: they are next.
    if (s->state == SequenceState::waiting)
      v.known = std::min(s->lookup.epoch == 0 || looks-- > 0 ? prefixes_.known(*s) : s->lookup.tokens, s->left() - 1);
    v.cached = s->computed;
    v.generated = s->generated();
    v.max_drafts = speculation_.most(*s, longest_);
    for (const auto& table : s->blocks)
      v.blocks_held =
          std::max(v.blocks_held,
                   static_cast<std::uint32_t>(std::count_if(table.begin(), table.end(), [](auto& b) { return static_cast<bool>(b); })));
    if (v.running != 0) v.swap_bytes = tier_.swap_bytes(*s, now());
    view_.push_back(v);
    view_sequences_.push_back(s.get());
  }
  mekik_step_view& step = step_view_;
  step = {};
  step.struct_size = sizeof step;
  step.n_seqs = static_cast<std::uint32_t>(view_.size());
  step.seq_size = sizeof(mekik_seq_view);
  step.max_tokens = runtime_.limits.max_tokens;
  step.max_seqs = runtime_.limits.max_seqs;
  step.block_tokens = runtime_.limits.block_tokens;
  step.free_blocks = UINT32_MAX;
  for (std::uint32_t g = 0; g < pools_.size(); ++g) step.free_blocks = std::min(step.free_blocks, pools_[g].free() + pools_[g].only_kept());
  step.now_ns = now();
  step.seqs = view_.data();
  std::vector<mekik_choice> plan(view_.size());
  auto n = static_cast<std::uint32_t>(plan.size());
  if (n == 0) return plan;
  const auto code = runtime_.scheduler->plan(runtime_.scheduler.get(), &step, plan.data(), sizeof(mekik_choice), &n);
  if (const auto status = plugin::to_status(code, "scheduler " + runtime_.scheduler_name); !status.ok()) {
    fail_all(status);  // nobody else would ever run them
    return {};
  }
  plan.resize(std::min<std::size_t>(n, plan.size()));
  return plan;
}

// A scheduler proposes; what breaks a limit is cut back or left out, and said once.
std::vector<Part> Loop::check_plan(const std::vector<mekik_choice>& plan) {
  std::vector<Part> parts;
  std::vector<bool> seen(view_.size(), false), starts(plan.size(), false);
  bool broken = false;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const auto& choice = plan[i];
    if (choice.seq >= view_.size() || seen[choice.seq] || choice.action < MEKIK_RUN || choice.action > MEKIK_REFUSE ||
        (choice.action == MEKIK_RUN && view_[choice.seq].waiting_fetch != 0)) {
      broken = true;
      continue;
    }
    seen[choice.seq] = true;
    auto& s = *view_sequences_[choice.seq];
    starts[i] = choice.action == MEKIK_RUN;
    if (choice.action == MEKIK_REFUSE) {
      telemetry_.refused(Code::busy);
      finish(s, Finish::error, fail(Code::busy, "the server is too busy to answer this request in time; try again later"), {}, {},
             std::max<std::uint64_t>(choice.retry_ns, 1));
    }
    const bool swap = choice.action == MEKIK_SWAP && view_[choice.seq].swap_bytes > 0;
    if (choice.action == MEKIK_SWAP && !swap) broken = true;  // its blocks are computed again
    if ((choice.action == MEKIK_DROP || choice.action == MEKIK_SWAP) && s.state == SequenceState::running) preempt(s, swap);
  }
  std::uint32_t tokens = runtime_.limits.max_tokens, rows = runtime_.limits.max_rows;
  std::vector<std::uint32_t> drafts;
  short_of_blocks_ = false;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    if (!starts[i]) continue;
    auto& s = *view_sequences_[plan[i].seq];
    if (plan[i].tokens == 0 || plan[i].tokens > s.left() || plan[i].tokens > tokens || parts.size() == runtime_.limits.max_seqs)
      broken = true;
    if (parts.size() == runtime_.limits.max_seqs) break;
    auto part = start_part(s, plan[i], tokens, rows);
    if (!part) continue;
    part->first_row = runtime_.limits.max_rows - rows;
    tokens -= part->tokens;
    rows -= part->n_rows;
    parts.push_back(*part);
    drafts.push_back(plan[i].drafts);
  }
  add_drafts(parts, drafts);
  if (broken && !std::exchange(scheduler_warned_, true))
    log::warning("engine", "the scheduler " + runtime_.scheduler_name + " broke a limit of its view; its plans are cut back (said once)");
  return parts;
}

// Makes a sequence ready to run up to choice.tokens; nothing when a limit leaves it no token.
std::optional<Part> Loop::start_part(Sequence& s, const mekik_choice& choice, std::uint32_t tokens_left, std::uint32_t rows_left) {
  const bool waited = s.state == SequenceState::waiting;
  if (waited && comes_back(s)) return {};
  if (waited) match_cache(s);
  const std::uint32_t known = s.computed;
  std::uint32_t tokens = std::min({runtime_.whole ? s.left() : choice.tokens, s.left(), tokens_left});
  if (s.scoring()) tokens = std::min(tokens, rows_left);  // each of its tokens reaches the head
  if (rows_left == 0 && tokens == s.left()) --tokens;
  if (runtime_.whole && tokens < s.left()) tokens = 0;  // the next step has room for it
  if (tokens > 0) tokens = take_blocks(s, tokens);
  if (runtime_.whole && tokens < s.left()) tokens = 0;
  if (tokens > 0 && runtime_.slots && !take_slots(s, tokens)) tokens = 0;
  if (tokens == 0) {
    if (waited) s.drop_state();
    return {};
  }
  if (waited) {
    s.state = SequenceState::running;
    s.lookup = {};
    resumed(s, known);
    auto& request = *s.request;
    if (!request.first_run_ns) {
      request.first_run_ns = now();
      request.cached_tokens = s.computed;
      telemetry_.started(request);
      const std::lock_guard lock{mutex_};
      --queued_;
    }
  }
  // A pooled output has a row for every sequence of the step.
  return Part{&s, tokens, 0, s.scoring() ? tokens : tokens == s.left() || runtime_.vectors ? 1u : 0u};
}

void Loop::match_cache(Sequence& s) {
  if (!prefixes_.on() || s.scoring()) return;
  auto found = prefixes_.match(s, sequences_, now());
  bool copied = found.rows == 0 || copy_rows(s, found);
  if (runtime_.slots && copied) s.slot = std::move(found.state);
  else if (runtime_.slots) s.drop_state();  // it could begin at that state only
  if (runtime_.slots && found.seen > s.computed) s.branch = found.seen;
  telemetry_.looked_up(s, found.miss);
}

// The known beginning of a block that others hold comes into a block of the sequence's own. False: without a free block it is computed
// again.
bool Loop::copy_rows(Sequence& s, const PrefixIndex::Match& next) {
  std::vector<Lease> own(pools_.size());
  std::vector<mekik_move> moves;
  for (std::uint32_t g = 0; g < pools_.size(); ++g) {
    own[g] = take_block(g);
    if (!own[g]) return false;
    if (next.blocks[g]) moves.push_back({MEKIK_WHAT_ROWS, g, next.blocks[g].id(), own[g].id(), 0, 0, next.rows, 0});
  }
  if (!moves.empty() && !move(moves)) return false;
  for (std::uint32_t g = 0; g < pools_.size(); ++g) s.blocks[g].push_back(std::move(own[g]));
  s.computed += next.rows;
  return true;
}

// Extends the block tables for `tokens` more tokens, or for as many as there are blocks; returns how many that is.
std::uint32_t Loop::take_blocks(Sequence& s, std::uint32_t tokens) {
  s.blocks.resize(pools_.size());
  for (std::uint32_t g = 0; g < pools_.size(); ++g) {
    const auto held = static_cast<std::uint32_t>(s.blocks[g].size());
    const auto want = blocks_for(s.computed + tokens);
    while (held + pools_[g].free() < want && evict(g)) {}
    const auto room = (held + pools_[g].free()) * std::uint64_t{runtime_.limits.block_tokens} - s.computed;
    if (room < tokens) short_of_blocks_ = true;
    tokens = static_cast<std::uint32_t>(std::min<std::uint64_t>(tokens, room));
  }
  for (std::uint32_t g = 0; g < pools_.size(); ++g)
    while (s.blocks[g].size() < blocks_for(s.computed + tokens)) s.blocks[g].push_back(pools_[g].take());
  return tokens;
}

Lease Loop::take_block(std::uint32_t group) {
  while (pools_[group].free() == 0 && evict(group)) {}
  return pools_[group].take();
}

bool Loop::evict(std::uint32_t group) { return prefixes_.evict(group, pools_); }

Status Loop::run(const std::vector<Part>& parts) {
  std::size_t rows = 0;
  for (const auto& part : parts) rows += part.n_rows;
  if (logits_.size() < rows * runtime_.row_size) logits_.resize(rows * runtime_.row_size);
  batch_.fill(parts, runtime_, logits_.data());
  const auto began = now();
  std::uint64_t ticket = 0;
  MEKIK_CHECK_OK(plugin::to_status(runtime_.backend->submit(runtime_.exec, batch_.get(), &ticket), "backend"));
  for (const auto& part : parts) {
    for (std::uint32_t g = 0; g < pools_.size(); ++g)
      for (const auto& block : part.sequence->blocks[g])
        if (block) pools_[g].named(block.id(), ticket);
    name_slots(*part.sequence, ticket);
  }
  auto status = wait_for(ticket);
  ++steps_;
  const auto took = now() - began;
  telemetry_.step(took, batch_.get()->n_seqs, batch_.get()->n_tokens);
  if (status.ok()) speculation_.measured(parts, took);
  if (status.ok() && runtime_.scheduler->observe != nullptr) runtime_.scheduler->observe(runtime_.scheduler.get(), &step_view_, took);
  if (const auto n = batch_.get()->n_tokens; n >= kManyTokens) prefixes_.set_token_ns(took / n);
  return status;
}

Status Loop::wait_for(std::uint64_t ticket) {
  mekik_status code;
  while ((code = runtime_.backend->wait(runtime_.exec, ticket, kPollNs)) == MEKIK_E_BUSY) {
    plugin::take_failure();  // "not yet" is no failure; the watchdog looks at the time
  }
  for (auto& pool : pools_) pool.completed(ticket);
  slots_.completed(ticket);
  return plugin::to_status(code, "backend");
}

// What the step stored now counts, but for drafts.
void Loop::advance(const std::vector<Part>& parts) {
  for (const auto& part : parts) {
    if (!part.drafts.empty() && runtime_.slots) continue;  // the state behind the sequence's own token is not kept
    part.sequence->computed += part.tokens - static_cast<std::uint32_t>(part.drafts.size());
    keep_state(*part.sequence);
  }
}

// Full blocks are offered to the cache, blocks behind a window are let go of.
void Loop::keep_state(Sequence& s) {
  const std::uint64_t block = runtime_.limits.block_tokens;
  if (runtime_.slots) keep_slots(s);
  prefixes_.insert(s, now());
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    const std::uint64_t behind = first_seen(runtime_.groups[g].window, s.computed) / block;
    for (std::size_t b = 0; b < std::min<std::size_t>(behind, s.blocks[g].size()); ++b) s.blocks[g][b].reset();
  }
}

void Loop::publish(bool at_once) {
  EngineStats stats;
  for (const auto& s : sequences_) {
    if (s->state == SequenceState::running) ++stats.running;
    if (s->state == SequenceState::waiting || s->state == SequenceState::following) ++stats.waiting;
  }
  for (std::uint32_t g = 0; g < pools_.size(); ++g) {
    const std::uint32_t free = pools_[g].free() + pools_[g].only_kept();  // what is only kept can be had at once
    if (g > 0 && free >= stats.blocks_free) continue;                     // the scarcest group
    stats.blocks_total = pools_[g].size();
    stats.blocks_free = free;
    stats.blocks_pending = pools_[g].pending();
  }
  if (sequences_.empty()) {
    busy_ = false;
    for (std::uint32_t g = 0; g < pools_.size(); ++g) stats.blocks_leaked += pools_[g].held() - pools_[g].kept();
    stats.blocks_leaked += slots_.held() - slots_.kept();
  }
  stats.steps = steps_;
  stats.device_lost = lost_;
  telemetry_.levels(stats);
  telemetry_.publish(now(), at_once);
  const std::lock_guard lock{mutex_};
  stats_ = stats;
  if (open_ == 0) done_.notify_all();
}

}  // namespace mekik::engine
