// Opens files that are whole, damaged and missing, and reads all that is in them.
#include <sys/stat.h>

#include <set>

#include "kinds/files.hpp"
#include "kinds/json.hpp"
#include "support/instance.hpp"

namespace mekik::validate {

namespace {

std::size_t bytes_of_num(std::uint32_t num) {
  switch (num) {
    case MEKIK_F32:
    case MEKIK_I32:
      return 4;
    case MEKIK_F16:
    case MEKIK_BF16:
    case MEKIK_I16:
      return 2;
    case MEKIK_F64:
    case MEKIK_I64:
      return 8;
    default:
      return 1;
  }
}

class LoaderWorkout final : public Workout {
 public:
  explicit LoaderWorkout(const WorkoutPlan& plan) : plan_{plan}, table_{table_of<mekik_loader>(plan.component)}, random_{plan.mode.seed} {}
  bool begin() override {
    const std::string& folder = plan_.subject.task().folder;
    for (const std::string& given : plan_.subject.task().samples) samples_.push_back({given, given, true});
    for (const SampleFile& s : known_formats(folder)) samples_.push_back(s);
    if (!samples_.empty() && opens(samples_[0].path) == 0 && opens(samples_.back().path) == 0) guess(folder);
    return true;
  }
  unsigned steps() const override { return static_cast<unsigned>(samples_.size()) + 1; }
  void step(unsigned i) override {
    if (i == samples_.size()) return nothing_there();
    const SampleFile& s = samples_[i];
    const int score = probe(s.path, s.main);
    transcript.add("probe " + std::to_string(i), score);
    mekik_model_file* model = open(s.path, s.given || score == 100 ? "a whole file" : "");
    if (model == nullptr) return;
    if (score == 0) rule("probe: answers 0 for a file that open() takes (" + s.path.substr(s.path.rfind('/') + 1) + ")");
    use(model, true);
    mekik_model_file* second = open(s.path, "a file that is open already");
    close(model);
    if (second != nullptr) use(second, false), close(second);
    damage(s);
  }
  void end() override {}

 private:
  int opens(const std::string& path) { return probe(path, path); }
  int probe(const std::string& path, const std::string& main) {
    const std::string bytes = bytes_of(main);
    return probe_head(path, bytes.substr(0, 4096));
  }
  int probe_head(const std::string& path, const std::string& head) {
    Lent lent{plan_.mode};
    const mekik_str p = lent.text("path", path);
    const void* h = lent.bytes("head", head.data(), head.size());
    int score = 0;
    call(plan_.mode, "probe", [&] { score = table_.probe(p, h, head.size()); });
    if (score < 0 || score > 100) rule("probe: answered " + std::to_string(score) + "; 0 to 100 is right");
    return score;
  }
  // A format that is not known here: what is the library waiting for?
  void guess(const std::string& folder) {
    const auto constants = constants_of(plan_.subject.task().file);
    unsigned found = 0;
    for (const std::string& c : constants) {
      const std::string suffix = c[0] == '.' && c.size() < 8 ? c : "";
      const std::string head = suffix.empty() ? c + std::string(252, '\0') : std::string(256, '\0');
      const std::string path = folder + "/guess" + std::to_string(found) + suffix;
      if (probe_head(path, head) == 0) continue;
      write_file(path, head);
      samples_.push_back({path, path});
      if (++found == 4) break;
    }
  }
  // nullptr: it does not open. With `must`, that is a fault.
  mekik_model_file* open(const std::string& path, const std::string& must) {
    Lent lent{plan_.mode};
    const mekik_str p = lent.text("path", path);
    mekik_model_file** out = lent.out<mekik_model_file*>("open's out", 1);
    *out = nullptr;
    const Answer a = ask(plan_.mode, "open", [&] { return table_.open(plan_.subject.host().raw(), p, out); });
    mekik_model_file* model = *out;
    lent.end();
    if (!a.ok()) {
      if (!must.empty() && plan_.subject.task().samples.size() > 0 && !plan_.mode.hostile)
        rule("open: does not open " + must + ": " + a.why);
      return nullptr;
    }
    if (model == nullptr) rule("open: answered OK and gave no file");
    return model;
  }
  void close(mekik_model_file* model) {
    call(plan_.mode, "close", [&] { table_.close(model); });
  }

  Answer meta(mekik_model_file* model, const std::string& key, std::string& out) {
    Lent lent{plan_.mode};
    const mekik_str k = lent.text("key", key);
    mekik_str* json = lent.out<mekik_str>("json_out", 1);
    *json = {nullptr, 0};
    const Answer a = ask(plan_.mode, "meta", [&] { return table_.meta(model, k, json); });
    const mekik_str said = *json;
    lent.end();
    if (!a.ok()) return a;
    if (said.ptr == nullptr) rule("meta: answered OK for '" + key + "' and gave nothing");
    else out.assign(said.ptr, said.len);  // lasts until close
    return a;
  }
  void use(mekik_model_file* model, bool loud) {
    for (const char* key : {"format", "config", "tokenizer", "template", "files"}) {
      std::string json;
      const Answer a = meta(model, key, json);
      if (!a.ok()) {
        if (a.code != MEKIK_E_INVALID && !plan_.mode.hostile)
          rule("meta: answered " + std::string{code_name(a.code)} + " for '" + key + "'; an absent key is INVALID");
        continue;
      }
      transcript.text(std::string{"meta "} + key, json);
      if (!is_utf8(json)) rule("meta: what it gave for '" + std::string{key} + "' is not UTF-8");
      else if (!JsonCheck{json}.whole()) rule("meta: what it gave for '" + std::string{key} + "' is not JSON: " + json.substr(0, 80));
    }
    std::string none;
    expect_failure("meta", meta(model, "no such key", none), {MEKIK_E_INVALID}, "for a key that does not exist");
    expect_failure("meta", meta(model, "", none), {MEKIK_E_INVALID}, "for an empty key");
    tensors(model, loud);
  }
  void tensors(mekik_model_file* model, bool loud) {
    Lent lent{plan_.mode};
    const mekik_part** out = lent.out<const mekik_part*>("tensors", 1);
    std::uint32_t *n = lent.out<std::uint32_t>("n", 1), *part_size = lent.out<std::uint32_t>("part_size", 1);
    const Answer a = ask(plan_.mode, "tensors", [&] { return table_.tensors(model, out, n, part_size); });
    if (!expect_ok(plan_.mode, "tensors", a)) return;
    const mekik_part* parts = *out;
    const std::uint32_t count = *n, stride = *part_size;
    lent.end();
    if (stride < sizeof(mekik_part))
      return rule("tensors: part_size is " + std::to_string(stride) + "; mekik_part has " + std::to_string(sizeof(mekik_part)));
    if (count > 1'000'000 || (count > 0 && parts == nullptr))
      return rule("tensors: answered OK with " + std::to_string(count) + " tensors that are not there");
    std::set<std::string> names;
    if (loud) whole_bytes_ = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const mekik_part& p = Lent::at(parts, i, stride);
      now_calling("tensors");
      check_part(p, i, names);
      if (loud) whole_bytes_ += std::min<std::uint64_t>(p.bytes, 1u << 20);
      read(model, p, i);
    }
    transcript.add("tensors", count);
    std::uint8_t* to = lent.out<std::uint8_t>("read's memory", 8);
    if (!loud) return;
    for (const std::uint32_t past : {count, 0xFFFFFFFFu})
      expect_failure("read", ask(plan_.mode, "read", [&] { return table_.read(model, past, 0, to, 4); }), {MEKIK_E_INVALID},
                     "for tensor " + std::to_string(past) + " of " + std::to_string(count));
  }
  void check_part(const mekik_part& p, std::uint32_t i, std::set<std::string>& names) {
    const std::string which = "tensors: tensor " + std::to_string(i);
    if (p.name == nullptr || p.name[0] == '\0') return rule(which + " has no name");
    if (!is_utf8(p.name)) rule(which + " has a name that is not UTF-8");
    if (!names.insert(p.name).second) rule(which + " has the name of another one, " + p.name);
    if (p.rank > 4) return rule(which + " has the rank " + std::to_string(p.rank));
    std::uint64_t elements = 1;
    for (std::uint32_t d = 0; d < p.rank; ++d)
      if (p.shape[d] < 0 || __builtin_mul_overflow(elements, static_cast<std::uint64_t>(p.shape[d]), &elements))
        return rule(which + " has a shape that cannot be");
    if (p.scheme == nullptr && (p.num < MEKIK_F32 || p.num > MEKIK_E8M0_HALF))
      return rule(which + " has neither a scheme nor a number type");
    if (p.scheme == nullptr && p.bytes != elements * bytes_of_num(p.num))
      rule(which + " says that it has " + std::to_string(p.bytes) + " bytes, by shape and type it has " +
           std::to_string(elements * bytes_of_num(p.num)));
    transcript.text("tensor", p.name);
    transcript.add("tensor, bytes", p.bytes);
    for (std::uint32_t d = 0; d < p.rank; ++d) transcript.add("tensor, shape", p.shape[d]);
  }
  void read(mekik_model_file* model, const mekik_part& p, std::uint32_t i) {
    const std::size_t bytes = std::min<std::uint64_t>(p.bytes, 1u << 16);
    const std::string which = "tensor " + std::to_string(i);
    for (const std::uint64_t at : {std::uint64_t{0}, p.bytes - bytes, std::min<std::uint64_t>(p.bytes, 3)}) {
      const std::size_t size = std::min<std::uint64_t>(bytes, p.bytes - at);
      Lent lent{plan_.mode};
      std::uint8_t* to = lent.out<std::uint8_t>("read's memory", size);
      const Answer a = ask(plan_.mode, "read", [&] { return table_.read(model, i, at, to, size); });
      if (!expect_ok(plan_.mode, "read", a)) return;
      transcript.add("read " + which, to, size);
      now_calling("tensors");
      if (p.data != nullptr && std::memcmp(static_cast<const char*>(p.data) + at, to, size) != 0)
        rule("read: gives other bytes of " + which + " than lie at its data");
    }
    Lent lent{plan_.mode};
    std::uint8_t* to = lent.out<std::uint8_t>("read's memory", 16);
    const auto past = [&](std::uint64_t at, std::uint64_t size, const char* what) {
      expect_failure("read", ask(plan_.mode, "read", [&] { return table_.read(model, i, at, to, size); }), {MEKIK_E_INVALID, MEKIK_E_IO},
                     what);
    };
    if (p.bytes >= 8) past(p.bytes - 4, 8, "for bytes past the end of a tensor");
    past(p.bytes + 1, 1, "for bytes behind a tensor");
    past(~std::uint64_t{0} - 3, 8, "where at + bytes overflows");
  }

  // Cut and flipped: an error or other content, never a crash.
  void damage(const SampleFile& s) {
    const std::string whole = bytes_of(s.main);
    const std::string folder = plan_.subject.task().folder + "/damaged";
    if (s.path != s.main || whole.size() > (1u << 20)) return damage_in_place(s, whole);
    ::mkdir(folder.c_str(), 0755);
    const std::string path = folder + s.path.substr(s.path.rfind('/'));
    const SampleFile copy{path, path, false};
    write_file(path, whole);
    damage_in_place(copy, whole);
  }
  void damage_in_place(const SampleFile& s, const std::string& whole) {
    if (s.given && s.path != s.main) return;  // not ours to change
    const bool own = !s.given;
    if (!own) return;
    const unsigned n = static_cast<unsigned>(60 * plan_.mode.scale);
    for (unsigned i = 0; i < n; ++i) {
      std::string bytes = whole;
      if (i % 3 == 0) bytes.resize(i < 30 ? i * 3 : below(random_, whole.size()));
      else
        for (std::uint64_t k = 0; k <= below(random_, 3); ++k)
          bytes[below(random_, std::min<std::size_t>(bytes.size(), 600))] = static_cast<char>(random_());
      damaged(s, bytes);
    }
    // Counts, sizes and offsets that cannot be, wherever one may stand.
    static constexpr std::uint64_t kOdd[] = {0, 1, 0x40000001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x4000000000000001, 0xFFFFFFFFFFFFFFFF};
    for (std::size_t at = 0; at + 8 <= std::min<std::size_t>(whole.size(), 96) && plan_.mode.scale >= 1; at += 4)
      for (const std::uint64_t odd : kOdd) {
        std::string bytes = whole;
        std::memcpy(bytes.data() + at, &odd, odd > 0xFFFFFFFF ? 8 : 4);
        damaged(s, bytes);
      }
    write_file(s.main, whole.substr(0, whole.size() / 2));
    if (s.path == s.main) half(s);
    write_file(s.main, whole);
  }
  void damaged(const SampleFile& s, const std::string& bytes) {
    write_file(s.main, bytes);
    probe(s.path, s.main);
    if (mekik_model_file* model = open(s.path, "")) {
      const Transcript before = transcript;
      use(model, false);
      transcript = before;
      close(model);
    }
  }
  // Half of a file has not all numbers of the whole one.
  void half(const SampleFile& s) {
    mekik_model_file* model = open(s.path, "");
    if (model == nullptr) return;
    const mekik_part* parts = nullptr;
    std::uint32_t n = 0, size = 0;
    std::uint64_t all = 0;
    bool reads = ask(plan_.mode, "tensors", [&] { return table_.tensors(model, &parts, &n, &size); }).ok();
    for (std::uint32_t i = 0; reads && i < n && size >= sizeof(mekik_part); ++i) {
      std::vector<std::uint8_t> to(std::min<std::uint64_t>(Lent::at(parts, i, size).bytes, 1u << 20));
      all += to.size();
      reads = ask(plan_.mode, "read", [&] { return table_.read(model, i, 0, to.data(), to.size()); }).ok();
    }
    if (reads && n > 0 && all == whole_bytes_) rule("open: half of a file opens, and all tensors of the whole one can be read");
    close(model);
  }
  void nothing_there() {
    const std::string& folder = plan_.subject.task().folder;
    write_file(folder + "/empty", "");
    probe_head(folder + "/empty", "");
    for (const char* name : {"/absent", "/empty", "/absent/inside"}) {
      Lent lent{plan_.mode};
      const mekik_str p = lent.text("path", folder + name);
      mekik_model_file** out = lent.out<mekik_model_file*>("open's out", 1);
      *out = nullptr;
      const Answer a = ask(plan_.mode, "open", [&] { return table_.open(plan_.subject.host().raw(), p, out); });
      if (a.ok())
        rule("open: answered OK for a file that " + std::string{std::string_view{name} == "/empty" ? "is empty" : "is not there"});
      if (a.ok() && *out != nullptr) close(*out);
    }
  }

  const WorkoutPlan plan_;
  const mekik_loader table_;
  Random random_;
  std::vector<SampleFile> samples_;
  std::uint64_t whole_bytes_ = 0;  // of all tensors of the file that was used last
};

}  // namespace

std::unique_ptr<Workout> make_loader(const WorkoutPlan& plan) { return std::make_unique<LoaderWorkout>(plan); }

}  // namespace mekik::validate
