// Which prepared file is whose: what decides packed weights, as a digest.
#include <openssl/sha.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <type_traits>

#include "base/files.hpp"
#include "base/text.hpp"
#include "weights/prepared.hpp"

namespace mekik::weights {

namespace {

namespace fs = std::filesystem;

// Numbers and texts one after another, each so that no two lists of them give the same bytes.
class Words {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void add(const T& x) { bytes_.append(reinterpret_cast<const char*>(&x), sizeof x); }
  void add(std::string_view text) {
    add(text.size());
    bytes_.append(text);
  }
  void add(const std::string& text) { add(std::string_view{text}); }
  template <class T>
  void add(const std::vector<T>& list) {
    add(list.size());
    for (const T& x : list) add(x);
  }
  void add(const program::RowRun& run) {
    add(run.source);
    add(run.first);
    add(run.count);
    add(run.step);
  }
  void add(const program::AxisStep& step) {
    add(step.what);
    add(step.numbers);
  }
  void add(const program::ValueStep& step) {
    add(step.what);
    add(step.constant);
  }
  void add(const program::WeightRecipe::Part& part) {
    add(part.source);
    add(part.steps);
  }
  void add(const program::WeightRecipe& recipe) {
    add(recipe.experts);
    add(recipe.n);
    add(recipe.k);
    add(recipe.host);
    add(recipe.host_divisors);
    add(recipe.rows);
    add(recipe.column0);
    add(recipe.parts);
    add(recipe.join_axis);
    add(recipe.value);
  }
  const std::string& bytes() const { return bytes_; }
  PreparedKey digest() const {
    PreparedKey out;
    SHA256(reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size(), out.data());
    return out;
  }

 private:
  std::string bytes_;
};

// A file that was changed, or replaced, has another inode, size or time; reading all of it would cost what a prepared file saves.
Status add_file(Words& words, const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return fail(Code::io, path + ": cannot be looked at");
  words.add(found.st_dev);
  words.add(found.st_ino);
  words.add(found.st_size);
  for (const timespec& time : {found.st_mtim, found.st_ctim}) {
    words.add(time.tv_sec);
    words.add(time.tv_nsec);
  }
  return {};
}

Status add_content(Words& words, const std::string& path) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state{XXH3_createState(), &XXH3_freeState};
  std::ifstream in{path, std::ios::binary};
  std::vector<char> piece(std::size_t{4} << 20);
  if (state == nullptr || XXH3_128bits_reset(state.get()) == XXH_ERROR)
    return fail(Code::no_memory, "there is no memory to look at " + path);
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())), in.gcount() > 0)
    XXH3_128bits_update(state.get(), piece.data(), static_cast<std::size_t>(in.gcount()));
  if (!in.eof()) return fail(Code::io, path + ": cannot be read");
  XXH128_canonical_t hash;
  XXH128_canonicalFromHash(&hash, XXH3_128bits_digest(state.get()));
  words.add(hash);
  return {};
}

}  // namespace

Result<PreparedKey> content_key(const ModelFile& file, const program::Program& program) {
  MEKIK_TRY(files, file.files());
  if (files.empty()) return unsupported("the loader does not say which files it reads");
  Words words;
  for (const std::string& path : files) MEKIK_CHECK_OK(add_content(words, path));
  words.add(program.weights);
  for (const program::Tensor& tensor : program.tensors) {
    words.add(tensor.role);
    words.add(tensor.shape);
    words.add(tensor.scheme);
    words.add(tensor.group);
    words.add(tensor.weight);
  }
  for (const program::Op& op : program.ops) {
    words.add(op.code);
    words.add(op.in);
    words.add(op.out);
    words.add(op.ints);
    words.add(op.reals);
  }
  return words.digest();
}

Result<PreparedKey> prepared_key(const ModelFile& file, const Store& store, const program::Program& program, const Packer& packer) {
  MEKIK_TRY(files, file.files());
  if (files.empty()) return unsupported("the loader does not say which files it reads");
  Words words;
  for (const std::string& path : files) MEKIK_CHECK_OK(add_file(words, path));
  std::set<std::string> libraries = store.libraries();
  libraries.insert({file.library(), packer.library});
  std::error_code error;
  for (const std::string& path : libraries)
    if (fs::exists(path, error)) MEKIK_CHECK_OK(add_file(words, path));  // those that are linked in come with the program
  MEKIK_CHECK_OK(add_file(words, program_path().string()));
  words.add(packer.backend);
  words.add(packer.device);
  words.add(packer.id);
  words.add(packer.dense);
  words.add(program.weights);
  for (const program::Tensor& tensor : program.tensors)
    if (tensor.weight >= 0) words.add(tensor.weight);
  return words.digest();
}

fs::path prepared_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path{value == nullptr ? "" : value};
  };
  if (const fs::path cache = variable("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "mekik";
  const fs::path home = variable("HOME");
  return home.is_absolute() ? home / ".cache" / "mekik" : fs::path{};
}

std::string prepared_name(const std::string& model_name, const std::string& model_path, const Packer& packer) {
  std::string readable = model_name.substr(0, 80);
  for (char& c : readable)
    if (c == '/' || static_cast<unsigned char>(c) < 0x20) c = '_';
  Words words;
  words.add(model_path);
  words.add(packer.backend);
  words.add(packer.device);
  words.add(packer.id);
  words.add(packer.dense);
  return readable + "-" + sha256_hex(words.bytes()).substr(0, 16) + ".packed";
}

}  // namespace mekik::weights
