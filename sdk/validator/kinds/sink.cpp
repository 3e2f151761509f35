// Samples of every type, events, and the body of GET /metrics.
#include <chrono>
#include <cmath>
#include <limits>

#include "support/heap.hpp"
#include "support/instance.hpp"

namespace mekik::validate {

namespace {

class SinkWorkout final : public Workout {
 public:
  explicit SinkWorkout(const WorkoutPlan& plan) : plan_{plan}, table_{table_of<mekik_sink_api>(plan.component)}, random_{plan.mode.seed} {}
  bool begin() override {
    self_ = create<mekik_sink>(plan_, [&](auto host, auto config, auto out) { return table_.create(host, config, out); });
    return self_ != nullptr;
  }
  unsigned steps() const override { return static_cast<unsigned>(24 * plan_.mode.scale); }
  void step(unsigned i) override {
    now_ += 1'000'000'000;
    publish(i);
    if (table_.event != nullptr) event(i);
    if (table_.scrape != nullptr) scrape(i);
  }
  void end() override {
    call(plan_.mode, "destroy", [&] { table_.destroy(self_); });
  }

 private:
  std::vector<mekik_sample> samples(Lent& lent, unsigned i) {
    std::vector<mekik_sample> out;
    const unsigned n = i == 2 ? 0 : i == 3 ? 200 : 6;
    for (unsigned j = 0; j < n; ++j) {
      mekik_sample s{};
      s.name = lent.c_str("a sample's name", "mekik_test_" + std::to_string(j));
      s.help = lent.c_str("a sample's help", j % 3 == 0 ? "" : "What it counts, with \\ and\na second line.");
      s.labels = lent.c_str("a sample's labels", j % 2 == 0 ? "" : "model=a \"b\" \\c,kind=x\xC3\xA9");
      s.type = MEKIK_SAMPLE_COUNTER + j % 3;
      s.value = j == 4                 ? std::numeric_limits<double>::infinity()
                : j == 5 && i % 2 == 0 ? std::nan("")
                                       : static_cast<double>(below(random_, 1000000)) / 8;
      if (s.type == MEKIK_SAMPLE_HISTOGRAM) {
        s.n_bounds = j % 4 == 3 ? 0 : 3;
        std::vector<double> bounds{0.001, 0.5, 10};
        std::vector<std::uint64_t> counts{2, 3, 9};
        bounds.resize(s.n_bounds), counts.resize(s.n_bounds);
        s.bounds = lent.in("bounds", bounds);
        s.counts = lent.in("counts", counts);
        s.count = 11;
      }
      out.push_back(s);
    }
    return out;
  }
  void publish(unsigned i) {
    Lent lent{plan_.mode};
    std::uint32_t stride = 0;
    const auto all = samples(lent, i);
    const mekik_sample* in = lent.rows("samples", all, stride);
    const auto began = own_seconds();
    call(plan_.mode, "publish", [&] { table_.publish(self_, now_, in, static_cast<std::uint32_t>(all.size()), stride); });
    slow("publish", began);
  }
  void event(unsigned i) {
    Lent lent{plan_.mode};
    std::vector<mekik_field> fields;
    const auto add = [&](const char* key, std::uint32_t type, double number, std::string_view text) {
      fields.push_back({lent.c_str("a field's key", key), type, 0, number, lent.text("a field's text", text)});
    };
    if (i != 1) {
      add("model", MEKIK_OPT_TEXT, 0, i % 3 == 0 ? "" : "a \"quoted\" name\n\t\x01 \xE2\x82\xAC");
      add("tokens", MEKIK_OPT_INT, static_cast<double>(below(random_, 1u << 30)), "");
      add("seconds", MEKIK_OPT_REAL, i == 4 ? std::nan("") : 0.125, "");
      add("stream", MEKIK_OPT_BOOL, 1, "");
    }
    std::uint32_t stride = 0;
    const mekik_field* in = lent.rows("fields", fields, stride);
    const char* name = lent.c_str("an event's name", "request");
    const auto began = own_seconds();
    call(plan_.mode, "event", [&] { table_.event(self_, name, now_, in, static_cast<std::uint32_t>(fields.size()), stride); });
    slow("event", began);
  }
  struct Body {
    bool open = true;
    std::string text;
    static void write(void* ctx, mekik_str part) {
      const HostScope scope;
      auto* self = static_cast<Body*>(ctx);
      if (!self->open) rule("scrape: called write() after it had come back");
      if (part.ptr == nullptr && part.len != 0) rule("scrape: wrote a text without memory");
      else self->text.append(part.ptr == nullptr ? "" : part.ptr, part.len);
    }
  };
  void scrape(unsigned i) {
    static const char* const kAccepts[] = {"",
                                           "*/*",
                                           "text/plain",
                                           "application/openmetrics-text; version=1.0.0",
                                           "text/html,application/xhtml+xml;q=0.9",
                                           "nonsense;;;=\"",
                                           "application/json"};
    bodies_.push_back(std::make_unique<Body>());  // outlives the call, so that a late write() is caught
    Body& body = *bodies_.back();
    Lent lent{plan_.mode};
    std::uint32_t stride = 0;
    const auto all = samples(lent, i);
    const mekik_sample* in = lent.rows("samples", all, stride);
    const mekik_str accept = lent.text("accept", kAccepts[i % 7]);
    mekik_str* type = lent.out<mekik_str>("content_type", 1);
    *type = {nullptr, 0};
    const auto began = own_seconds();
    const Answer a = ask(plan_.mode, "scrape", [&] {
      return table_.scrape(self_, accept, in, static_cast<std::uint32_t>(all.size()), stride, Body::write, &body, type);
    });
    slow("scrape", began);
    body.open = false;
    const mekik_str said = *type;
    lent.end();
    if (a.code == MEKIK_E_UNSUPPORTED && i % 7 > 1) return;  // a type that it does not speak
    if (a.code == MEKIK_E_UNSUPPORTED || !expect_ok(plan_.mode, "scrape", a)) return;
    if (said.ptr == nullptr || said.len == 0) return rule("scrape: gave no content type");
    const std::string text{said.ptr, said.len};  // static: still there
    if (text.find('/') == std::string::npos || text.find('\n') != std::string::npos)
      rule("scrape: the content type \"" + text + "\" cannot be");
    if (!is_utf8(body.text)) rule("scrape: the body is not UTF-8");
    if (i % 7 == 2 && !all.empty() && body.text.find("mekik_test_0") == std::string::npos)
      rule("scrape: the body lacks a sample that it was given (mekik_test_0)");
    transcript.text("scrape " + std::to_string(i), body.text);
    transcript.text("scrape " + std::to_string(i) + ", type", text);
  }
  // Loose, since machines that test are busy; a sink that waits for a network or a lock takes longer.
  void slow(const char* what, double began) {
    if (plan_.mode.moving) return;  // it was another thread that waited
    const double seconds = own_seconds() - began;
    if (seconds > 0.1 && ++slow_ == 3)
      rule(std::string{what} + ": takes " + std::to_string(seconds) + " s, again and again: the engine waits for it");
  }

  const WorkoutPlan plan_;
  const mekik_sink_api table_;
  Random random_;
  mekik_sink* self_ = nullptr;
  std::vector<std::unique_ptr<Body>> bodies_;
  std::uint64_t now_ = 1'000'000'000;
  int slow_ = 0;
};

}  // namespace

std::unique_ptr<Workout> make_sink(const WorkoutPlan& plan) { return std::make_unique<SinkWorkout>(plan); }

}  // namespace mekik::validate
