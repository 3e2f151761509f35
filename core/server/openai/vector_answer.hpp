// Answers that are one vector for each text of a request. Internal.
#pragma once
#include <vector>

#include "server/limits.hpp"
#include "server/openai/answer.hpp"

namespace mekik::server::openai {

class VectorAnswer : public Answer {
 public:
  explicit VectorAnswer(AnswerOptions options) : Answer{std::move(options)}, rows_(options_.choices) {}
  void chunks(std::uint32_t, const engine::Event&, std::vector<json::object>&) override {}
  void collect(std::uint32_t choice, const engine::Event& event) override {
    count(choice, event);
    if (!event.vector.empty()) rows_[choice] = event.vector;
  }

  std::size_t result_bytes() const override { return rows_.size() * (rows_.empty() ? 0 : rows_[0].size()) * kVectorNumberBytes; }

 protected:
  const char* chunk_object() const override { return "list"; }
  json::object tokens_used() const {
    const json::object all = usage();
    return {{"prompt_tokens", all.at("prompt_tokens")}, {"total_tokens", all.at("prompt_tokens")}};
  }
  json::array warnings() const { return json::array(options_.warnings.begin(), options_.warnings.end()); }

  std::vector<std::vector<float>> rows_;  // by choice
};

}  // namespace mekik::server::openai
