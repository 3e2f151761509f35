#include "weights/prepared.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <thread>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/text.hpp"

namespace mekik::weights {

namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'m', 'e', 'k', 'i', 'k', 'p', 'k', '1'};
constexpr std::uint32_t kByteOrder = 0x01020304;
constexpr std::uint64_t kPage = 4096, kAlign = 64;
constexpr std::uint64_t kMaxPath = 4096;
constexpr std::uint64_t kStep = std::uint64_t{4} << 20;  // written between two looks at `stop`
constexpr const char* kEnd = ".packed";

struct Header {
  char magic[8];
  std::uint32_t byte_order, n_weights;
  std::uint8_t key[32];
  std::uint64_t file_bytes, path_bytes;
  std::uint64_t check;  // of everything before the packed bytes, this one taken as 0
};
struct Entry {
  std::uint64_t offset, bytes, check;
};

std::uint64_t up(std::uint64_t x, std::uint64_t to) { return (x + to - 1) / to * to; }
std::uint64_t data_begin(std::uint64_t path_bytes, std::uint64_t n) {
  return up(sizeof(Header) + up(path_bytes, 8) + n * sizeof(Entry), kPage);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_{fd} {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Status failed(const fs::path& path, const std::string& what) { return fail(Code::io, path.string() + ": " + what); }
Status failed_call(const fs::path& path, const std::string& what) { return failed(path, what + ": " + std::strerror(errno)); }

std::uint64_t head_check(Header header, std::string_view path, std::span<const Entry> entries) {
  header.check = 0;
  std::string head{reinterpret_cast<const char*>(&header), sizeof header};
  head.append(path).append(reinterpret_cast<const char*>(entries.data()), entries.size_bytes());
  return XXH3_64bits(head.data(), head.size());
}

// The regular file at `path` if it is ours, or root's, and nobody else may write it.
Status check_owner(const fs::path& path, const struct stat& found) {
  if (!S_ISREG(found.st_mode)) return failed(path, "is no regular file");
  if (found.st_uid != ::geteuid() && found.st_uid != 0) return failed(path, "belongs to another user");
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0) return failed(path, "can be written by others");
  return {};
}

// The weights of a mapped file, unchecked but inside of it. Empty: it is none of ours, or cut.
bool read_head(PackedBytes file, Header& header, std::string& model, std::vector<Entry>& entries) {
  if (file.size() < sizeof header) return false;
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.byte_order != kByteOrder) return false;
  if (header.path_bytes > kMaxPath || header.file_bytes != file.size()) return false;
  const std::uint64_t begin = data_begin(header.path_bytes, header.n_weights);
  if (begin > file.size()) return false;
  model.assign(reinterpret_cast<const char*>(file.data()) + sizeof header, header.path_bytes);
  entries.resize(header.n_weights);
  std::memcpy(entries.data(), file.data() + sizeof header + up(header.path_bytes, 8), entries.size() * sizeof(Entry));
  if (head_check(header, model, entries) != header.check) return false;
  return std::all_of(entries.begin(), entries.end(), [&](const Entry& e) {
    return e.offset >= begin && e.offset % kAlign == 0 && e.offset <= file.size() && e.bytes <= file.size() - e.offset;
  });
}

// Whether every weight is what was written; each thread takes pieces of the file that follow each other, which also brings them in.
bool all_right(PackedBytes file, const std::vector<Entry>& entries, std::uint32_t threads) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> right{true};
  const auto work = [&] {
    for (std::size_t i = next++; i < entries.size() && right; i = next++)
      if (XXH3_64bits(file.data() + entries[i].offset, entries[i].bytes) != entries[i].check) right = false;
  };
  std::vector<std::jthread> others;
  for (std::uint32_t t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  others.clear();
  return right;
}

Status write_all(int fd, const fs::path& path, const void* data, std::uint64_t bytes, std::uint64_t at, const std::atomic<bool>& stop) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    if (stop) return fail(Code::cancelled, "stopped");
    const ssize_t n = ::pwrite(fd, from, std::min(bytes, kStep), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed_call(path, "cannot be written");
    from += n;
    at += static_cast<std::uint64_t>(n);
    bytes -= static_cast<std::uint64_t>(n);
  }
  return {};
}

Status write_content(int fd, const fs::path& path, Header header, const std::string& model, const std::vector<PackedBytes>& weights,
                     const std::atomic<bool>& stop) {
  std::vector<Entry> entries;
  std::uint64_t at = data_begin(model.size(), weights.size());
  for (const PackedBytes& weight : weights) {
    entries.push_back({at, weight.size(), XXH3_64bits(weight.data(), weight.size())});
    MEKIK_CHECK_OK(write_all(fd, path, weight.data(), weight.size(), at, stop));
    at = up(at + weight.size(), kAlign);
  }
  header.file_bytes = at;
  if (::ftruncate(fd, static_cast<off_t>(at)) != 0) return failed_call(path, "cannot be written");
  header.check = head_check(header, model, entries);
  MEKIK_CHECK_OK(write_all(fd, path, model.data(), model.size(), sizeof header, stop));
  MEKIK_CHECK_OK(write_all(fd, path, entries.data(), entries.size() * sizeof(Entry), sizeof header + up(model.size(), 8), stop));
  return write_all(fd, path, &header, sizeof header, 0, stop);  // the last: without it the file is none
}

// A tenth of the disk stays free.
Status check_space(const fs::path& folder, std::uint64_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error) return failed(folder, "cannot be looked at: " + error.message());
  if (space.available >= bytes && space.available - bytes >= space.capacity / 10) return {};
  return failed(folder, human_bytes(bytes) + " would leave less than a tenth of this disk free, " + human_bytes(space.available) + " of " +
                            human_bytes(space.capacity) + " are");
}

// The model that a file of ours was made for; empty: it is none of ours.
std::string model_of(const fs::path& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  Header header{};
  struct stat found {};
  if (file.get() < 0 || ::fstat(file.get(), &found) != 0 || !check_owner(path, found).ok()) return {};
  if (::pread(file.get(), &header, sizeof header, 0) != ssize_t{sizeof header}) return {};
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.byte_order != kByteOrder || header.path_bytes > kMaxPath) return {};
  std::string model(header.path_bytes, '\0');
  return ::pread(file.get(), model.data(), model.size(), sizeof header) == static_cast<ssize_t>(model.size()) ? model : std::string{};
}

void remove_orphans(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> gone;
  for (fs::directory_iterator entry{folder, error}, end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() != kEnd) continue;
    const std::string model = model_of(entry->path());
    std::error_code missing;
    if (!model.empty() && !fs::exists(model, missing) && !missing) gone.push_back(entry->path());
  }
  for (const fs::path& path : gone) fs::remove(path, error);
}

}  // namespace

Result<std::unique_ptr<Prepared>> Prepared::open(const fs::path& path, const PreparedKey& key, std::uint32_t threads) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  if (file.get() < 0) return errno == ENOENT || errno == ENOTDIR ? invalid("there is none") : failed_call(path, "cannot be opened");
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return failed_call(path, "cannot be looked at");
  MEKIK_CHECK_OK(check_owner(path, found));
  const auto bytes = static_cast<std::size_t>(found.st_size);
  if (bytes < sizeof(Header)) return failed(path, "is damaged");
  void* data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return failed_call(path, "cannot be mapped");
  std::unique_ptr<Prepared> out{new Prepared};
  out->mapped_ = {static_cast<const std::uint8_t*>(data), bytes};
  Header header{};
  std::string model;
  std::vector<Entry> entries;
  if (!read_head(out->mapped_, header, model, entries)) return failed(path, "is damaged");
  if (std::memcmp(header.key, key.data(), key.size()) != 0) return invalid("it is of another model, or was packed in another way");
  if (!all_right(out->mapped_, entries, threads)) return failed(path, "is damaged");
  for (const Entry& e : entries) out->weights_.push_back(out->mapped_.subspan(e.offset, e.bytes));
  return out;
}

Prepared::~Prepared() {
  if (!mapped_.empty()) ::munmap(const_cast<std::uint8_t*>(mapped_.data()), mapped_.size());
}

Status write_prepared(const fs::path& path, const PreparedKey& key, const std::string& model_path, const std::vector<PackedBytes>& weights,
                      const std::atomic<bool>& stop) {
  const fs::path folder = path.parent_path();
  std::error_code error;
  if (!fs::exists(folder, error)) {
    fs::create_directories(folder, error);
    if (error) return failed(folder, "cannot be made: " + error.message());
    fs::permissions(folder, fs::perms::owner_all, error);
  }
  remove_orphans(folder);
  MEKIK_CHECK_OK(check_space(folder, std::accumulate(weights.begin(), weights.end(), std::uint64_t{0},
                                                     [](std::uint64_t sum, PackedBytes w) { return sum + w.size(); })));
  // Who holds the lock writes; a file without one was left by a process that ended.
  const fs::path partial = path.string() + ".partial";
  const Descriptor file{::open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600)};
  if (file.get() < 0) return failed_call(partial, "cannot be written");
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return fail(Code::busy, "another process writes it");
  struct stat ours {
  }, there{};
  if (::fstat(file.get(), &ours) != 0) return failed_call(partial, "cannot be looked at");
  MEKIK_CHECK_OK(check_owner(partial, ours));
  if (::lstat(partial.c_str(), &there) != 0 || there.st_ino != ours.st_ino) return fail(Code::busy, "another process wrote it");
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.byte_order = kByteOrder;
  header.n_weights = static_cast<std::uint32_t>(weights.size());
  std::memcpy(header.key, key.data(), key.size());
  const std::string model = model_path.substr(0, kMaxPath);
  header.path_bytes = model.size();
  Status written = ::ftruncate(file.get(), 0) != 0 ? failed_call(partial, "cannot be written")
                                                   : write_content(file.get(), partial, header, model, weights, stop);
  if (written.ok() && ::rename(partial.c_str(), path.c_str()) != 0) written = failed_call(path, "cannot be put in place");
  if (!written.ok()) ::unlink(partial.c_str());
  return written;
}

}  // namespace mekik::weights
