// The parts of a weight, as a checkpoint or a GGUF file holds them, lent to a scheme.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "support/heap.hpp"
#include "support/instance.hpp"

namespace mekik::validate {

// One weight as a checkpoint might hold it.
struct Stored {
  struct One {
    std::string name, scheme;
    std::uint32_t num = 0;
    std::vector<std::int64_t> shape;
    std::string bytes;
    bool absent = false;
  };
  std::vector<One> parts;
  std::uint64_t experts = 1, n = 0, k = 0;
  std::string config;
};

// mekik_parts over a Stored, lent as long as this lives.
class LentParts {
 public:
  LentParts(const WorkoutPlan& plan, const Stored& stored, bool mapped) : plan_{plan}, stored_{stored}, lent_{plan.mode} {
    std::vector<mekik_part> parts;
    for (const Stored::One& one : stored.parts) {
      mekik_part p{};
      if (!one.absent) {
        p.name = lent_.c_str("a part's name", one.name);
        p.scheme = one.scheme.empty() ? nullptr : lent_.c_str("a part's scheme", one.scheme);
        p.num = one.num;
        p.rank = static_cast<std::uint32_t>(one.shape.size());
        std::copy(one.shape.begin(), one.shape.end(), p.shape);
        p.bytes = one.bytes.size();
        p.data = mapped ? lent_.bytes("a part's data", one.bytes.data(), one.bytes.size()) : nullptr;
      }
      parts.push_back(p);
    }
    raw_.struct_size = sizeof raw_;
    raw_.n_parts = static_cast<std::uint32_t>(parts.size());
    raw_.parts = lent_.rows("parts", parts, raw_.part_size);
    raw_.experts = stored.experts;
    raw_.n = stored.n;
    raw_.k = stored.k;
    raw_.config_json = lent_.text("config_json", stored.config);
    raw_.self = this;
    raw_.read = read;
    table_ = lent_.one("mekik_parts", raw_);
  }
  const mekik_parts* get() const { return table_; }
  void set_size(std::uint64_t experts, std::uint64_t n, std::uint64_t k) {
    raw_.experts = experts, raw_.n = n, raw_.k = k;
    table_ = lent_.one("mekik_parts", raw_);
  }
  int reads = 0;
  bool failing = false;

 private:
  static mekik_status read(void* self, std::uint32_t part, std::uint64_t at, void* to, std::uint64_t bytes) {
    const HostScope scope;
    auto* p = static_cast<LentParts*>(self);
    const mekik_host* host = p->plan_.subject.host().raw();
    const auto no = [&](mekik_status code, std::string_view why) { return host->fail(host, code, {why.data(), why.size()}); };
    ++p->reads;
    if (p->failing) return no(MEKIK_E_IO, "the file cannot be read");
    if (part >= p->stored_.parts.size() || p->stored_.parts[part].absent) {
      rule(called() + ": reads part " + std::to_string(part) + ", which is not there");
      return no(MEKIK_E_INVALID, "no such part");
    }
    const std::string& all = p->stored_.parts[part].bytes;
    if (at > all.size() || bytes > all.size() - at) {
      rule(called() + ": reads bytes " + std::to_string(at) + " and on, " + std::to_string(bytes) + " of them, of a part of " +
           std::to_string(all.size()));
      return no(MEKIK_E_INVALID, "past the end");
    }
    std::memcpy(to, all.data() + at, bytes);
    return MEKIK_OK;
  }
  const WorkoutPlan& plan_;
  const Stored& stored_;
  Lent lent_;
  mekik_parts raw_{};
  const mekik_parts* table_ = nullptr;
};

}  // namespace mekik::validate
