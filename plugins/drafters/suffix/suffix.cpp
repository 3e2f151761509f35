// Proposes what most often followed the last tokens in all requests, finished or running, whose memory is bounded.
#include <mekik/plugin.hpp>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

namespace {

using Tokens = std::span<const std::int32_t>;

// Lengths of the contexts under which a token is counted, longest last.
constexpr std::array<std::uint32_t, 7> kLengths{2, 3, 4, 6, 8, 12, 20};
using Contexts = std::array<std::uint64_t, kLengths.size()>;

std::uint64_t mix(std::uint64_t h) {
  h = (h ^ (h >> 31)) * 0x9E3779B97F4A7C15u;
  return h ^ (h >> 29);
}

// The hashes of the contexts that end with these tokens; 0 for those that are longer than the text.
Contexts contexts_of(std::uint64_t tenant, Tokens before) {
  Contexts out{};
  std::uint64_t h = mix(tenant + 1);
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < kLengths.back() && i < before.size(); ++i) {
    h = mix(h + static_cast<std::uint32_t>(before[before.size() - 1 - i]) + 1);
    if (i + 1 == kLengths[at]) out[at++] = h | 1;
  }
  return out;
}

// How often tokens followed contexts: a table of fixed size in which what is rare makes room for what is new.
class Counts {
 public:
  // `bytes` are the host's, which counts them, until release.
  explicit Counts(std::size_t bytes) : memory_{mekik::service<mekik_memory>(MEKIK_MEMORY)} {
    std::size_t n = 1;
    while (2 * n * sizeof(Bucket) <= bytes) n *= 2;
    mask_ = n - 1;
    if (memory_ == nullptr) throw mekik::Error{MEKIK_E_UNSUPPORTED, "this host gives no memory (" MEKIK_MEMORY ")"};
    buckets_ = static_cast<Bucket*>(memory_->alloc(mekik::host, n * sizeof(Bucket), sizeof(Bucket), "contexts"));
    if (buckets_ == nullptr)
      throw mekik::Error{MEKIK_E_NO_MEMORY, "there is no memory for a table of " + std::to_string(n * sizeof(Bucket)) + " bytes"};
  }
  ~Counts() { memory_->release(mekik::host, buckets_); }
  Counts(const Counts&) = delete;
  Counts& operator=(const Counts&) = delete;

  void add(std::uint64_t context, std::int32_t token) {
    Bucket& bucket = bucket_of(context);
    const std::uint32_t tag = tag_of(context);
    Entry* least = bucket.entries.data();
    for (Entry& e : bucket.entries) {
      if (e.count > 0 && e.tag == tag && e.token == token) {
        if (++e.count == UINT16_MAX)
          for (Entry& other : bucket.entries) other.count = static_cast<std::uint16_t>(other.count / 2);
        return;
      }
      if (e.count < least->count) least = &e;
    }
    if (least->count > 1) --least->count;  // who comes again and again gets its place
    else *least = {tag, token, 1, 0};
  }
  struct Best {
    std::int32_t token = -1;
    std::uint32_t count = 0, all = 0;
  };
  Best best(std::uint64_t context) const {
    Best out;
    const std::uint32_t tag = tag_of(context);
    for (const Entry& e : bucket_of(context).entries) {
      if (e.count == 0 || e.tag != tag) continue;
      out.all += e.count;
      if (e.count > out.count) out.count = e.count, out.token = e.token;
    }
    return out;
  }

 private:
  struct Entry {
    std::uint32_t tag;
    std::int32_t token;
    std::uint16_t count, unused;
  };
  struct alignas(64) Bucket {  // a line of the CPU's cache
    std::array<Entry, 5> entries;
  };
  Bucket& bucket_of(std::uint64_t context) const { return buckets_[(context >> 8) & mask_]; }
  static std::uint32_t tag_of(std::uint64_t context) {
    return static_cast<std::uint32_t>(context >> 32) ^ static_cast<std::uint32_t>(context);
  }
  const mekik_memory* memory_;
  Bucket* buckets_;
  std::size_t mask_;
};

class Suffix {
 public:
  static constexpr const char* name = "suffix";
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "Proposes what most often followed the last tokens, in all requests of the tenant so far.";
  static constexpr std::array options{
      mekik::opt::size("memory", "\"16MiB\"", 65536, 68719476736.0, "Memory for what was seen; what is rare goes first."),
  };
  Suffix(mekik::Config config, const mekik_vocab&) : counts_{static_cast<std::size_t>(config.i64("memory"))} {}

  void propose(mekik::Strided<const mekik_draft_ask> asks, mekik::Strided<mekik_draft_out> outs) {
    for (std::size_t i = 0; i < asks.size(); ++i) {
      const mekik_draft_ask& ask = asks[i];
      const Tokens tokens{ask.tokens, ask.n_tokens};
      learn(known_[ask.seq], ask.tenant, tokens);
      text_.assign(tokens.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(tokens.size(), kLengths.back())), tokens.end());
      mekik_draft_out& out = outs[i];
      while (out.n < ask.room && next(ask.tenant, out.tokens[out.n], out.probs[out.n])) text_.push_back(out.tokens[out.n++]);
    }
  }
  void forget(std::uint64_t seq, std::uint64_t tenant, Tokens tokens, std::uint32_t) {
    const auto found = known_.find(seq);
    if (found == known_.end()) return;
    learn(found->second, tenant, tokens);
    known_.erase(found);
  }

 private:
  void learn(std::size_t& known, std::uint64_t tenant, Tokens tokens) {
    for (; known < tokens.size(); ++known)
      for (const std::uint64_t context : contexts_of(tenant, tokens.first(known)))
        if (context != 0) counts_.add(context, tokens[known]);
  }
  // By the longest context that was seen. It is trusted by its length, and by how often something else came.
  bool next(std::uint64_t tenant, std::int32_t& token, float& confidence) const {
    const Contexts contexts = contexts_of(tenant, text_);
    for (std::size_t at = kLengths.size(); at-- > 0;) {
      if (contexts[at] == 0) continue;
      const Counts::Best best = counts_.best(contexts[at]);
      if (best.count == 0) continue;
      const auto length = static_cast<float>(kLengths[at]);
      token = best.token;
      confidence = static_cast<float>(best.count) / static_cast<float>(best.all) * length / (length + 2);
      return true;
    }
    return false;
  }

  Counts counts_;
  std::unordered_map<std::uint64_t, std::size_t> known_;  // by sequence: how many of its tokens
  std::vector<std::int32_t> text_;
};

}  // namespace

MEKIK_PLUGIN("mekik.drafter.suffix", "1.0", mekik::drafter<Suffix>());
