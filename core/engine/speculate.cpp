#include "engine/speculate.hpp"

#include <algorithm>
#include <cmath>

#include "base/log.hpp"
#include "engine/loop.hpp"
#include "plugin/registry.hpp"
#include "sample/draw.hpp"

namespace mekik::engine {
namespace {

constexpr double kWorthIt = 1.10;     // how much more a step with drafts must promise, by tokens per second: measured times are uncertain
constexpr double kOthersWait = 1.10;  // how much longer it may make the wait of a sequence that drafts nothing

bool decodes(const Part& part) {
  const Sequence& s = *part.sequence;
  return part.tokens == 1 && part.n_rows == 1 && s.left() == 1 && s.generated() > 0;
}

}  // namespace

Speculation::Speculation(const Runtime& runtime, Telemetry& telemetry) : runtime_{runtime}, telemetry_{telemetry} {
  if (runtime.draft_model) model_ = std::make_unique<DraftModel>(*runtime.draft_model);
}

std::uint32_t Speculation::most(const Sequence& s, std::uint32_t longest) const {
  if (!on() || runtime_.vectors || runtime_.whole || s.state != SequenceState::running || s.left() != 1 || s.generated() == 0) return 0;
  const Request& request = s.request->request;
  // The step gives one token more than is proposed.
  const std::uint64_t length = s.tokens.size() + 1;
  const std::uint32_t answer = request.max_tokens - std::min(request.max_tokens, s.generated() + 1);
  return std::min({runtime_.max_drafts, rows(), answer, length >= longest ? 0u : static_cast<std::uint32_t>(longest - length)});
}

void Speculation::complain(const std::string& what) {
  if (!std::exchange(complained_, true)) log::warning("engine", "the drafter " + runtime_.drafter_name + " " + what + " (said once)");
}

bool Speculation::usable(std::int32_t token) {
  if (token >= 0 && static_cast<std::uint32_t>(token) < runtime_.vocab) return true;
  complain("proposes token " + std::to_string(token) + ", which the vocabulary does not have");
  return false;
}

float Speculation::trusted(float confidence) { return std::isfinite(confidence) ? std::clamp(confidence, 0.0F, 1.0F) : 0.0F; }

// The guess of an earlier step, which was not run, against what came.
void Speculation::settle_guess(Sequence& s) {
  DraftState& d = s.draft;
  if (d.guess < 0 || d.guess_at >= s.tokens.size()) return;
  const bool came = s.tokens[d.guess_at] == d.guess;
  this->came(s, d.guess_confidence, came);
  runtime_.drafter->verified(runtime_.drafter.get(), s.id, 0, came ? 1 : 0);
  d.guess = -1;
}

// Every decoding sequence is asked for, if only to see how good its drafts would be.
bool Speculation::ask(const std::vector<Part>& parts, const DraftRoom& room) {
  tokens_.resize(parts.size());
  confidences_.resize(parts.size());
  asks_.clear();
  outs_.clear();
  asked_.clear();
  for (std::size_t p = 0; p < parts.size(); ++p) {
    tokens_[p].clear();
    confidences_[p].clear();
    if (!decodes(parts[p])) continue;
    Sequence& s = *parts[p].sequence;
    settle_guess(s);
    s.draft.asked = true;
    const std::uint32_t most = std::max(room.granted[p], 1u);
    tokens_[p].resize(most);
    confidences_[p].resize(most);
    mekik_draft_ask ask{};
    ask.seq = s.id;
    ask.tenant = s.request->request.salt;
    ask.tokens = s.tokens.data();
    ask.n_tokens = static_cast<std::uint32_t>(s.tokens.size());
    ask.n_prompt = s.prompt_tokens;
    ask.room = most;
    ask.vocab = runtime_.vocab;
    asks_.push_back(ask);
    outs_.push_back({tokens_[p].data(), confidences_[p].data(), 0, 0});
    asked_.push_back(p);
  }
  if (asks_.empty()) return false;
  const auto code = runtime_.drafter->propose(runtime_.drafter.get(), asks_.data(), static_cast<std::uint32_t>(asks_.size()),
                                              sizeof(mekik_draft_ask), outs_.data(), sizeof(mekik_draft_out));
  const Status status = plugin::to_status(code, "");
  if (!status.ok()) complain("fails, and its steps run without drafts: " + status.text);
  clean(parts);
  if (!status.ok())
    for (const std::size_t p : asked_) tokens_[p].clear();
  return status.ok();
}

// What cannot be run is cut off: an answer never depends on what a drafter says.
void Speculation::clean(const std::vector<Part>& parts) {
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    auto& tokens = tokens_[asked_[i]];
    auto& confidences = confidences_[asked_[i]];
    std::size_t n = outs_[i].n;
    if (n > tokens.size()) complain("proposes more tokens than it was asked for; the rest is not used"), n = tokens.size();
    std::size_t good = 0;
    while (good < n && usable(tokens[good])) ++good;
    n = good;
    tokens.resize(n);
    confidences.resize(n);
    for (float& c : confidences) c = trusted(c);
    if (n == 0) continue;
    DraftState& d = parts[asked_[i]].sequence->draft;
    d.guess = tokens[0];
    d.guess_confidence = confidences[0];
    d.guess_at = parts[asked_[i]].sequence->tokens.size();
  }
}

void Speculation::propose(const std::vector<Part>& parts, const DraftRoom& room) {
  if (model_ ? ask_model(parts, room) : ask(parts, room)) choose(parts, room);
  for (std::size_t p = 0; p < parts.size(); ++p)
    if (!tokens_[p].empty()) parts[p].sequence->draft.guess = -1;  // it is run
}

// Cuts the proposals to what is worth running: tokens in the order of their probability, which within a sequence falls.
void Speculation::choose(const std::vector<Part>& parts, const DraftRoom& room) {
  std::vector<Candidate> candidates;
  for (const std::size_t p : asked_) {
    double value = 1;
    std::size_t most = std::min<std::size_t>(tokens_[p].size(), room.granted[p]);
    if (runtime_.adaptive_drafts && !model_ && !parts[p].sequence->draft.leaning.known()) most = 0;
    for (std::size_t i = 0; i < most; ++i) {
      value *= comes_true(*parts[p].sequence, confidences_[p][i]);
      candidates.push_back({p, value});
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) { return a.value > b.value; });
  if (candidates.size() > std::min(room.tokens, rows())) candidates.resize(std::min(room.tokens, rows()));
  // With a piece of a prompt in it nobody can say what a step costs, and it is full anyway.
  const bool pure = std::all_of(parts.begin(), parts.end(), [](const Part& part) { return decodes(part); });
  const std::size_t n = !runtime_.adaptive_drafts ? candidates.size() : pure ? paying(candidates, parts.size()) : 0;
  std::vector<std::size_t> kept(parts.size(), 0);
  for (std::size_t i = 0; i < n; ++i) ++kept[candidates[i].part];
  for (const std::size_t p : asked_) tokens_[p].resize(kept[p]), confidences_[p].resize(kept[p]);
}

// How many of the candidates give most tokens per second, if that is more than without any.
std::size_t Speculation::paying(std::vector<Candidate>& candidates, std::size_t parts) const {
  const auto base = static_cast<std::uint32_t>(parts);
  const auto alone = costs_.of(base);
  if (candidates.empty() || !alone || costs_.age(base) > kComparedEvery) return 0;
  std::size_t best = 0, drafting = 0;
  double best_rate = kWorthIt * static_cast<double>(parts) / *alone, tokens = static_cast<double>(parts);
  std::vector<bool> has(parts, false);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    tokens += candidates[i].value;
    if (!has[candidates[i].part]) has[candidates[i].part] = true, ++drafting;
    const double cost = costs_.of(base + static_cast<std::uint32_t>(i) + 1).value_or(1e18);
    if (drafting < parts && cost > kOthersWait * *alone) continue;
    if (tokens / cost <= best_rate) continue;
    best_rate = tokens / cost;
    best = i + 1;
  }
  return best;
}

void Speculation::measured(const std::vector<Part>& parts, std::uint64_t step_ns) {
  if (!on()) return;
  std::uint32_t tokens = 0;
  for (const Part& part : parts) {
    tokens += part.tokens;
    if (part.tokens != 1 + part.drafts.size() || part.n_rows != part.tokens) return;
  }
  costs_.measured(tokens, step_ns);
}

void Speculation::verified(const Part& part, std::uint32_t accepted) {
  Sequence& s = *part.sequence;
  const auto run = static_cast<std::uint32_t>(part.drafts.size());
  for (std::uint32_t i = 0; i < std::min(accepted + 1, run); ++i) {
    came(s, part.confidences[i], i < accepted);
    s.draft.share.seen(i < accepted);
    share_.seen(i < accepted);
  }
  telemetry_.drafted(run, accepted);
  runtime_.drafter->verified(runtime_.drafter.get(), s.id, run, accepted);
}

void Speculation::ended(const Sequence& s) {
  if (!on() || !s.draft.asked) return;
  if (model_) model_->forget(s.id);
  runtime_.drafter->forget(runtime_.drafter.get(), s.id, s.request->request.salt, s.tokens.data(),
                           static_cast<std::uint32_t>(s.tokens.size()), s.prompt_tokens);
}

// Beside what is due, as far as the limits leave room. Where they do not, or no block or slot is left, fewer are run.
void Loop::add_drafts(std::vector<Part>& parts, const std::vector<std::uint32_t>& granted) {
  if (!speculation_.on() || parts.empty()) return;
  DraftRoom room{runtime_.limits.max_tokens, {}};
  std::uint32_t rows = runtime_.limits.max_rows;
  for (const Part& part : parts) {
    room.tokens -= part.tokens;
    rows -= part.n_rows;
    room.granted.push_back(std::min(granted[room.granted.size()], speculation_.most(*part.sequence, longest_)));
  }
  room.tokens = std::min(room.tokens, rows);
  speculation_.propose(parts, room);
  std::uint32_t first_row = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    Part& part = parts[p];
    Sequence& s = *part.sequence;
    part.first_row = first_row;
    auto n = static_cast<std::uint32_t>(speculation_.tokens(p).size());
    // A recurrent state cannot be taken back: the step leaves the old one where it is, and writes to a slot that nobody needs.
    if (n > 0 && runtime_.slots && !s.next_slot && (!spare_slot() || !(s.next_slot = take_slot()))) n = 0;
    if (n > 0) n = take_blocks(s, 1 + n) - 1;
    part.drafts = speculation_.tokens(p).first(n);
    part.confidences = speculation_.confidences(p).first(n);
    part.tokens += n;
    part.n_rows += n;
    first_row += part.n_rows;
  }
}

// The rows of a part with drafts, one after the other: each token is drawn as it would be without drafts, and as long as it is the one
// that was proposed, the row behind it is the one that it leads to. Bits, seeds and ends of answers cannot differ.
void Loop::verify(const Part& part) {
  Sequence& s = *part.sequence;
  s.draft.run(part.drafts);
  const std::size_t vocab = runtime_.vocab;
  std::uint32_t accepted = 0;
  for (std::uint32_t j = 0;; ++j) {
    const std::span<float> row{logits_.data() + std::size_t{part.first_row + j} * vocab, vocab};
    if (Status status = sample::check_logits(row); !status.ok()) {
      fail_parts({part}, status);
      break;
    }
    const std::uint32_t before = s.draft.accepted;
    sample_row(s, row);
    if (s.draft.accepted == before) break;  // another token, or behind the last draft
    ++accepted;
    if (s.state == SequenceState::done) break;
    if (runtime_.slots) continue;
    ++s.computed;
    keep_state(s);
  }
  s.draft.running = {};
  speculation_.verified(part, accepted);
  if (s.state == SequenceState::done) return;
  // Of a recurrent state there is what it was before the step, and what it is after all of it.
  if (runtime_.slots && accepted == part.drafts.size()) {
    s.computed += part.tokens;
    keep_state(s);
  }
  s.next_slot.reset();
  for (auto& table : s.blocks)
    while (table.size() > blocks_for(s.computed)) table.pop_back();
}

}  // namespace mekik::engine
