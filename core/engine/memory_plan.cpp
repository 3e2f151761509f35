#include "engine/memory_plan.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "base/text.hpp"

namespace mekik::engine {

namespace {

constexpr std::uint64_t kProcessBytes = 16u << 20;      // code, libraries, stacks, buffers of the server: measured, rounded up
constexpr std::uint64_t kSamplingBytes = 24;            // per token of the vocabulary: copies and weights of the row that is sampled
constexpr double kMachineShare = 0.85;                  // of the machine may be planned for
constexpr std::uint32_t kWholeTokens = 8192;            // of a step that must hold whole sequences, where the pipeline says nothing
constexpr std::uint64_t kDefaultCacheBytes = 1u << 30;  // of a pipeline that names no cache.memory
constexpr std::uint64_t kStateShare = 4;                // this part of the cache's memory is for recurrent states that are kept
constexpr std::uint64_t kMaxKeptStates = 65536;

std::uint32_t blocks_for(std::uint64_t tokens, std::uint32_t block_tokens) {
  return static_cast<std::uint32_t>((tokens + block_tokens - 1) / block_tokens);
}

// Blocks that one sequence can hold at once in a group: the whole context, or the window and the step that moves it.
std::uint32_t most_blocks(const program::StateGroup& group, std::uint32_t context, std::uint32_t step, const config::Pipeline& pipeline) {
  const std::uint32_t all = blocks_for(context, pipeline.block_tokens);
  if (group.window == 0) return all;
  return std::min(all, blocks_for(group.window + step, pipeline.block_tokens) + 1);
}

// Where not even one sequence of full length fits, as long a one as does; a group with a window needs that and what it moves over.
void share_for_one(std::uint64_t bytes, const program::Program& program, std::uint32_t context, const config::Pipeline& pipeline,
                   const mekik_plan& plan, mekik_limits& limits) {
  const auto blocks = [&](std::size_t g, std::uint32_t tokens) {
    const std::uint32_t all = blocks_for(tokens, pipeline.block_tokens);
    const std::uint64_t window = program.groups[g].window;
    return window == 0 ? all : std::min(all, window_blocks(window, pipeline.block_tokens));
  };
  std::uint32_t fits = 0, too_long = context + 1;
  while (too_long - fits > 1) {
    const std::uint32_t tokens = fits + (too_long - fits) / 2;
    std::uint64_t needs = 0;
    for (std::size_t g = 0; g < program.groups.size(); ++g) needs += std::uint64_t{blocks(g, tokens)} * plan.block_bytes[g];
    (needs <= bytes ? fits : too_long) = tokens;
  }
  for (std::size_t g = 0; g < program.groups.size(); ++g) limits.n_blocks[g] = blocks(g, fits);
}

// The most sequences of full length, counted in 1/256, whose blocks fit `bytes`; each group gets blocks in that proportion.
void share_blocks(std::uint64_t bytes, const program::Program& program, std::uint32_t context, const config::Pipeline& pipeline,
                  const mekik_plan& plan, mekik_limits& limits) {
  std::uint64_t one_sequence = 0;
  for (std::size_t g = 0; g < program.groups.size(); ++g)
    one_sequence += std::uint64_t{most_blocks(program.groups[g], context, limits.max_tokens, pipeline)} * plan.block_bytes[g];
  const double sequences =
      std::min(static_cast<double>(pipeline.max_sequences), static_cast<double>(bytes) / static_cast<double>(one_sequence));
  if (sequences < 1) return share_for_one(bytes, program, context, pipeline, plan, limits);
  for (std::size_t g = 0; g < program.groups.size(); ++g)
    limits.n_blocks[g] = static_cast<std::uint32_t>(sequences * most_blocks(program.groups[g], context, limits.max_tokens, pipeline));
}

// Slots for recurrent states that the cache keeps, beyond one a sequence: two a block of everything that can run at once are plenty.
std::uint32_t kept_slots(std::uint64_t bytes, const program::Program& program, std::uint32_t context, const config::Pipeline& pipeline,
                         const mekik_plan& plan) {
  if (program.n_slots == 0 || plan.slot_bytes == 0) return 0;
  const std::uint64_t share = program.groups.empty() ? bytes : bytes / kStateShare;
  const std::uint64_t plenty = std::uint64_t{2} * pipeline.max_sequences * blocks_for(context, pipeline.block_tokens);
  return static_cast<std::uint32_t>(std::min({share / plan.slot_bytes, plenty, kMaxKeptStates}));
}

std::uint64_t kv_bytes(const program::Program& program, const mekik_limits& limits, const mekik_plan& plan) {
  std::uint64_t bytes = 0;
  for (std::size_t g = 0; g < program.groups.size(); ++g) bytes += std::uint64_t{limits.n_blocks[g]} * plan.block_bytes[g];
  return bytes;
}

// Tokens of a step. Where sequences must come whole it holds the longest.
std::uint32_t step_tokens(const config::Pipeline& pipeline, const program::Program& program, std::uint32_t context) {
  if (pipeline.batch_tokens_given || !program::needs_whole_sequences(program)) return pipeline.max_batch_tokens;
  return std::max(pipeline.max_batch_tokens, std::min(context, kWholeTokens));
}

// Rows of a step for drafts of all sequences together, and slots for the states behind them.
std::uint32_t draft_rows(const config::Pipeline& pipeline) { return std::min(2 * pipeline.max_drafts, pipeline.max_batch_tokens); }
std::uint32_t draft_slots(const config::Pipeline& pipeline) { return pipeline.max_drafts > 0 ? std::min(pipeline.max_sequences, 4u) : 0; }

}  // namespace

std::uint32_t window_blocks(std::uint64_t window, std::uint32_t block_tokens) { return blocks_for(window, block_tokens) + 1; }

std::uint64_t longest_sequence(const std::vector<program::StateGroup>& groups, const mekik_limits& limits) {
  std::uint64_t most = std::uint64_t{limits.max_blocks} * limits.block_tokens;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::uint64_t blocks = limits.n_blocks[g], window = groups[g].window;
    if (window > 0 && blocks >= window_blocks(window, limits.block_tokens)) continue;
    most = std::min(most, blocks * limits.block_tokens);
  }
  return most;
}

std::uint64_t machine_memory() {
  std::uint64_t bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::ifstream group{"/sys/fs/cgroup/memory.max"};
  if (std::uint64_t limit = 0; group >> limit) bytes = std::min(bytes, limit);
  return bytes;
}

Status plan_memory(const config::Pipeline& pipeline, const program::Program& program, std::uint32_t context, std::uint64_t vocab_bytes,
                   bool keeps, const std::function<Status(const mekik_limits&, mekik_plan&)>& ask_backend, mekik_limits& limits,
                   mekik_plan& backend_plan, MemoryPlan& plan) {
  limits = {};
  limits.struct_size = sizeof limits;
  limits.max_tokens = step_tokens(pipeline, program, context);
  limits.max_seqs = pipeline.max_sequences;
  limits.max_rows = pipeline.max_sequences + draft_rows(pipeline);
  limits.max_blocks = blocks_for(context, pipeline.block_tokens);
  limits.block_tokens = pipeline.block_tokens;
  limits.n_slots = program.n_slots > 0 ? pipeline.max_sequences + draft_slots(pipeline) : 0;
  plan.machine_bytes = machine_memory();
  limits.device_bytes = limits.host_bytes = plan.machine_bytes;
  MEKIK_CHECK_OK(ask_backend(limits, backend_plan));

  plan.weight_bytes = backend_plan.weight_bytes;
  plan.work_bytes = backend_plan.work_bytes + backend_plan.host_bytes;
  plan.slot_bytes = limits.n_slots * backend_plan.slot_bytes;
  plan.host_bytes = kProcessBytes + vocab_bytes +
                    program::output_size(program) * (std::uint64_t{limits.max_rows} * sizeof(float) + std::uint64_t{kSamplingBytes});
  const auto budget = static_cast<std::uint64_t>(static_cast<double>(plan.machine_bytes) * kMachineShare);
  plan.budget_bytes = budget;
  const std::uint64_t fixed = plan.total();
  if (fixed >= budget)
    return invalid("the model needs " + human_bytes(fixed) + " without any cache" +
                   (plan.tier_bytes > 0 ? " but the " + human_bytes(plan.tier_bytes) + " of its tier in the host's memory" : "") +
                   ", and 85% of this machine are " + human_bytes(budget) +
                   "; take a smaller or more quantized model, or lower scheduler.max_batch_tokens and max_sequences");

  keeps = keeps && !program::needs_whole_sequences(program);
  if (!program.groups.empty() || (program.n_slots > 0 && keeps)) {
    const std::uint64_t wanted = pipeline.cache_bytes > 0 ? pipeline.cache_bytes : std::min(kDefaultCacheBytes, budget - fixed);
    if (wanted > budget - fixed)
      return config::misconfigured(pipeline, "[cache]", "memory",
                                   human_bytes(wanted) + ", but beside the model's " + human_bytes(fixed) + " only " +
                                       human_bytes(budget - fixed) + " are left of 85% of this machine (" +
                                       human_bytes(plan.machine_bytes) + ")");
    const std::uint32_t kept = keeps ? kept_slots(wanted, program, context, pipeline, backend_plan) : 0;
    limits.n_slots += kept;
    share_blocks(wanted - kept * backend_plan.slot_bytes, program, context, pipeline, backend_plan, limits);
    for (std::size_t g = 0; g < program.groups.size() && pipeline.cache_tokens > 0; ++g)
      limits.n_blocks[g] = std::min(limits.n_blocks[g], blocks_for(pipeline.cache_tokens, pipeline.block_tokens) + pipeline.max_sequences);
    for (std::size_t g = 0; g < program.groups.size(); ++g) {
      if (limits.n_blocks[g] > 0) continue;
      return config::misconfigured(
          pipeline, "[cache]", "memory",
          human_bytes(wanted) + " do not hold one block of " + std::to_string(pipeline.block_tokens) + " tokens; raise it");
    }
  }
  limits.max_blocks = std::max(limits.max_blocks, 1u);
  MEKIK_CHECK_OK(ask_backend(limits, backend_plan));

  plan.weight_bytes = backend_plan.weight_bytes;
  plan.work_bytes = backend_plan.work_bytes + backend_plan.host_bytes;
  plan.peak_load_bytes = backend_plan.peak_load_bytes;
  plan.slot_bytes = limits.n_slots * backend_plan.slot_bytes;
  plan.kept_states = limits.n_slots - std::min(limits.n_slots, pipeline.max_sequences + draft_slots(pipeline));
  plan.kv_bytes = kv_bytes(program, limits, backend_plan);
  plan.block_tokens = pipeline.block_tokens;
  plan.kv = pipeline.kv;
  plan.max_sequences = pipeline.max_sequences;
  plan.max_batch_tokens = limits.max_tokens;
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    if (program.groups[g].window == 0) plan.token_bytes += backend_plan.block_bytes[g] / pipeline.block_tokens;
    else
      plan.window_bytes +=
          std::uint64_t{most_blocks(program.groups[g], context, limits.max_tokens, pipeline)} * backend_plan.block_bytes[g];
    plan.n_blocks = std::max(plan.n_blocks, limits.n_blocks[g]);
    if (program.groups[g].window > 0 && program.groups.size() > 1) continue;
    plan.pool_tokens = std::uint64_t{limits.n_blocks[g]} * pipeline.block_tokens;
  }
  // A sequence can be no longer than the pool.
  plan.context = static_cast<std::uint32_t>(std::min<std::uint64_t>(context, longest_sequence(program.groups, limits)));
  if (program::needs_whole_sequences(program)) plan.context = std::min(plan.context, limits.max_tokens);
  return {};
}

std::uint64_t MemoryPlan::longest() const {
  const std::uint64_t taken = total() - kv_bytes + window_bytes;
  return token_bytes == 0 || taken >= budget_bytes ? 0 : (budget_bytes - taken) / token_bytes;
}

std::string MemoryPlan::render() const {
  char line[256];
  std::string out = "memory plan\n";
  const auto row = [&](const char* what, std::uint64_t bytes, const std::string& note) {
    std::snprintf(line, sizeof line, "  %-12s %12s  %s\n", what, human_bytes(bytes).c_str(), note.c_str());
    out += line;
  };
  row("weights", weight_bytes, "packed, from a file of " + human_bytes(file_bytes));
  if (kv_bytes > 0)
    row("kv cache", kv_bytes,
        std::to_string(n_blocks) + " blocks of " + std::to_string(block_tokens) + " tokens, " + std::to_string(pool_tokens) +
            " tokens in all, in " + kv);
  if (slot_bytes > 0) row("states", slot_bytes, std::to_string(max_sequences) + " of sequences, " + std::to_string(kept_states) + " kept");
  if (tier_bytes > 0) row("slower tier", tier_bytes, "of the cache, in the host's memory; taken as it fills");
  if (draft_bytes > 0) row("draft model", draft_bytes, "weights, cache and work of what proposes tokens");
  row("work", work_bytes, "steps of " + std::to_string(max_batch_tokens) + " tokens");
  row("host", host_bytes, "tokenizer, logits, the program itself");
  std::snprintf(line, sizeof line, "%.0f%% of this machine's %s",
                machine_bytes ? 100.0 * static_cast<double>(total()) / static_cast<double>(machine_bytes) : 0.0,
                human_bytes(machine_bytes).c_str());
  row("total", total(), line);
  std::snprintf(line, sizeof line, "  up to %u sequences at once, each of up to %u tokens\n", max_sequences, context);
  return out + line;
}

}  // namespace mekik::engine
