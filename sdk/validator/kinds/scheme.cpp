// Decodes, factors and encodes weights: both ways to read one must agree to the bit, whatever part of it is asked for.
#include <cmath>
#include <limits>
#include <sstream>

#include "kinds/parts.hpp"
#include "reference/form.hpp"

namespace mekik::validate {

namespace {

bool same(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b)); }

class SchemeWorkout final : public Workout {
 public:
  explicit SchemeWorkout(const WorkoutPlan& plan) : plan_{plan}, table_{table_of<mekik_scheme>(plan.component)}, random_{plan.mode.seed} {}
  bool begin() override {
    if ((table_.block_elems == 0) != (table_.block_bytes == 0))
      rule("the scheme's table: block_elems and block_bytes are both 0, or none is");
    if (table_.block_elems > 1u << 20 || table_.block_bytes > 1u << 22)
      rule("the scheme's table: a block of " + std::to_string(table_.block_elems) + " values cannot be"), stop();
    return true;
  }
  unsigned steps() const override { return static_cast<unsigned>(12 * plan_.mode.scale); }
  void step(unsigned i) override {
    if (table_.block_elems != 0) return block_step(i);
    if (table_.suffixes == nullptr) {
      static constexpr std::uint32_t kNums[] = {MEKIK_F32, MEKIK_F16, MEKIK_BF16};
      Stored s = whole(i % 2 == 0 ? 1 : 3, 5, 7 + i, kNums[i % 3]);
      return exercise(s, true);
    }
    for (int again = 0; again < 25; ++again) {
      const Stored s = guess();
      exercise(s, false);
    }
  }
  void end() override {}

 private:
  std::string random_bytes(std::size_t n) {
    std::string out(n, '\0');
    for (char& c : out) c = static_cast<char>(random_());
    return out;
  }
  std::vector<float> random_floats(std::size_t n, double scale = 1) {
    std::vector<float> out(n);
    std::normal_distribution<double> d;
    for (float& x : out) x = static_cast<float>(scale * d(random_));
    return out;
  }
  static Stored sized(std::uint64_t experts, std::uint64_t n, std::uint64_t k) {
    Stored s;
    s.experts = experts, s.n = n, s.k = k;
    Stored::One one;
    one.name = "layer.weight";
    one.shape = {static_cast<std::int64_t>(n), static_cast<std::int64_t>(k)};
    if (experts > 1) one.shape.insert(one.shape.begin(), static_cast<std::int64_t>(experts));
    s.parts.push_back(one);
    return s;
  }
  Stored whole(std::uint64_t experts, std::uint64_t n, std::uint64_t k, std::uint32_t num) {
    Stored s = sized(experts, n, k);
    s.parts[0].num = num;
    s.parts[0].bytes = random_bytes(experts * n * k * (num == MEKIK_F32 ? 4 : 2));
    return s;
  }

  void block_step(unsigned i) {
    const std::uint64_t experts = i % 4 == 3 ? 3 : 1, n = 1 + i % 5, k = std::uint64_t{table_.block_elems} * (1 + i % 3);
    Stored s = sized(experts, n, k);
    s.parts[0].scheme = plan_.component.name;
    const std::uint64_t bytes = experts * n * k / table_.block_elems * table_.block_bytes;
    if (table_.encode != nullptr && i % 2 == 0) s.parts[0].bytes = encoded(experts * n, k, bytes, i);
    else s.parts[0].bytes = random_bytes(bytes);
    if (s.parts[0].bytes.size() != bytes) return;
    exercise(s, table_.encode != nullptr && i % 2 == 0);
    if (i == 1 && bytes > 1) {
      s.parts[0].bytes.pop_back();
      refused(s, "for a tensor that is a byte shorter than its shape says");
    }
    if (i == 3 && table_.block_elems > 1) {
      Stored odd = sized(1, 2, k + 1);
      odd.parts[0].scheme = plan_.component.name;
      odd.parts[0].bytes = random_bytes(2 * (k / table_.block_elems + 1) * table_.block_bytes);
      refused(odd, "for rows that are no whole number of blocks");
    }
  }
  void refused(const Stored& s, const std::string& when) {
    LentParts parts{plan_, s, true};
    Lent lent{plan_.mode};
    mekik_form* form = lent.out<mekik_form>("mekik_form", 1);
    std::memset(form, 0, sizeof *form);
    form->struct_size = sizeof *form;
    const Answer a = ask(plan_.mode, "describe", [&] { return table_.describe(parts.get(), form); });
    if (a.ok() && table_.release != nullptr) call(plan_.mode, "release", [&] { table_.release(form); });
    if (a.ok()) rule("describe: answered OK " + when + "; INVALID is right");
    float* out = lent.out<float>("decoded values", s.n * s.k);
    const Answer d = ask(plan_.mode, "decode", [&] { return table_.decode(parts.get(), 0, 0, s.n, out); });
    if (d.ok()) rule("decode: answered OK " + when + "; INVALID is right");
  }

  std::string encoded(std::uint64_t n, std::uint64_t k, std::uint64_t bytes, unsigned i) {
    const std::vector<float> x = i == 4 ? std::vector<float>(n * k, 0.0f) : random_floats(n * k, i == 6 ? 4 : 1);
    const std::string blocks = encode(x, n, k, bytes, i % 4 == 2, "encode");
    if (blocks.empty()) return {};
    Stored s = sized(1, n, k);
    s.parts[0].scheme = plan_.component.name;
    s.parts[0].bytes = blocks;
    const std::vector<float> back = decode(s, 0, 0, n, true);
    if (back.size() == x.size()) {
      double wrong = 0, all = 0;
      for (std::size_t j = 0; j < x.size(); ++j)
        wrong += (back[j] - x[j]) * static_cast<double>(back[j] - x[j]), all += static_cast<double>(x[j]) * x[j];
      const double bits = 8.0 * table_.block_bytes / table_.block_elems, error = all > 0 ? std::sqrt(wrong / all) : std::sqrt(wrong);
      const double bound = std::min(0.95, std::max(4e-3, 3 * std::exp2(0.5 - bits)));
      if (!(error <= bound))
        rule("encode: what was encoded comes back with a relative error of " + std::to_string(error) + "; with " + std::to_string(bits) +
             " bits a value " + std::to_string(bound) + " is far too much");
    }
    if (i == 0) {
      Lent lent{plan_.mode};
      const float* in = lent.in("x", x);
      char* out = lent.out<char>("blocks", bytes + 1);
      expect_failure("encode", ask(plan_.mode, "encode", [&] { return table_.encode(in, nullptr, n, k, out, bytes + 1); }),
                     {MEKIK_E_INVALID}, "for another number of bytes than the blocks take");
      if (bytes > 1)
        expect_failure("encode", ask(plan_.mode, "encode", [&] { return table_.encode(in, nullptr, n, k, out, bytes - 1); }),
                       {MEKIK_E_INVALID}, "for too few bytes");
    }
    if (i == 2) {  // numbers that no block holds: refused, or something that can be decoded
      std::vector<float> odd = x;
      odd[1] = std::nanf("");
      odd[x.size() - 1] = std::numeric_limits<float>::infinity();
      encode(odd, n, k, bytes, false, "");
    }
    return blocks;
  }
  // Empty: it failed; with `must` that was a fault.
  std::string encode(const std::vector<float>& x, std::uint64_t n, std::uint64_t k, std::uint64_t bytes, bool weighed, const char* must) {
    Lent lent{plan_.mode};
    const float* in = lent.in("x", x);
    const float* importance = weighed ? lent.in("importance", std::vector<float>(k, 0.5f)) : nullptr;
    char* out = lent.out<char>("blocks", bytes);
    const Answer a = ask(plan_.mode, "encode", [&] { return table_.encode(in, importance, n, k, out, bytes); });
    if (!a.ok()) return must[0] != '\0' ? (expect_ok(plan_.mode, must, a), std::string{}) : std::string{};
    transcript.add("encode", out, bytes);
    return {out, bytes};
  }
  std::vector<float> decode(const Stored& s, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, bool mapped) {
    LentParts parts{plan_, s, mapped};
    return decode(parts, s.k, expert, n0, n1);
  }
  std::vector<float> decode(LentParts& parts, std::uint64_t k, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1) {
    Lent lent{plan_.mode};
    float* out = lent.out<float>("decoded values", (n1 - n0) * k);
    const Answer a = ask(plan_.mode, "decode", [&] { return table_.decode(parts.get(), expert, n0, n1, out); });
    if (!a.ok()) {
      if (parts.failing) return {};
      expect_ok(plan_.mode, "decode", a);
      return {};
    }
    if (parts.failing && parts.reads > 0) rule("decode: answered OK, though what it reads from failed");
    return {out, out + (n1 - n0) * k};
  }

  // Parts as the suffixes name them, of sizes that may or may not fit together.
  Stored guess() {
    Stored s;
    static constexpr std::uint32_t kNums[] = {MEKIK_F32, MEKIK_F16,  MEKIK_BF16, MEKIK_I32, MEKIK_U8,
                                              MEKIK_I8,  MEKIK_E4M3, MEKIK_I64,  MEKIK_E8M0};
    const std::int64_t n = 8 << below(random_, 3), k = 32 << below(random_, 3);
    std::istringstream words{table_.suffixes};
    bool first = true;
    for (std::string w; words >> w;) {
      const bool optional = w.back() == '?';
      if (w.back() == '!') continue;
      if (optional) w.pop_back();
      Stored::One one;
      one.name = "layer" + (w[0] == '_' ? w : "." + w);
      one.absent = optional && below(random_, 3) == 0;
      one.num = kNums[below(random_, std::size(kNums))];
      const std::vector<std::vector<std::int64_t>> shapes{{n, k}, {n, k / 2}, {n, k / 8}, {k / 8, n}, {n, k / 32}, {k / 32, n}, {n, 1},
                                                          {1},    {n},        {k},        {},         {2, n, k},   {n, 0}};
      one.shape = first ? shapes[below(random_, 4)] : shapes[below(random_, shapes.size())];
      std::uint64_t bytes = one.num == MEKIK_F32 || one.num == MEKIK_I32    ? 4
                            : one.num == MEKIK_I64                          ? 8
                            : one.num == MEKIK_F16 || one.num == MEKIK_BF16 ? 2
                                                                            : 1;
      for (const std::int64_t d : one.shape) bytes *= static_cast<std::uint64_t>(d);
      one.bytes = random_bytes(bytes - (bytes > 1 && below(random_, 12) == 0 ? 1 : 0));
      s.parts.push_back(one);
      first = false;
    }
    static const char* const kConfigs[] = {"",
                                           "{}",
                                           "{\"quant_method\":",
                                           "[1,2",
                                           "{\"bits\":4,\"group_size\":32,\"quant_method\":\"%\"}",
                                           "{\"quant_method\":\"%\",\"model_dtype\":\"float16\"}",
                                           "\xFF\xFE"};
    s.config = kConfigs[below(random_, std::size(kConfigs))];
    if (const auto at = s.config.find('%'); at != std::string::npos) s.config.replace(at, 1, plan_.component.name);
    return s;
  }

  // `valid`: it is known to be one of this scheme's.
  void exercise(const Stored& s, bool valid) {
    LentParts parts{plan_, s, true};
    int score = 0;
    if (table_.claims != nullptr) call(plan_.mode, "claims", [&] { score = table_.claims(parts.get()); });
    if (score < 0 || score > 100) rule("claims: answered " + std::to_string(score) + "; 0 to 100 is right");
    if (valid && table_.claims != nullptr && score == 0 && table_.block_elems != 0)
      rule("claims: answers 0 for a tensor of its own scheme");
    if (score == 0 && table_.suffixes != nullptr) return;  // nobody asks on
    std::uint64_t experts = s.experts, n = s.n, k = s.k;
    if (table_.suffixes != nullptr && table_.shape != nullptr) {
      Lent lent{plan_.mode};
      std::int64_t* shape = lent.out<std::int64_t>("shape", 4);
      std::uint32_t* rank = lent.out<std::uint32_t>("rank", 1);
      if (!ask(plan_.mode, "shape", [&] { return table_.shape(parts.get(), shape, rank); }).ok()) return;
      if (*rank != 2 && *rank != 3) return rule("shape: answered OK with the rank " + std::to_string(*rank));
      for (std::uint32_t d = 0; d < *rank; ++d)
        if (shape[d] < 1 || shape[d] > 1 << 20) return rule("shape: answered OK with a size of " + std::to_string(shape[d]));
      experts = *rank == 3 ? static_cast<std::uint64_t>(shape[0]) : 1;
      n = static_cast<std::uint64_t>(shape[*rank - 2]);
      k = static_cast<std::uint64_t>(shape[*rank - 1]);
      parts.set_size(experts, n, k);
      valid = true;
    }
    if (n == 0 || k == 0 || experts * n * k > 1u << 22) return;
    std::vector<float> all;
    for (std::uint64_t e = 0; e < experts; ++e) {
      const bool must = valid && table_.suffixes == nullptr;
      Lent lent{plan_.mode};
      float* out = lent.out<float>("decoded values", n * k);
      const Answer a = ask(plan_.mode, "decode", [&] { return table_.decode(parts.get(), e, 0, n, out); });
      if (!a.ok()) return must ? void(expect_ok(plan_.mode, "decode", a)) : void();
      all.insert(all.end(), out, out + n * k);
      transcript.add("decode", out, n * k * sizeof(float));
    }
    pieces(parts, all, experts, n, k);
    if (experts > 1 && s.parts.size() == 1) each_expert(s, all);
    factored(parts, all, n, k);
    Stored unmapped = s;
    LentParts by_reading{plan_, unmapped, false};
    if (table_.suffixes != nullptr) by_reading.set_size(experts, n, k);
    const auto read = decode(by_reading, k, 0, 0, n);
    for (std::size_t j = 0; j < read.size(); ++j)
      if (!same(read[j], all[j])) {
        rule("decode: gives other values when parts are read than when they are mapped");
        break;
      }
    by_reading.reads = 0;
    by_reading.failing = true;
    decode(by_reading, k, 0, 0, n);
  }
  // An expert alone is what it is among others.
  void each_expert(const Stored& s, const std::vector<float>& all) {
    for (std::uint64_t e = 0; e < s.experts; ++e) {
      Stored one = sized(1, s.n, s.k);
      one.parts[0].scheme = s.parts[0].scheme, one.parts[0].num = s.parts[0].num;
      const std::size_t bytes = s.parts[0].bytes.size() / s.experts;
      one.parts[0].bytes = s.parts[0].bytes.substr(e * bytes, bytes);
      const auto alone = decode(one, 0, 0, s.n, true);
      for (std::size_t j = 0; j < alone.size(); ++j)
        if (!same(alone[j], all[e * s.n * s.k + j]))
          return rule("decode: expert " + std::to_string(e) + " of " + std::to_string(s.experts) + " is not what its bytes are alone");
    }
  }
  void pieces(LentParts& parts, const std::vector<float>& all, std::uint64_t experts, std::uint64_t n, std::uint64_t k) {
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t e = below(random_, experts), a = below(random_, n), b = i == 0 ? a : a + 1 + below(random_, n - a);
      const auto some = decode(parts, k, e, a, b);
      for (std::size_t j = 0; j < some.size(); ++j)
        if (!same(some[j], all[(e * n + a) * k + j]))
          return rule("decode: rows " + std::to_string(a) + " to " + std::to_string(b) +
                      " alone are not what they are as part of the whole" + (std::isnan(some[j]) ? "" : " (or were not written)"));
    }
  }
  void factored(LentParts& parts, const std::vector<float>& all, std::uint64_t n, std::uint64_t k) {
    Lent lent{plan_.mode};
    mekik_form* form = lent.out<mekik_form>("mekik_form", 1);
    std::memset(form, 0, sizeof *form);
    form->struct_size = sizeof *form;
    const Answer a = ask(plan_.mode, "describe", [&] { return table_.describe(parts.get(), form); });
    if (a.code == MEKIK_E_UNSUPPORTED) return;  // only decode
    if (!a.ok()) return table_.suffixes == nullptr ? void(expect_ok(plan_.mode, "describe", a)) : void();
    if (form->struct_size != 0 && form->struct_size != sizeof(mekik_form))
      rule("describe: set struct_size to " + std::to_string(form->struct_size));
    mekik_form seen = *form;
    seen.struct_size = sizeof seen;
    if (const std::string wrong = reference::check_form(seen); !wrong.empty()) rule("describe: the form cannot be: " + wrong);
    else if (seen.n != n || seen.k != k)
      rule("describe: the form is of " + std::to_string(seen.n) + " x " + std::to_string(seen.k) + ", the weight of " + std::to_string(n) +
           " x " + std::to_string(k));
    else if (table_.rows == nullptr) rule("describe: gives a form, but there is no rows()");
    else compare(parts, *form, seen, all, n, k);
    if (table_.release != nullptr) call(plan_.mode, "release", [&] { table_.release(form); });
  }
  void compare(LentParts& parts, const mekik_form& form, const mekik_form& seen, const std::vector<float>& all, std::uint64_t n,
               std::uint64_t k) {
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t step = std::max(1u, seen.row_step), steps = (n + step - 1) / step;
      const std::uint64_t n0 = i == 0 ? 0 : below(random_, steps) * step,
                          n1 = i == 0 ? n : std::min(n, n0 + step * (1 + below(random_, 2)));
      const std::uint64_t e = below(random_, seen.experts);
      Lent lent{plan_.mode};
      mekik_form_rows rows{};
      rows.struct_size = sizeof rows;
      const reference::FormBytes b = reference::form_bytes(seen, n1 - n0);
      // Numbers are aligned to their size, so each array is lent as its own element where its bytes allow it.
      const auto place = [&](std::size_t bytes, const char* name) -> void* {
        if (bytes == 0) return nullptr;
        return bytes % 4 == 0   ? static_cast<void*>(lent.out<std::uint32_t>(name, bytes / 4))
               : bytes % 2 == 0 ? static_cast<void*>(lent.out<std::uint16_t>(name, bytes / 2))
                                : lent.out<std::uint8_t>(name, bytes);
      };
      rows.codes = static_cast<std::uint8_t*>(place(b.codes, "codes"));
      rows.scale = place(b.scale, "scale"), rows.super = place(b.super, "super"), rows.min = place(b.min, "min");
      rows.super_min = place(b.super_min, "super_min"), rows.zero = place(b.zero, "zero"), rows.kept = place(b.kept, "kept");
      const mekik_form_rows* out = lent.one("mekik_form_rows", rows);
      const Answer a = ask(plan_.mode, "rows", [&] { return table_.rows(parts.get(), &form, e, n0, n1, out); });
      if (!expect_ok(plan_.mode, "rows", a)) return;
      if (const std::string wrong = reference::check_codes(seen, rows, n1 - n0); !wrong.empty())
        return rule("rows: " + wrong + " (or codes were not written)");
      std::vector<float> back((n1 - n0) * k);
      reference::decode_rows(seen, rows, e, n0, n0, n1, back.data());
      for (std::size_t j = 0; j < back.size(); ++j) {
        const float truth = all[(e * n + n0) * k + j];
        const bool near = seen.exact == 0 && std::fabs(back[j] - truth) <= std::ldexp(std::fabs(truth), -22);
        if (!same(back[j], truth) && !near) {
          std::ostringstream text;
          text << "rows: row " << n0 + j / k << ", column " << j % k << " is " << back[j] << " by the form and " << truth << " by decode()";
          return rule(text.str());
        }
      }
    }
  }

  const WorkoutPlan plan_;
  const mekik_scheme table_;
  Random random_;
};

}  // namespace

std::unique_ptr<Workout> make_scheme(const WorkoutPlan& plan) { return std::make_unique<SchemeWorkout>(plan); }

}  // namespace mekik::validate
