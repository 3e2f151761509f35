// From logits to events: sampling, ends of answers, further answers to the same prompt.
#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>

#include "base/log.hpp"
#include "engine/loop.hpp"
#include "engine/vectors.hpp"
#include "plugin/registry.hpp"
#include "sample/draw.hpp"
#include "sample/random.hpp"

namespace mekik::engine {

const char* finish_name(Finish finish) {
  switch (finish) {
    case Finish::stop:
      return "stop";
    case Finish::length:
      return "length";
    case Finish::cancelled:
      return "cancelled";
    case Finish::error:
      return "error";
    case Finish::none:
      break;
  }
  return "none";
}

namespace {

TokenInfo describe(const sample::LogSoftmax& raw, std::int32_t id, std::int32_t top) {
  TokenInfo info;
  info.id = id;
  info.logprob = raw.logprob(id);
  for (const auto& [token, logprob] : raw.top(static_cast<std::uint32_t>(std::max(top, 0)))) info.top.push_back({token, logprob});
  return info;
}

}  // namespace

// The parts have been advanced: `computed` is behind the part's last token.
void Loop::sample(const Part& part) {
  auto& s = *part.sequence;
  if (part.n_rows == 0 || s.state == SequenceState::done) return;
  if (s.request->request.vector) return give_vector(part);
  if (!part.drafts.empty()) return verify(part);
  const std::size_t vocab = runtime_.vocab;
  const std::span<float> rows{logits_.data() + part.first_row * vocab, part.n_rows * vocab};
  if (const auto status = sample::check_logits(rows.last(vocab)); !status.ok()) {
    fail_parts({part}, status);
    return;
  }
  if (s.scoring()) score(part, s.computed - part.tokens);
  if (s.left() > 0 || s.state == SequenceState::done) return;
  const auto row = rows.last(vocab);
  if (s.index == 0 && s.generated() == 0 && s.request->request.n > 1) fork(s, row);
  if (s.request->request.max_tokens == 0) finish(s, Finish::length);
  else sample_row(s, row);
}

// The row after the whole prompt is the answer.
void Loop::give_vector(const Part& part) {
  auto& s = *part.sequence;
  if (s.left() > 0) return;
  const std::size_t size = runtime_.row_size;
  const std::span<const float> row{logits_.data() + part.first_row * size, size};
  std::vector<float> out(row.begin(), row.end());
  if (const auto& probe = s.request->request.probe; !probe.empty()) {
    out.clear();
    for (const auto id : probe) out.push_back(row[static_cast<std::size_t>(id)]);
  }
  if (Status status = check_finite(out); !status.ok()) return fail_parts({part}, std::move(status));
  s.vector = std::move(out);
  finish(s, Finish::stop);
}

// Log-probabilities of the prompt's own tokens: the row of token i speaks of token i + 1. A part that runs again after a preemption
// finds what it had already told.
void Loop::score(const Part& part, std::uint32_t first) {
  auto& s = *part.sequence;
  auto& told = s.request->prompt_logprobs;
  if (told.empty()) {
    told.emplace_back();
    told.back().id = s.tokens[0];
    told.back().logprob = std::numeric_limits<float>::quiet_NaN();
  }
  for (std::uint32_t j = 0; j < part.n_rows; ++j) {
    const std::uint32_t next = first + j + 1;
    if (next != told.size() || next >= s.prompt_tokens) continue;
    const std::span<const float> row{logits_.data() + std::size_t{part.first_row + j} * runtime_.vocab, runtime_.vocab};
    if (const auto status = sample::check_logits(row); !status.ok()) return fail_parts({part}, status);
    told.push_back(describe(sample::LogSoftmax{row}, s.tokens[next], s.request->request.logprobs));
  }
}

void Loop::sample_row(Sequence& s, std::span<float> row) {
  const auto& request = s.request->request;
  std::optional<sample::LogSoftmax> raw;
  if (request.logprobs >= 0) {
    row_.assign(row.begin(), row.end());  // the chain works in place, log-probabilities are those of the model
    raw.emplace(row_);
  }
  const double uniform = sample::uniform(s.request->seed, s.index, s.tokens.size());
  if (auto status = s.chain.apply(row, uniform); !status.ok()) return finish(s, Finish::error, std::move(status));
  const auto token = sample::draw(row, uniform, scratch_);
  if (!token) return finish(s, Finish::error, token.status());
  TokenInfo info;
  info.id = *token;
  append(s, raw ? describe(*raw, *token, request.logprobs) : info);
}

// The prompt is computed once for all n answers: the others share its full blocks and copy the last one. One that finds no block
// computes the prompt itself later. `row` are the logits after the prompt.
void Loop::fork(Sequence& leader, std::span<const float> row) {
  std::vector<Sequence*> followers;
  for (auto& s : sequences_)
    if (s->request == leader.request && s->state == SequenceState::following) followers.push_back(s.get());
  for (auto* s : followers) {
    if (s->request->request.max_tokens == 0) {
      finish(*s, Finish::length);
    } else if (share_state(leader, *s)) {
      std::vector<float> own(row.begin(), row.end());
      sample_row(*s, own);
    } else {
      s->drop_state();
      s->state = SequenceState::waiting;
    }
  }
}

// Copies what is stored, and waits for it. False: it was not copied, and is computed again.
bool Loop::move(const std::vector<mekik_move>& moves) {
  if (runtime_.backend->move == nullptr) return false;
  std::uint64_t ticket = 0;
  const auto code =
      runtime_.backend->move(runtime_.exec, moves.data(), static_cast<std::uint32_t>(moves.size()), sizeof(mekik_move), &ticket);
  auto status = plugin::to_status(code, "backend");
  if (status.ok()) status = wait_for(ticket);
  if (status.code == Code::device_lost) fail_all(status);
  else if (!status.ok()) log::debug("engine", "a shared beginning is computed again: " + status.text);
  return status.ok();
}

bool Loop::share_state(const Sequence& leader, Sequence& s) {
  const auto block_tokens = runtime_.limits.block_tokens;
  const bool partial = leader.computed % block_tokens != 0;
  std::vector<mekik_move> moves;
  s.blocks.resize(pools_.size());
  for (std::uint32_t g = 0; g < pools_.size(); ++g) {
    const auto& from = leader.blocks[g];
    for (std::size_t b = 0; b < from.size(); ++b) {
      if (!partial || b + 1 < from.size()) {
        s.blocks[g].push_back(from[b].share());
        continue;
      }
      auto own = pools_[g].take();
      if (!own) return false;
      moves.push_back({MEKIK_WHAT_BLOCK, g, from[b].id(), own.id(), 0, 0, 0, 0});
      s.blocks[g].push_back(std::move(own));
    }
  }
  if (runtime_.slots) {
    s.slot = take_slot();
    if (!s.slot) return false;
    moves.push_back({MEKIK_WHAT_SLOT, 0, leader.slot.id(), s.slot.id(), 0, 0, 0, 0});
  }
  if (!moves.empty() && !move(moves)) return false;
  s.computed = leader.computed;
  s.keyed_blocks = leader.keyed_blocks;
  s.prefix_key = leader.prefix_key;
  s.state = SequenceState::running;
  return true;
}

// The token joins its sequence, and ends it where it must.
void Loop::append(Sequence& s, TokenInfo info) {
  const auto& request = s.request->request;
  const auto id = info.id;
  const auto time = now();
  std::optional<std::uint64_t> previous;
  // Tokens of one step come together.
  if (s.generated() > 0 && s.draft.last_step != steps_) previous = s.last_token_ns;
  s.draft.last_step = steps_;
  if (s.generated() == 0) s.first_token_ns = time;
  s.last_token_ns = time;
  s.tokens.push_back(id);
  s.chain.accept({&id, 1}, false);
  s.draft.met(id);
  telemetry_.token(s, time, previous);

  const auto in = [id](const std::vector<std::int32_t>& ids) { return std::find(ids.begin(), ids.end(), id) != ids.end(); };
  const bool model_end = runtime_.tokenizer != nullptr && in(runtime_.tokenizer->ends()) && !request.ignore_eos;
  if (model_end || in(request.stop_tokens)) return finish(s, Finish::stop, {}, {std::move(info)});
  std::string text = s.text.push(id);
  if (s.text.stopped()) return finish(s, Finish::stop, {}, {std::move(info)}, std::move(text));
  if (s.generated() >= request.max_tokens || s.tokens.size() >= longest_)
    return finish(s, Finish::length, {}, {std::move(info)}, std::move(text));
  Event event;
  event.tokens.push_back(std::move(info));
  event.text = std::move(text);
  deliver(s, event);
}

void Loop::finish(Sequence& s, Finish why, Status error, std::vector<TokenInfo> tokens, std::string text, std::uint64_t retry_ns) {
  if (s.state == SequenceState::done) return;
  const bool led = s.index == 0 && s.generated() == 0;
  Event event;
  event.tokens = std::move(tokens);
  event.text = std::move(text) + s.text.finish();
  event.finish = why;
  event.error = std::move(error);
  event.retry_ns = retry_ns;
  if (s.state == SequenceState::running && why != Finish::error) {
    prefixes_.insert_tail(s, now());
    tier_.offer(s, false);
  }
  tier_.forget(s.id);
  s.state = SequenceState::done;
  s.drop_state();
  --s.request->open_answers;
  deliver(s, event);
  telemetry_.finished(s, event, now());
  if (!led || why == Finish::length) return;
  // Nobody would compute the prompt for those that follow.
  for (auto& other : sequences_)
    if (other->request == s.request && other->state == SequenceState::following) finish(*other, why, event.error, {}, {}, retry_ns);
}

void Loop::deliver(Sequence& s, Event& event) {
  auto& request = *s.request;
  const auto time = now();
  event.index = s.index;
  event.vector = std::move(s.vector);
  if (!s.prompt_told && request.request.score_prompt && request.prompt_logprobs.size() == s.prompt_tokens) {
    event.prompt = request.prompt_logprobs;
    s.prompt_told = true;
  }
  event.unsaid = s.generated() - s.text.pushed() + s.text.unsaid();
  event.usage = {s.prompt_tokens, s.generated(), request.cached_tokens, s.draft.accepted, s.draft.rejected};
  event.timings.queued = request.first_run_ns.value_or(time) - request.arrival_ns;
  event.timings.total = time - request.arrival_ns;
  if (s.generated() > 0) {
    event.timings.ttft = s.first_token_ns - request.arrival_ns;
    event.timings.decode = s.last_token_ns - s.first_token_ns;
  }
  if (request.muted || !request.on_event) return;
  try {
    request.on_event(event);
    return;
  } catch (const std::exception& e) {
    log::error("engine", "request " + request.request.id + ": its receiver failed and the request is cancelled: " + e.what());
  } catch (...) {
    log::error("engine", "request " + request.request.id + ": its receiver failed and the request is cancelled");
  }
  request.muted = true;
  cancel(request.id);
}

// The requests of these parts end; what the step stored is undefined.
void Loop::fail_parts(const std::vector<Part>& parts, const Status& error) {
  for (const auto& part : parts) finish(*part.sequence, Finish::error, error);
}

void Loop::fail_all(const Status& error) {
  if (error.code == Code::device_lost) {
    lost_ = true;
    log::error("engine", error.text);
    for (auto& pool : pools_) pool.completed(UINT64_MAX);  // every ticket counts as failed
    slots_.completed(UINT64_MAX);
    prefixes_.clear();
  }
  for (auto& s : sequences_) finish(*s, Finish::error, error);
}

// Forgets what is done.
void Loop::sweep() {
  const auto before = sequences_.size();
  for (const auto& s : sequences_)
    if (s->state == SequenceState::done) speculation_.ended(*s);
  std::erase_if(sequences_, [](const auto& s) { return s->state == SequenceState::done; });
  if (sequences_.size() == before) return;
  prefixes_.settle(now());
  const auto over = std::stable_partition(requests_.begin(), requests_.end(), [](const auto& r) { return r->open_answers > 0; });
  const std::lock_guard lock{mutex_};
  for (auto at = over; at != requests_.end(); ++at) {
    --open_;
    if (!(*at)->first_run_ns) --queued_;
  }
  requests_.erase(over, requests_.end());
}

}  // namespace mekik::engine
