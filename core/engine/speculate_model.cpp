// Proposals of a drafter that has a model: whether they are worth its time, and the rounds in which they grow by a token each.
#include <algorithm>
#include <limits>

#include "engine/speculate.hpp"
#include "plugin/registry.hpp"
#include "sample/random.hpp"

namespace mekik::engine {
namespace {

constexpr double kGuess = 0.7;            // of a draft model's tokens are expected to come true, before any were seen
constexpr double kGuessedShare = 0.25;    // of the model's time for its draft model's, before it is measured
constexpr double kFade = 0.9;             // of the mean time of a run
constexpr double kWorthARun = 1.03;       // what a run must promise; what is run of it must promise more, by then
constexpr std::uint32_t kTriedDepth = 2;  // of a proposal that only finds out whether drafting would pay

}  // namespace

// How many tokens to propose for each of `parts` sequences like this one.
std::uint32_t Speculation::depth(const Sequence& s, std::uint32_t parts, std::uint32_t most) {
  if (!runtime_.adaptive_drafts) return most;
  const auto alone = costs_.of(parts);
  if (!alone || costs_.age(parts) > kComparedEvery) return 0;
  const double come = s.draft.share.of(share_.of(kGuess)), run = draft_ns_ > 0 ? draft_ns_ : kGuessedShare * *alone;
  double best_rate = kWorthARun * parts / *alone, tokens = parts, value = 1;
  std::uint32_t best = 0;
  for (std::uint32_t n = 1; n <= most; ++n) {
    value *= come;
    tokens += parts * value;
    const double rate = tokens / (costs_.of(parts * (n + 1)).value_or(1e18) + n * run);
    if (rate <= best_rate) continue;
    best_rate = rate;
    best = n;
  }
  if (best > 0) {
    try_again_ = kTries;
    idle_ = 0;
    // A text that is easy for a while may be followed further than the mean says; least_value() ends it.
    return std::min(most, 2 * best);
  }
  if (++idle_ < try_again_ * parts) return 0;
  idle_ = 0;
  try_again_ = std::min(2 * try_again_, kFewestTries);
  return std::min(most, kTriedDepth);
}

// The probability below which a further token is not worth what it costs to propose and to run.
double Speculation::least_value(std::uint32_t parts, std::size_t open) const {
  if (!runtime_.adaptive_drafts) return 0;
  const double alone = costs_.of(parts).value_or(1), more = costs_.of(parts + 1).value_or(alone) - alone;
  const double cost = draft_ns_ / static_cast<double>(open) + std::max(0.0, more);
  return std::min(0.9, cost / (alone / parts));
}

std::vector<Speculation::Open> Speculation::open_proposals(const std::vector<Part>& parts, const DraftRoom& room) {
  std::vector<Open> out;
  const bool pure = std::all_of(parts.begin(), parts.end(), [](const Part& part) { return part.tokens == 1 && part.n_rows == 1; });
  for (std::size_t p = 0; p < parts.size(); ++p) {
    tokens_[p].clear();
    confidences_[p].clear();
    Sequence& s = *parts[p].sequence;
    if (room.granted[p] == 0 || (!pure && runtime_.adaptive_drafts)) continue;
    const std::uint32_t most = depth(s, static_cast<std::uint32_t>(parts.size()), room.granted[p]);
    if (most == 0) continue;
    s.draft.asked = true;
    asked_.push_back(p);
    if (!model_->follow(s.id, s.tokens)) continue;
    auto chain = s.chain.fork();
    out.push_back({p, most, chain ? std::optional{std::move(*chain)} : std::nullopt});
  }
  return out;
}

bool Speculation::ask_model(const std::vector<Part>& parts, const DraftRoom& room) {
  tokens_.resize(parts.size());
  confidences_.resize(parts.size());
  asked_.clear();
  std::vector<Open> open = open_proposals(parts, room);
  if (asked_.empty()) return false;
  Status status;
  for (bool first = true; status.ok() && (first || !open.empty()); first = false) {
    std::vector<std::uint64_t> ids;
    for (const Open& o : open) ids.push_back(parts[o.part].sequence->id);
    const auto began = runtime_.clock->now_ns();
    status = model_->run(ids);
    const auto took = static_cast<double>(runtime_.clock->now_ns() - began);
    if (status.ok() && !first) draft_ns_ = draft_ns_ > 0 ? kFade * draft_ns_ + (1 - kFade) * took : took;  // the first round catches up
    if (status.ok()) status = extend(parts, open);
    const double least = least_value(static_cast<std::uint32_t>(parts.size()), std::max<std::size_t>(open.size(), 1));
    std::erase_if(open, [&](const Open& o) { return tokens_[o.part].size() >= o.room || o.value < least; });
  }
  if (status.ok()) return true;
  complain("fails, and its steps run without drafts: " + status.text);
  for (const std::size_t p : asked_) tokens_[p].clear(), confidences_[p].clear();
  return false;
}

// Asks the drafter for the next token of each proposal, by the rows of the last run. Those that get none are closed.
Status Speculation::extend(const std::vector<Part>& parts, std::vector<Open>& open) {
  const std::size_t vocab = runtime_.vocab;
  std::erase_if(open, [&](const Open& o) { return model_->row(parts[o.part].sequence->id).empty(); });
  if (open.empty()) return {};
  logits_.resize(open.size() * vocab);
  asks_.assign(open.size(), {});
  outs_.assign(open.size(), {});
  std::vector<std::int32_t> tokens(open.size(), -1);
  std::vector<float> confidences(open.size(), 0);
  for (std::size_t i = 0; i < open.size(); ++i) {
    const Sequence& s = *parts[open[i].part].sequence;
    const auto row = model_->row(s.id);
    const std::span<float> logits{logits_.data() + i * vocab, vocab};
    std::copy_n(row.begin(), std::min(row.size(), vocab), logits.begin());
    std::fill(logits.begin() + static_cast<std::ptrdiff_t>(std::min(row.size(), vocab)), logits.end(),
              -std::numeric_limits<float>::infinity());
    const auto all = model_->tokens(s.id);
    mekik_draft_ask& ask = asks_[i];
    ask.uniform = sample::uniform(s.request->seed, s.index, all.size());
    if (open[i].chain) MEKIK_CHECK_OK(open[i].chain->apply(logits, ask.uniform));
    ask.seq = s.id;
    ask.tenant = s.request->request.salt;
    ask.tokens = all.data();
    ask.n_tokens = static_cast<std::uint32_t>(all.size());
    ask.n_prompt = s.prompt_tokens;
    ask.drafted = static_cast<std::uint32_t>(tokens_[open[i].part].size());
    ask.room = 1;
    ask.logits = logits.data();
    ask.vocab = runtime_.vocab;
    outs_[i] = {&tokens[i], &confidences[i], 0, 0};
  }
  MEKIK_CHECK_OK(plugin::to_status(runtime_.drafter->propose(runtime_.drafter.get(), asks_.data(), static_cast<std::uint32_t>(asks_.size()),
                                                             sizeof(mekik_draft_ask), outs_.data(), sizeof(mekik_draft_out)),
                                   ""));
  for (std::size_t i = 0; i < open.size(); ++i) {
    Open& o = open[i];
    if (outs_[i].n > 1) complain("proposes more tokens than it was asked for; the rest is not used");
    if (outs_[i].n == 0 || !usable(tokens[i])) {
      o.room = 0;
      continue;
    }
    const float confidence = trusted(confidences[i]);
    tokens_[o.part].push_back(tokens[i]);
    confidences_[o.part].push_back(confidence);
    o.value *= comes_true(*parts[o.part].sequence, confidence);
    model_->append(parts[o.part].sequence->id, tokens[i]);
    if (o.chain) o.chain->accept({&tokens[i], 1}, false);
  }
  return {};
}

}  // namespace mekik::engine
