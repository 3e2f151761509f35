// mekik/testing_kinds.hpp - calls the functions of a component as the engine does, for unit tests.
//
//   FakeHost host;
//   Library library{"scheduler_mine.so", host};
//   host.configure(library.component(MEKIK_KIND_SCHEDULER, "mine")).set("most", "4");
//   Scheduler mine{host, library.component(MEKIK_KIND_SCHEDULER, "mine")};
//   std::vector<mekik_choice> plan = mine.plan({waiting(1, 100), decoding(2)}, {.max_tokens = 64});
// A call that fails throws Failed with the code and what the plugin said. Arrays go to the plugin with elements longer than its header
// knows, as a later engine would send them.
#pragma once
#include <mekik/numbers.hpp>
#include <mekik/testing.hpp>

#include <functional>

namespace mekik::testing {

struct Failed : std::runtime_error {
  mekik_status code;
  explicit Failed(mekik_status status) : std::runtime_error{FakeHost::take_failure()}, code{status} {}
};
inline void check(mekik_status status) {
  if (status != MEKIK_OK) throw Failed{status};
}

// T as a later revision of the ABI might have it.
template <class T>
struct Longer {
  T value{};
  std::uint64_t later[2] = {0xDEDEDEDEDEDEDEDEu, 0xDEDEDEDEDEDEDEDEu};
};
template <class T>
std::vector<Longer<T>> longer(const std::vector<T>& values) {
  std::vector<Longer<T>> out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) out[i].value = values[i];
  return out;
}

// An instance of a component with the table T, destroyed at the end.
template <class T, class Handle>
class Instance {
 public:
  const T& table() const { return *table_; }
  Handle* handle() const { return handle_; }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

 protected:
  explicit Instance(const mekik_component& c) : table_{static_cast<const T*>(c.table)} {}
  ~Instance() {
    if (handle_ != nullptr) table_->destroy(handle_);
  }
  const T* table_;
  Handle* handle_ = nullptr;
};

// ---- scheduler ----------------------------------------------------------------------------------------------------------------------

inline mekik_seq_view waiting(std::uint64_t id, std::uint32_t prompt, std::uint64_t arrival_ns = 0) {
  mekik_seq_view s{};
  s.id = id;
  s.arrival_ns = arrival_ns;
  s.prompt_left = prompt;
  return s;
}
inline mekik_seq_view decoding(std::uint64_t id, std::uint32_t cached = 16) {
  mekik_seq_view s{};
  s.id = id;
  s.running = 1;
  s.cached = cached;
  s.generated = 1;
  s.blocks_held = (cached + 15) / 16;
  return s;
}
struct StepLimits {
  std::uint32_t max_tokens = 512, max_seqs = 64, free_blocks = 1000, block_tokens = 16;
  std::uint64_t now_ns = 0;
};
class Scheduler : public Instance<mekik_scheduler, mekik_sched> {
 public:
  Scheduler(const FakeHost& host, const mekik_component& c) : Instance{c} { check(table_->create(host.get(), host.config(), &handle_)); }
  std::vector<mekik_choice> plan(const std::vector<mekik_seq_view>& seqs, const StepLimits& limits = {}) {
    seqs_ = longer(seqs);
    const auto n_seqs = static_cast<std::uint32_t>(seqs.size());
    view_ = {sizeof view_,
             n_seqs,
             sizeof(Longer<mekik_seq_view>),
             limits.max_tokens,
             limits.max_seqs,
             limits.block_tokens,
             limits.free_blocks,
             0,
             limits.now_ns,
             n_seqs == 0 ? nullptr : &seqs_[0].value};
    std::vector<Longer<mekik_choice>> room(seqs.size() + 1);
    std::uint32_t n = n_seqs;
    check(table_->plan(handle_, &view_, &room[0].value, sizeof(Longer<mekik_choice>), &n));
    if (n > n_seqs) throw std::runtime_error{"the plan has more choices than there was room for"};
    std::vector<mekik_choice> out;
    for (std::uint32_t i = 0; i < n; ++i) out.push_back(room[i].value);
    return out;
  }
  // The step of the last plan was run.
  void observe(std::uint64_t step_ns) { table_->observe(handle_, &view_, step_ns); }

 private:
  mekik_step_view view_{};
  std::vector<Longer<mekik_seq_view>> seqs_;
};

// ---- sampler and drafter ---------------------------------------------------------------------------------------------------------------

// A vocabulary of these pieces, none of them special.
class Vocab {
 public:
  explicit Vocab(std::vector<std::string> pieces) : pieces_{std::move(pieces)} {
    raw_ = {
        sizeof raw_, static_cast<std::uint32_t>(pieces_.size()), this,
        [](const void* self, std::int32_t id) { return str(static_cast<const Vocab*>(self)->pieces_.at(static_cast<std::size_t>(id))); },
        [](const void*, std::int32_t) { return std::uint32_t{0}; }};
  }
  Vocab(const Vocab&) = delete;
  Vocab& operator=(const Vocab&) = delete;
  const mekik_vocab* get() const { return &raw_; }

 private:
  mekik_vocab raw_{};
  std::vector<std::string> pieces_;
};
class Sampler : public Instance<mekik_sampler, mekik_chain> {
 public:
  Sampler(const FakeHost& host, const mekik_component& c, const Vocab& vocab, std::string_view request_json = "{}") : Instance{c} {
    check(table_->create(host.get(), host.config(), vocab.get(), str(request_json), &handle_));
  }
  void accept(const std::vector<std::int32_t>& tokens, bool prompt) {
    table_->accept(handle_, tokens.data(), static_cast<std::uint32_t>(tokens.size()), prompt ? 1 : 0);
  }
  std::vector<float> apply(std::vector<float> logits, double uniform = 0) {
    check(table_->apply(handle_, logits.data(), static_cast<std::uint32_t>(logits.size()), uniform));
    return logits;
  }
};
class Drafter : public Instance<mekik_drafter, mekik_draft> {
 public:
  Drafter(const FakeHost& host, const mekik_component& c, const Vocab& vocab) : Instance{c} {
    check(table_->create(host.get(), host.config(), vocab.get(), &handle_));
  }
  std::vector<std::int32_t> propose(const std::vector<std::int32_t>& tokens, std::uint32_t room, std::uint64_t seq = 1) {
    Longer<mekik_draft_ask> ask;
    ask.value.seq = seq;
    ask.value.tokens = tokens.data();
    ask.value.n_tokens = ask.value.n_prompt = static_cast<std::uint32_t>(tokens.size());
    ask.value.room = room;
    std::vector<std::int32_t> out(room);
    std::vector<float> probs(room);
    Longer<mekik_draft_out> answer;
    answer.value = {out.data(), probs.data(), 0, 0};
    check(table_->propose(handle_, &ask.value, 1, sizeof ask, &answer.value, sizeof answer));
    if (answer.value.n > room) throw std::runtime_error{"more tokens are proposed than there was room for"};
    out.resize(answer.value.n);
    return out;
  }
  void verified(std::uint32_t run, std::uint32_t accepted, std::uint64_t seq = 1) { table_->verified(handle_, seq, run, accepted); }
};

// ---- cache and sink --------------------------------------------------------------------------------------------------------------------

class Cache : public Instance<mekik_cache_policy, mekik_cache> {
 public:
  Cache(const FakeHost& host, const mekik_component& c) : Instance{c} { check(table_->create(host.get(), host.config(), &handle_)); }
  void touched(const mekik_key& key, std::uint64_t now_ns) { table_->touched(handle_, &key, now_ns); }
  std::vector<std::uint32_t> victims(const std::vector<mekik_node>& nodes, std::uint64_t bytes) {
    const auto rows = longer(nodes);
    std::vector<std::uint32_t> out(nodes.size() + 1);
    const std::uint32_t n = table_->victims(handle_, rows.empty() ? nullptr : &rows[0].value, static_cast<std::uint32_t>(nodes.size()),
                                            sizeof(Longer<mekik_node>), bytes, out.data());
    if (n > nodes.size()) throw std::runtime_error{"there are more victims than nodes"};
    out.resize(n);
    return out;
  }
};

class Sink : public Instance<mekik_sink_api, mekik_sink> {
 public:
  Sink(const FakeHost& host, const mekik_component& c) : Instance{c} { check(table_->create(host.get(), host.config(), &handle_)); }
  void event(const char* name, const std::vector<mekik_field>& fields, std::uint64_t now_ns = 0) {
    const auto rows = longer(fields);
    table_->event(handle_, name, now_ns, rows.empty() ? nullptr : &rows[0].value, static_cast<std::uint32_t>(fields.size()),
                  sizeof(Longer<mekik_field>));
  }
  void publish(const std::vector<mekik_sample>& samples, std::uint64_t now_ns = 0) {
    const auto rows = longer(samples);
    table_->publish(handle_, now_ns, rows.empty() ? nullptr : &rows[0].value, static_cast<std::uint32_t>(samples.size()),
                    sizeof(Longer<mekik_sample>));
  }
  std::string scrape(const std::vector<mekik_sample>& samples, std::string_view accept = "*/*") {
    const auto rows = longer(samples);
    std::string body;
    mekik_str type{};
    check(table_->scrape(
        handle_, str(accept), rows.empty() ? nullptr : &rows[0].value, static_cast<std::uint32_t>(samples.size()),
        sizeof(Longer<mekik_sample>), [](void* ctx, mekik_str text) { static_cast<std::string*>(ctx)->append(view(text)); }, &body, &type));
    return body;
  }
};
inline mekik_field number_field(const char* key, double value) { return {key, MEKIK_OPT_REAL, 0, value, {}}; }
inline mekik_field text_field(const char* key, std::string_view value) { return {key, MEKIK_OPT_TEXT, 0, 0, str(value)}; }

// ---- loader and scheme -----------------------------------------------------------------------------------------------------------------

class Loader {
 public:
  Loader(const FakeHost& host, const mekik_component& c, std::string_view path) : table_{static_cast<const mekik_loader*>(c.table)} {
    check(table_->open(host.get(), str(path), &file_));
  }
  ~Loader() { table_->close(file_); }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  std::string meta(std::string_view key) {
    mekik_str out{};
    check(table_->meta(file_, str(key), &out));
    return std::string{view(out)};
  }
  std::vector<mekik_part> tensors() {
    const mekik_part* parts = nullptr;
    std::uint32_t n = 0, size = 0;
    check(table_->tensors(file_, &parts, &n, &size));
    std::vector<mekik_part> out;
    for (std::uint32_t i = 0; i < n; ++i)
      out.push_back(*reinterpret_cast<const mekik_part*>(reinterpret_cast<const char*>(parts) + std::size_t{i} * size));
    return out;
  }
  std::vector<std::uint8_t> read(std::uint32_t i, std::uint64_t at, std::uint64_t bytes) {
    std::vector<std::uint8_t> out(bytes);
    check(table_->read(file_, i, at, out.data(), bytes));
    return out;
  }

 private:
  const mekik_loader* table_;
  mekik_model_file* file_ = nullptr;
};

// The parts of one weight, in memory.
class Stored {
 public:
  // In the order of the scheme's suffixes. scheme: the type's name, of a block format; else num.
  Stored& add(std::string name, std::uint32_t num, std::vector<std::int64_t> shape, std::vector<std::uint8_t> bytes,
              const char* scheme = nullptr) {
    names_.push_back(std::make_unique<std::string>(std::move(name)));
    bytes_.push_back(std::move(bytes));
    mekik_part part{names_.back()->c_str(), scheme, num, static_cast<std::uint32_t>(shape.size()), {}, bytes_.back().size(), nullptr};
    std::copy(shape.begin(), shape.end(), part.shape);
    parts_.push_back({part, {}});
    return *this;
  }
  Stored& config(std::string json) {
    config_ = std::move(json);
    return *this;
  }
  mekik_parts parts(std::uint64_t experts, std::uint64_t n, std::uint64_t k) {
    return {sizeof(mekik_parts),
            static_cast<std::uint32_t>(parts_.size()),
            sizeof parts_[0],
            0,
            &parts_[0].value,
            experts,
            n,
            k,
            str(config_),
            this,
            [](void* self, std::uint32_t part, std::uint64_t at, void* to, std::uint64_t count) -> mekik_status {
              const auto& from = static_cast<Stored*>(self)->bytes_.at(part);
              if (at > from.size() || count > from.size() - at) return MEKIK_E_IO;
              std::memcpy(to, from.data() + at, count);
              return MEKIK_OK;
            }};
  }

 private:
  std::vector<std::unique_ptr<std::string>> names_;
  std::vector<std::vector<std::uint8_t>> bytes_;
  std::vector<Longer<mekik_part>> parts_;
  std::string config_ = "{}";
};

class Scheme {
 public:
  explicit Scheme(const mekik_component& c) : table_{static_cast<const mekik_scheme*>(c.table)} {}
  const mekik_scheme& table() const { return *table_; }
  // [experts][n][k], as decode() says.
  std::vector<float> decode(const mekik_parts& p) const {
    std::vector<float> out(p.experts * p.n * p.k);
    for (std::uint64_t e = 0; e < p.experts; ++e) check(table_->decode(&p, e, 0, p.n, out.data() + e * p.n * p.k));
    return out;
  }
  // The same through describe() and rows(), by the arithmetic of mekik_form: where the form is exact, every bit must be decode()'s.
  std::vector<float> decode_form(const mekik_parts& p) const;

 private:
  const mekik_scheme* table_;
};

inline std::vector<float> Scheme::decode_form(const mekik_parts& p) const {
  mekik_form f{};
  f.struct_size = sizeof f;
  check(table_->describe(&p, &f));
  const std::uint64_t k = f.k, rows = f.n, groups = f.group_k == 0 ? 1 : (k + f.group_k - 1) / f.group_k;
  const std::uint64_t bands = f.group_n == 0 ? rows : (rows + f.group_n - 1) / f.group_n,
                      supers = f.super_k == 0 ? 1 : (k + f.super_k - 1) / f.super_k;
  std::vector<float> out(f.experts * rows * k);
  std::vector<std::uint8_t> codes(rows * k), scale(bands * groups * 4), min(scale.size()), zero(bands * groups), super(bands * supers * 4),
      super_min(super.size()), kept(rows * std::max<std::uint64_t>(k, f.n_kept) * 4);
  for (std::uint64_t e = 0; e < f.experts; ++e) {
    const mekik_form_rows to{sizeof(mekik_form_rows), 0,           codes.data(), scale.data(), super.data(), min.data(),
                             super_min.data(),        zero.data(), kept.data()};
    check(table_->rows(&p, &f, e, 0, rows, &to));
    for (std::uint64_t n = 0; n < rows; ++n)
      for (std::uint64_t j = 0; j < k; ++j) {
        float& w = out[(e * rows + n) * k + (f.k_perm != nullptr ? f.k_perm[j] : j)];
        if (f.kind == MEKIK_FORM_FLOAT) {
          w = load_num(f.kept_num, kept.data(), n * k + j);
          continue;
        }
        const std::uint64_t g = n / f.group_n * groups + j / f.group_k, s = n / f.group_n * supers + (f.super_k == 0 ? 0 : j / f.super_k);
        float by = f.scale_num != 0 ? load_num(f.scale_num, scale.data(), g) : 1;
        if (f.super_num != 0) by = load_num(f.super_num, super.data(), s) * by;
        const auto code = codes[n * k + j];
        w = by *
            (f.kind == MEKIK_FORM_CODEBOOK ? f.table[code] : static_cast<float>(int{code} - (f.zero_num != 0 ? int{zero[g]} : f.zero)));
        if (f.min_num != 0)
          w -= (f.super_min_num != 0 ? load_num(f.super_min_num, super_min.data(), s) : 1.0f) * load_num(f.min_num, min.data(), g);
        if (f.tensor_scale != nullptr) w *= f.tensor_scale[e];
        w = round_num(f.round_num, w);
      }
    for (std::uint64_t n = 0; f.kind != MEKIK_FORM_FLOAT && n < rows; ++n)
      for (std::uint32_t i = 0; i < f.n_kept; ++i)
        out[(e * rows + n) * k + f.kept_k[i]] = load_num(f.kept_num, kept.data(), n * f.n_kept + i);
  }
  if (table_->release != nullptr) table_->release(&f);
  return out;
}

}  // namespace mekik::testing
