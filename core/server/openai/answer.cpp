#include "server/openai/answer.hpp"

#include <algorithm>
#include <cmath>

namespace mekik::server::openai {

json::value finish_reason(engine::Finish finish) {
  if (finish == engine::Finish::stop) return "stop";
  if (finish == engine::Finish::length) return "length";
  return nullptr;
}

json::value logprob_number(float logprob) {
  if (std::isnan(logprob)) return nullptr;
  return std::isinf(logprob) ? -9999.0 : static_cast<double>(logprob);
}

Answer::Answer(AnswerOptions options) : options_{std::move(options)}, counts_(options_.choices) {}

void Answer::count(std::uint32_t choice, const engine::Event& event) {
  Count& of = counts_[choice];
  of.usage = event.usage;
  if (event.finish != engine::Finish::none && !of.finished) {
    of.finished = true;
    ++finished_;
  }
}

std::vector<engine::TokenInfo> Answer::said(std::uint32_t choice, const engine::Event& event) { return counts_[choice].said.take(event); }

std::uint32_t Answer::completion_tokens() const {
  std::uint32_t sum = 0;
  for (const Count& count : counts_) sum += count.usage.completion_tokens;
  return sum;
}

// A prompt is counted once, however many answers it gets; of its cached tokens the largest count of an answer.
json::object Answer::usage() const {
  std::uint64_t prompt = 0, completion = 0, cached = 0, accepted = 0, rejected = 0;
  for (std::size_t begin = 0; begin < counts_.size(); begin += options_.answers_per_prompt) {
    std::uint64_t prompt_here = 0, cached_here = 0;
    for (std::size_t i = begin; i < begin + options_.answers_per_prompt; ++i) {
      prompt_here = std::max<std::uint64_t>(prompt_here, counts_[i].usage.prompt_tokens);
      cached_here = std::max<std::uint64_t>(cached_here, counts_[i].usage.cached_tokens);
      completion += counts_[i].usage.completion_tokens;
      accepted += counts_[i].usage.accepted_drafts;
      rejected += counts_[i].usage.rejected_drafts;
    }
    prompt += prompt_here;
    cached += cached_here;
  }
  json::object out;
  out["prompt_tokens"] = prompt;
  out["completion_tokens"] = completion;
  out["total_tokens"] = prompt + completion;
  out["prompt_tokens_details"] = json::object{{"cached_tokens", cached}};
  json::object details;
  if (accepted + rejected > 0) details = {{"accepted_prediction_tokens", accepted}, {"rejected_prediction_tokens", rejected}};
  add_details(details);
  if (!details.empty()) out["completion_tokens_details"] = std::move(details);
  return out;
}

json::object Answer::envelope(const char* object, bool chunk) {
  json::object out;
  out["id"] = options_.id;
  out["object"] = object;
  out["created"] = options_.created;
  out["model"] = options_.model;
  out["choices"] = json::array{};
  if (chunk && options_.include_usage) out["usage"] = nullptr;
  if (!options_.warnings.empty() && !warned_) {
    json::array warnings;
    for (const std::string& warning : options_.warnings) warnings.emplace_back(warning);
    out["warnings"] = std::move(warnings);
    warned_ = true;  // in a stream: the first chunk only
  }
  return out;
}

json::object Answer::usage_chunk() {
  json::object out = envelope(chunk_object(), true);
  out["usage"] = usage();
  return out;
}

}  // namespace mekik::server::openai
