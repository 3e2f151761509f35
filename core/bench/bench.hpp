// How fast a model runs through the engine: prompts, answers, behind a context, several at once.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "engine/model.hpp"
#include "plugin/registry.hpp"

namespace mekik::bench {

struct Test {
  enum class Kind { prefill, decode } kind = Kind::prefill;
  std::uint32_t tokens = 0;     // of each prompt, or of each answer
  std::uint32_t depth = 0;      // tokens before them, which are not timed
  std::uint32_t sequences = 1;  // at once
  std::string name() const;     // "prefill 512", "decode 128 at 2048, 8 sequences"
};

struct Outcome {
  Test test;
  std::vector<double> tokens_per_second;  // of each run
  std::vector<double> ttft;               // seconds; of each prompt of a prefill
  std::vector<double> tpot;               // seconds from token to token; of a decode
  // Nanoseconds of one more run, by operation of the program; empty: not asked for, or the backend does not say.
  std::vector<std::uint64_t> spent_ns;
};

// Code::invalid with everything that the model's plan has no room for, a line each.
Status check(const std::vector<Test>& tests, const engine::Model& model);

// Each test once to warm up and then `runs` times, in turns, so that what happens to the machine meanwhile happens to all. `profile`: and
// once more to see where the time goes. The model is loaded. Prompts are random tokens; nothing is drawn at random. One call at a time: it
// starts an engine of its own on the model. Code::unsupported where a depth is asked for and the cache keeps nothing.
Result<std::vector<Outcome>> run(const std::vector<Test>& tests, std::uint32_t runs, bool profile, plugin::Registry& registry,
                                 engine::Model& model);

}  // namespace mekik::bench
