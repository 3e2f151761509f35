#include "weights/prepared.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "support/catch.hpp"
#include "support/registry.hpp"

using namespace mekik;
using weights::PackedBytes;
using weights::Prepared;
namespace fs = std::filesystem;

namespace {

constexpr weights::PreparedKey kKey{1, 2, 3};

struct Fixture {
  test::TemporaryDirectory folder;
  fs::path path = folder.path() / "kept" / "model.packed", model = folder.path() / "model.gguf";
  std::vector<std::vector<std::uint8_t>> content;
  std::atomic<bool> stop{false};

  Fixture() {
    std::ofstream{model} << "weights";
    for (const std::size_t size : {std::size_t{1000}, std::size_t{0}, std::size_t{64}, std::size_t{70'000}}) {
      auto& bytes = content.emplace_back(size);
      for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + size);
    }
  }
  Status write() {
    const std::vector<PackedBytes> all{content.begin(), content.end()};
    return weights::write_prepared(path, kKey, model.string(), all, stop);
  }
  Status opened(const weights::PreparedKey& key = kKey) const { return Prepared::open(path, key, 2).status(); }
  std::string bytes() const {
    std::ifstream in{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
  }
  void put(std::string_view bytes) const { std::ofstream{path, std::ios::binary | std::ios::trunc} << bytes; }
  std::size_t files() const {
    const auto all = fs::directory_iterator{path.parent_path()};
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "prepared: what was written comes back, aligned, in a folder that is ours alone") {
  CHECK(opened().code == Code::invalid);
  REQUIRE(write().text == "");
  const auto file = Prepared::open(path, kKey, 3);
  REQUIRE(file.status().text == "");
  REQUIRE((*file)->weights().size() == content.size());
  for (std::size_t i = 0; i < content.size(); ++i) {
    const PackedBytes got = (*file)->weights()[i];
    CHECK(std::equal(got.begin(), got.end(), content[i].begin(), content[i].end()));
    CHECK(reinterpret_cast<std::uintptr_t>(got.data()) % 64 == 0);
  }
  CHECK(fs::status(path.parent_path()).permissions() == fs::perms::owner_all);
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(files() == 1);
  CHECK(opened(weights::PreparedKey{1, 2, 4}).code == Code::invalid);
}

TEST_CASE_METHOD(Fixture, "prepared: a file that is cut, longer, or changed in any byte that counts is damaged") {
  REQUIRE(write().text == "");
  const std::string whole = bytes();
  for (std::size_t size = 0; size < whole.size(); size += size < 5000 ? 37 : 4001) {
    put(std::string_view{whole}.substr(0, size));
    CHECK(opened().text == path.string() + ": is damaged");
  }
  put(whole + "x");
  CHECK(opened().text == path.string() + ": is damaged");
  const std::size_t head = 72 + (model.string().size() + 7) / 8 * 8 + 24 * content.size();
  const auto flipped = [&](std::size_t at) {
    std::string other = whole;
    other[at] = static_cast<char>(other[at] ^ 0x10);
    put(other);
    return opened();
  };
  for (std::size_t at = 0; at < head; ++at) {
    const bool padding = at >= 72 + model.string().size() && at < 72 + (model.string().size() + 7) / 8 * 8;
    CAPTURE(at);
    CHECK(flipped(at).ok() == padding);
  }
  for (std::size_t at = 4096; at < 4096 + 1000; at += 41) CHECK_FALSE(flipped(at).ok());
  CHECK_FALSE(flipped(whole.size() - 64).ok());
  put(whole);
  CHECK(opened().text == "");
}

TEST_CASE_METHOD(Fixture, "prepared: only a regular file that nobody else may write is used") {
  REQUIRE(write().text == "");
  REQUIRE(::chmod(path.c_str(), 0622) == 0);
  CHECK(opened().text == path.string() + ": can be written by others");
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK(opened().text == "");
  if (::geteuid() == 0) {
    REQUIRE(::chown(path.c_str(), 12345, 12345) == 0);
    CHECK(opened().text == path.string() + ": belongs to another user");
    REQUIRE(::chown(path.c_str(), 0, 0) == 0);
  }
  const fs::path moved = folder.path() / "moved";
  fs::rename(path, moved);
  fs::create_symlink(moved, path);
  CHECK(opened().code == Code::io);
  fs::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(opened().text == path.string() + ": is no regular file");
  fs::remove(path);
  fs::create_directory(path);
  CHECK(opened().code == Code::io);
}

TEST_CASE_METHOD(Fixture, "prepared: one process writes, and what it leaves when it dies is written over") {
  REQUIRE(write().text == "");
  const std::string whole = bytes(), partial = path.string() + ".partial";
  fs::remove(path);
  std::ofstream{partial} << std::string(200'000, 'x');
  const int other = ::open(partial.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(other, LOCK_EX) == 0);
  REQUIRE(::chmod(partial.c_str(), 0600) == 0);
  CHECK(write().code == Code::busy);
  ::close(other);
  CHECK(write().text == "");
  CHECK(bytes() == whole);
  CHECK(files() == 1);
}

TEST_CASE_METHOD(Fixture, "prepared: what cannot be written to its end leaves nothing behind") {
  stop = true;
  CHECK(write().code == Code::cancelled);
  CHECK(files() == 0);
  stop = false;
  // A disk that ends after 20,000 bytes.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{20'000, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const Status status = write();
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(status.code == Code::io);
  CHECK(status.text == path.string() + ".partial: cannot be written: File too large");
  CHECK(files() == 0);
  fs::remove(path.parent_path());
  std::ofstream{path.parent_path()} << "no folder";
  CHECK(write().code == Code::io);
}

TEST_CASE_METHOD(Fixture, "prepared: files of models that are gone are removed, other files are not") {
  REQUIRE(write().text == "");
  const fs::path first = path, kept = path.parent_path() / "notes.packed", gone = model;
  std::ofstream{kept} << "something else";
  model = folder.path() / "other.gguf";
  std::ofstream{model} << "weights";
  path = path.parent_path() / "other.packed";
  REQUIRE(write().text == "");
  CHECK(fs::exists(first));
  fs::remove(gone);
  REQUIRE(write().text == "");
  CHECK_FALSE(fs::exists(first));
  CHECK(fs::exists(path));
  CHECK(fs::exists(kept));
}
