// The programs that backends are compared on: one a row of ops.def and more, and small whole models.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "program_builder.hpp"

namespace mekik::test {

struct OpCase {
  std::string name;
  bool every_backend;  // of the tier that no backend may lack
  // Builds the operations; rows of `tokens` come from embeddings. Gives the tensor whose rows are compared and its row size.
  std::function<std::pair<ProgramBuilder::Id, std::int64_t>(ProgramBuilder&)> build;
  double exact_bound = 2e-5;  // of the largest value in the reference's row
  bool whole = false;         // sequences come in one step each: an operation looks to both sides
};
inline constexpr std::int32_t kVocab = 64;  // ids of the tests; the last two rows of every embedding are NaN and infinite

// Rows [T][shape...] of random numbers, chosen by the token.
ProgramBuilder::Id random_rows(ProgramBuilder& b, std::vector<std::int64_t> shape, float mean = 0, float spread = 1);
// Rows of the case as "logits".
void finish(ProgramBuilder& b, ProgramBuilder::Id rows, std::int64_t size);

// An operation with one result of operand 0's row shape; `more` makes the operands after the first.
OpCase map_case(std::string name, bool every, std::uint32_t code, std::vector<std::int64_t> shape, std::vector<std::int64_t> ints,
                std::vector<double> reals, std::function<std::vector<ProgramBuilder::Id>(ProgramBuilder&)> more = {}, double bound = 2e-6);

std::vector<OpCase> basic_cases();
std::vector<OpCase> composite_cases();
std::vector<OpCase> family_cases();
std::vector<OpCase> expert_cases();     // mixtures of experts
std::vector<OpCase> recurrent_cases();  // slots
std::vector<OpCase> latent_cases();     // latent attention
std::vector<OpCase> encoder_cases();
// linear over one form and shape.
OpCase linear_case(const std::string& form, std::uint64_t n, std::uint64_t k);

// Two layers of a decoder: grouped heads, rope, glu, weights in `form`, KV stored as `kv`; a window below 0 is a chunk.
void build_llama(ProgramBuilder& b, const std::string& form, const char* kv, std::int64_t window);
// A layer of each recurrent operation, and an attention.
void build_hybrid(ProgramBuilder& b);
// A router and experts.
void build_experts(ProgramBuilder& b, const std::string& form);
// Mamba 1: every channel a head of its own, with decays by column.
void build_mamba(ProgramBuilder& b);
// Latent attention with its projections in `form`.
void build_latent(ProgramBuilder& b, const std::string& form, const char* kv);
// Two layers that see both sides. Sequences must come whole.
void build_encoder(ProgramBuilder& b);

}  // namespace mekik::test
