#include "metrics/metrics.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>

#include "base/log.hpp"
#include "base/text.hpp"

namespace mekik::metrics {

namespace {

// What a series is; never changes once made.
struct Descriptor {
  std::string name, help, labels;
  std::uint32_t type = 0;
  std::vector<double> bounds;
};

class Series : public mekik_metric {
 public:
  // Shared: a snapshot may outlive the registry, and its samples point to these texts.
  explicit Series(std::shared_ptr<const Descriptor> descriptor) : descriptor_{std::move(descriptor)} {}
  const std::shared_ptr<const Descriptor>& descriptor() const { return descriptor_; }
  // Fills the numbers of a sample; a histogram writes its cumulative counts to `counts` (one per bound).
  virtual void read(mekik_sample& sample, std::uint64_t* counts) const = 0;

 protected:
  void refuse(double value) {
    if (refused_.exchange(true, std::memory_order_relaxed)) return;
    log::warning("metrics", descriptor_->name + ": the value " + std::to_string(value) + " was left out; later ones are left out silently");
  }

 private:
  std::shared_ptr<const Descriptor> descriptor_;
  std::atomic<bool> refused_{false};
};

class Counter final : public Series {
 public:
  using Series::Series;
  void record(double value) override {
    if (!std::isfinite(value) || value < 0) return refuse(value);
    value_.fetch_add(value, std::memory_order_relaxed);
  }
  void read(mekik_sample& sample, std::uint64_t*) const override { sample.value = value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Gauge final : public Series {
 public:
  using Series::Series;
  void record(double value) override {
    if (!std::isfinite(value)) return refuse(value);
    value_.store(value, std::memory_order_relaxed);
  }
  void read(mekik_sample& sample, std::uint64_t*) const override { sample.value = value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Histogram final : public Series {
 public:
  explicit Histogram(std::shared_ptr<const Descriptor> descriptor)
      : Series{std::move(descriptor)}, buckets_(Series::descriptor()->bounds.size() + 1) {}
  void record(double value) override {
    if (!std::isfinite(value)) return refuse(value);
    const std::vector<double>& bounds = descriptor()->bounds;
    const auto at = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
    sum_.fetch_add(value, std::memory_order_relaxed);
    buckets_[static_cast<std::size_t>(at)].fetch_add(1, std::memory_order_relaxed);
  }
  void read(mekik_sample& sample, std::uint64_t* counts) const override {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      total += buckets_[i].load(std::memory_order_relaxed);
      if (i + 1 < buckets_.size()) counts[i] = total;
    }
    sample.count = total;
    sample.value = sum_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<double> sum_{0};
  std::vector<std::atomic<std::uint64_t>> buckets_;
};

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// "k=v,k=v" sorted by key, so that the order in which a caller lists labels makes no second series.
std::optional<std::string> canonical_labels(std::string_view labels) {
  if (labels.empty()) return std::string{};
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& part : split(labels, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) return std::nullopt;
    const std::string key = part.substr(0, equals);
    if (!is_name(key) || key.substr(0, 2) == "__" || key == "le") return std::nullopt;
    pairs.emplace_back(key, part.substr(equals + 1));
  }
  std::sort(pairs.begin(), pairs.end());
  std::string out;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (i > 0 && pairs[i].first == pairs[i - 1].first) return std::nullopt;
    out += (i > 0 ? "," : "") + pairs[i].first + "=" + pairs[i].second;
  }
  return is_utf8(out) ? std::optional{out} : std::nullopt;
}

bool ascending_and_finite(const std::vector<double>& bounds) {
  return std::all_of(bounds.begin(), bounds.end(), [](double b) { return std::isfinite(b); }) &&
         std::adjacent_find(bounds.begin(), bounds.end(), [](double a, double b) { return a >= b; }) == bounds.end();
}

struct Family {
  std::uint32_t type = 0;
  std::string help;
  std::vector<double> bounds;
  std::map<std::string, std::unique_ptr<Series>, std::less<>> series;  // by labels
};

struct Storage {
  std::vector<std::shared_ptr<const Descriptor>> descriptors;
  std::vector<std::uint64_t> counts;
};

}  // namespace

struct Metrics::Impl {
  mutable std::mutex mutex;
  std::map<std::string, Family, std::less<>> families;

  // A histogram `x` also appears as x_bucket, x_sum and x_count, which no other family may be called.
  bool collides(std::string_view name, std::uint32_t type) const {
    for (const std::string_view end : {"_bucket", "_sum", "_count"}) {
      if (type == MEKIK_SAMPLE_HISTOGRAM && families.find(std::string{name} + std::string{end}) != families.end()) return true;
      if (!ends_with(name, end)) continue;
      const auto it = families.find(name.substr(0, name.size() - end.size()));
      if (it != families.end() && it->second.type == MEKIK_SAMPLE_HISTOGRAM) return true;
    }
    return false;
  }

  mekik_metric* get(std::uint32_t type, std::string_view name, std::string_view help, std::string_view labels,
                    const std::vector<double>& bounds) {
    if (!is_name(name) || ends_with(name, "_total") != (type == MEKIK_SAMPLE_COUNTER)) return nullptr;
    const auto canonical = canonical_labels(labels);
    if (!canonical || !ascending_and_finite(bounds)) return nullptr;
    const std::lock_guard lock{mutex};
    auto it = families.find(name);
    if (it == families.end()) {
      if (collides(name, type)) return nullptr;
      it = families.emplace(std::string{name}, Family{type, utf8_replace_invalid(help), bounds, {}}).first;
    }
    Family& family = it->second;
    if (family.type != type || family.bounds != bounds) return nullptr;
    std::unique_ptr<Series>& series = family.series[*canonical];
    if (!series) {
      auto descriptor = std::make_shared<const Descriptor>(Descriptor{it->first, family.help, *canonical, type, bounds});
      if (type == MEKIK_SAMPLE_COUNTER) series = std::make_unique<Counter>(std::move(descriptor));
      else if (type == MEKIK_SAMPLE_GAUGE) series = std::make_unique<Gauge>(std::move(descriptor));
      else series = std::make_unique<Histogram>(std::move(descriptor));
    }
    return series.get();
  }
};

Metrics::Metrics() : impl_{std::make_unique<Impl>()} {}
Metrics::~Metrics() = default;

mekik_metric* Metrics::counter(std::string_view name, std::string_view help, std::string_view labels) {
  return impl_->get(MEKIK_SAMPLE_COUNTER, name, help, labels, {});
}

mekik_metric* Metrics::gauge(std::string_view name, std::string_view help, std::string_view labels) {
  return impl_->get(MEKIK_SAMPLE_GAUGE, name, help, labels, {});
}

mekik_metric* Metrics::histogram(std::string_view name, std::string_view help, const std::vector<double>& bounds, std::string_view labels) {
  return impl_->get(MEKIK_SAMPLE_HISTOGRAM, name, help, labels, bounds);
}

Metrics::Snapshot Metrics::snapshot() const {
  const std::lock_guard lock{impl_->mutex};
  auto storage = std::make_shared<Storage>();
  std::size_t n_counts = 0;
  for (const auto& [name, family] : impl_->families) n_counts += family.series.size() * family.bounds.size();
  storage->counts.resize(n_counts);  // once: the samples point into it
  std::uint64_t* counts = storage->counts.data();
  Snapshot out;
  for (const auto& [name, family] : impl_->families) {
    for (const auto& [labels, series] : family.series) {
      const auto& descriptor = storage->descriptors.emplace_back(series->descriptor());
      mekik_sample sample{};
      sample.name = descriptor->name.c_str();
      sample.help = descriptor->help.c_str();
      sample.labels = descriptor->labels.c_str();
      sample.type = descriptor->type;
      sample.n_bounds = static_cast<std::uint32_t>(descriptor->bounds.size());
      sample.bounds = descriptor->bounds.data();
      sample.counts = counts;
      series->read(sample, counts);
      counts += descriptor->bounds.size();
      out.samples.push_back(sample);
    }
  }
  out.storage = std::move(storage);
  return out;
}

}  // namespace mekik::metrics
