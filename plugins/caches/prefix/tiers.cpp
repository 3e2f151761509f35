#include "tiers.hpp"

#include <algorithm>
#include <chrono>

namespace mekik::prefix_cache {

namespace {

constexpr std::uint64_t kDiskNsPerMiB = 1'000'000, kDiskNs = 200'000;    // at first: of a disk that reads a gigabyte a second
constexpr std::uint64_t kRedisNsPerMiB = 5'000'000, kRedisNs = 500'000;  // and of a network
constexpr std::uint64_t kMemoryNsPerMiB = 200'000, kSmall = 16384;
constexpr std::uint64_t kSaidEveryNs = 60'000'000'000, kQuietNs = 10'000'000'000;
constexpr std::uint64_t kMostCopies = std::uint64_t{64} << 20;  // bytes on their way from the server to the directory
constexpr std::uint32_t kFirstKeys = 16, kMostKeys = 256;       // in a question to the server

std::uint64_t now() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

void follow(std::atomic<std::uint64_t>& value, std::uint64_t seen) { value = (3 * value + seen) / 4; }

}  // namespace

void Tiers::Place::say(const std::string& text) {
  const std::lock_guard lock{mutex};
  if (said_ns != 0 && now() - said_ns < kSaidEveryNs) return;
  said_ns = now();
  write_log(3, "cache", text + "; what it would have held is computed again");
}

void Tiers::Place::fail() const {
  if (failures != nullptr) service<mekik_metrics>(MEKIK_METRICS)->record(failures, 1);
}

void Tiers::Place::took(std::uint64_t bytes, std::uint64_t ns) {
  if (reads != nullptr) service<mekik_metrics>(MEKIK_METRICS)->record(reads, 1);
  if (bytes < kSmall) follow(least_ns, ns);
  else follow(ns_per_mib, (ns - std::min<std::uint64_t>(ns, least_ns)) * (1 << 20) / bytes);
}

std::uint64_t Tiers::Place::expected_ns(std::uint64_t bytes) const { return least_ns + bytes * ns_per_mib / (1 << 20); }

void Tiers::count(Place& place, const char* tier) const {
  const auto* metrics = service<mekik_metrics>(MEKIK_METRICS);
  if (metrics == nullptr) return;
  const std::string label = std::string{"tier="} + tier;
  place.reads = metrics->counter(host, "mekik_cache_tier_values_read_total", "Values that a slower tier gave back.", label.c_str());
  place.failures =
      metrics->counter(host, "mekik_cache_tier_errors_total",
                       "Calls of a slower tier that failed: it was not there, late, or answered what is no answer.", label.c_str());
}

Tiers::Tiers(const TierOptions& options) {
  if (options.memory > 0) {
    memory_.emplace(options.memory);
    if (const auto* metrics = service<mekik_metrics>(MEKIK_METRICS))
      memory_reads_ = metrics->counter(host, "mekik_cache_tier_values_read_total", "Values that a slower tier gave back.", "tier=host");
  }
  const auto drop = [this](Job& job) { end(job, MEKIK_E_CANCELLED); };
  if (!options.folder.empty()) {
    disk_.emplace(options.folder, options.disk_bytes);
    count(disk_place_, "disk");
    disk_place_.ns_per_mib = kDiskNsPerMiB;
    disk_place_.least_ns = kDiskNs;
  }
  if (options.redis) {
    redis_.emplace();
    redis_->options = *options.redis;
    count(redis_place_, "redis");
    redis_place_.ns_per_mib = kRedisNsPerMiB;
    redis_place_.least_ns = kRedisNs;
    redis_->reader = make_redis(redis_->options);
    redis_->writer = make_redis(redis_->options);
    redis_writer_.start([this](Job& job) { write_redis(job); }, drop);
    redis_reader_.start([this](Job& job) { job.kind == Job::Kind::ask ? answer(job) : read_redis(job); }, drop);
  }
  if (disk_) {
    disk_writer_.start([this](Job& job) { write_disk(job); }, drop);
    disk_reader_.start([this](Job& job) { job.kind == Job::Kind::ask ? answer(job) : read_disk(job); }, drop);
  }
}

// Readers first: they hand jobs to others.
Tiers::~Tiers() {
  for (Worker* worker : {&disk_reader_, &redis_reader_, &redis_writer_, &disk_writer_}) worker->stop();
}

bool Tiers::has(const mekik_key& key, std::uint64_t& bytes, std::uint64_t& expected_ns) const {
  expected_ns = 0;
  if (memory_ && memory_->has(key, bytes)) {
    expected_ns = (bytes >> 20) * kMemoryNsPerMiB;
    return true;
  }
  {
    const std::lock_guard lock{mutex_};
    if (const auto at = pending_.find(key); at != pending_.end()) {
      bytes = at->second.bytes;
      return true;
    }
  }
  if (!disk_ || !disk_->has(key, bytes)) return false;
  expected_ns = disk_place_.expected_ns(bytes);
  return true;
}

void Tiers::store(const mekik_key& key, const void* data, std::uint64_t bytes, mekik_done done, void* ctx) {
  if (!any()) throw Error{MEKIK_E_UNSUPPORTED, "this cache has no slower tier"};
  if (bytes == 0) throw Error{MEKIK_E_INVALID, "a value has at least one byte"};
  if (memory_) memory_->write(key, data, bytes);
  const std::uint32_t places = (disk_ ? 1u : 0u) + (redis_ ? 1u : 0u);
  if (places == 0) return done(ctx, MEKIK_OK);
  {
    const std::lock_guard lock{mutex_};
    pending_.try_emplace(key, Pending{data, bytes, ctx});
  }
  Job job{Job::Kind::write};
  job.key = key;
  job.from = data;
  job.bytes = bytes;
  job.done = done;
  job.ctx = ctx;
  job.writing = std::make_shared<Writing>(Writing{places, MEKIK_OK});
  if (redis_) redis_writer_.add(job);
  if (disk_) disk_writer_.add(std::move(job));
}

// What memory has, or what is still being written.
bool Tiers::nearby(const mekik_key& key, void* data, std::uint64_t bytes) {
  if (memory_ && memory_->read(key, data, bytes)) {
    if (memory_reads_ != nullptr) service<mekik_metrics>(MEKIK_METRICS)->record(memory_reads_, 1);
    return true;
  }
  const std::lock_guard lock{mutex_};
  const auto at = pending_.find(key);
  if (at == pending_.end() || at->second.bytes != bytes) return false;
  std::memcpy(data, at->second.data, bytes);
  return true;
}

void Tiers::fetch(const mekik_key& key, void* data, std::uint64_t bytes, mekik_done done, void* ctx) {
  if (nearby(key, data, bytes)) return done(ctx, MEKIK_OK);
  Job job{Job::Kind::read};
  job.key = key;
  job.to = data;
  job.bytes = bytes;
  job.done = done;
  job.ctx = ctx;
  if (disk_) disk_reader_.add(std::move(job));
  else if (redis_) redis_reader_.add(std::move(job));
  else done(ctx, MEKIK_E_INVALID);
}

void Tiers::ask(std::span<const mekik_key> keys, bool chain, Strided<mekik_known> out, mekik_done done, void* ctx) {
  Job job{Job::Kind::ask};
  job.done = done;
  job.ctx = ctx;
  job.keys = keys.data();
  job.n = static_cast<std::uint32_t>(keys.size());
  job.chain = chain;
  job.out = reinterpret_cast<char*>(out.data);
  job.out_step = out.step;
  if (redis_) redis_reader_.add(std::move(job));
  else if (disk_) disk_reader_.add(std::move(job));
  else answer(job);
}

void Tiers::answer(Job& job) {
  look(job);
  end(job, MEKIK_OK);
}

// In growing pieces: of most prompts nothing is known, and of some all.
void Tiers::look(const Job& job) {
  const Strided<mekik_known> out{reinterpret_cast<mekik_known*>(job.out), job.n, job.out_step};
  std::vector<mekik_key> missing;
  std::vector<std::uint64_t> lengths;
  std::vector<std::uint32_t> places;
  bool server = redis_.has_value();
  for (std::uint32_t from = 0, piece = kFirstKeys; from < job.n; piece = std::min(2 * piece, kMostKeys)) {
    const std::uint32_t to = std::min(job.n, from + piece);
    missing.clear();
    places.clear();
    for (std::uint32_t i = from; i < to; ++i) {
      if (has(job.keys[i], out[i].bytes, out[i].expected_ns)) continue;
      out[i].bytes = out[i].expected_ns = 0;
      if (job.chain && !server) return;
      missing.push_back(job.keys[i]);
      places.push_back(i);
    }
    lengths.assign(missing.size(), 0);
    if (server && !missing.empty()) server = guarded(redis_place_, [&] { redis_->reader->lengths(missing, lengths.data()); }) == MEKIK_OK;
    for (std::size_t i = 0; i < missing.size(); ++i) {
      if (server) out[places[i]] = {lengths[i], lengths[i] == 0 ? 0 : redis_place_.expected_ns(lengths[i])};
      if (job.chain && out[places[i]].bytes == 0) return;
    }
    from = to;
  }
}

void Tiers::read_disk(Job& job) {
  const auto began = now();
  const mekik_status status = guarded(disk_place_, [&] { disk_->read(job.key, job.to, job.bytes); });
  if (status == MEKIK_OK) {
    disk_place_.took(job.bytes, now() - began);
    keep(job, false);
  } else if (redis_) {
    return redis_reader_.add(std::move(job));
  }
  end(job, status);
}

void Tiers::read_redis(Job& job) {
  const auto began = now();
  const mekik_status status = guarded(redis_place_, [&] { redis_->reader->read(job.key, job.to, job.bytes); });
  if (status == MEKIK_OK) {
    redis_place_.took(job.bytes, now() - began);
    keep(job, true);
  }
  end(job, status);
}

// What came from far is kept nearer.
void Tiers::keep(const Job& job, bool disk) {
  if (memory_) memory_->write(job.key, job.to, job.bytes);
  if (!disk || !disk_ || disk_writer_.bytes() + job.bytes > kMostCopies) return;
  Job copy{Job::Kind::copy};
  copy.key = job.key;
  copy.bytes = job.bytes;
  const auto* from = static_cast<const std::uint8_t*>(job.to);
  copy.held = std::make_shared<std::vector<std::uint8_t>>(from, from + job.bytes);
  copy.from = copy.held->data();
  disk_writer_.add(std::move(copy));
}

void Tiers::write_disk(Job& job) {
  if (now() < quiet_until_ns_) return end(job, MEKIK_E_CANCELLED);
  const mekik_status status = guarded(disk_place_, [&] { disk_->write(job.key, job.from, job.bytes); });
  if (status != MEKIK_OK) quiet_until_ns_ = now() + kQuietNs;
  end(job, status);
}

void Tiers::write_redis(Job& job) {
  end(job, guarded(redis_place_, [&] { redis_->writer->write(job.key, job.from, job.bytes); }));
}

template <class Call>
mekik_status Tiers::guarded(Place& place, Call&& call) {
  try {
    call();
    return MEKIK_OK;
  } catch (const Error& e) {
    if (e.code != MEKIK_E_INVALID && e.code != MEKIK_E_CANCELLED) {
      place.say(e.what());
      place.fail();
    }
    return e.code;
  } catch (const std::exception& e) {
    place.say(e.what());
    place.fail();
    return MEKIK_E_INTERNAL;
  }
}

void Tiers::end(Job& job, mekik_status status) {
  if (job.kind == Job::Kind::copy) return;
  if (job.writing) {
    const std::lock_guard lock{mutex_};
    if (status != MEKIK_OK && (job.writing->status == MEKIK_OK || status != MEKIK_E_CANCELLED)) job.writing->status = status;
    if (--job.writing->left > 0) return;
    status = job.writing->status;
    if (const auto at = pending_.find(job.key); at != pending_.end() && at->second.ctx == job.ctx) pending_.erase(at);
  }
  job.done(job.ctx, status);
}

// A job that has not begun is over at once; one that has takes no longer than its time limit.
void Tiers::cancel(void* ctx) {
  for (Worker* worker : {&disk_reader_, &redis_reader_, &disk_writer_, &redis_writer_})
    if (auto job = worker->take(ctx)) end(*job, MEKIK_E_CANCELLED);
}

}  // namespace mekik::prefix_cache
