// What a benchmark comes to, for people and for programs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "bench/bench.hpp"
#include "bench/machine.hpp"
#include "bench/work.hpp"

namespace mekik::bench {

struct Report {
  Machine machine;
  double load_before = 0, load_after = 0;
  std::string started;  // date and time, UTC
  std::string version;
  const engine::Model* model = nullptr;
  std::optional<mekik_roof> roof;  // none: the backend does not say
  BytesOf bytes_of;
  std::vector<Outcome> outcomes;
};

// The least time that a test's run could take by the roof, in seconds, and whether memory is what bounds it.
struct Bound {
  double seconds = 0;
  bool memory = false;
};
Bound bound_of(const Work& work, const mekik_roof& roof);

json::object to_json(const Report& report);
std::string to_text(const Report& report);

}  // namespace mekik::bench
