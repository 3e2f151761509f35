// The chain of sampler plugins over one sequence's logits.
#pragma once
#include <mekik/plugin.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/status.hpp"

namespace mekik::sample {

// One link as the pipeline names it.
struct Link {
  const mekik_component* component = nullptr;
  const mekik_host* host = nullptr;
  const mekik_config* config = nullptr;
  const mekik_sampler& table() const { return *static_cast<const mekik_sampler*>(component->table); }
};

// The instances of one sequence, in the pipeline's order. Movable. Made in any thread, then used by the engine's only.
class Chain {
 public:
  // Errors: what a link says about the request, with the link's name.
  static Result<Chain> create(const std::vector<Link>& links, const mekik_vocab& vocab, std::string_view request_json);
  // Of equal state. Code::unsupported when a link cannot be copied.
  Result<Chain> fork() const;
  void accept(std::span<const std::int32_t> tokens, bool prompt);
  Status apply(std::span<float> logits, double uniform);

 private:
  struct Destroy {
    const mekik_sampler* table;
    void operator()(mekik_chain* chain) const { table->destroy(chain); }
  };
  struct Instance {
    const mekik_sampler* table;
    const char* name;
    std::unique_ptr<mekik_chain, Destroy> chain;
  };
  std::vector<Instance> instances_;
};

// The fields of a request that links declare as options, checked against their rows, as the JSON object that create() receives.
// What no link declares is put into `unknown`. Errors name the field and what is allowed.
Result<std::string> sampler_request(const std::vector<const mekik_component*>& chain, const json::object& fields,
                                    std::vector<std::string>& unknown);

}  // namespace mekik::sample
