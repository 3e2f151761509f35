// A folder with config.json and each tensor as NumPy writes it, NAME.npy: for models that are made or changed in Python.
//   [model]
//   path = "folder"
//   loader = "npy"
#include <mekik/file.hpp>
#include <mekik/plugin.hpp>

#include <deque>
#include <filesystem>

namespace {

namespace fs = std::filesystem;
using mekik::Error;
using mekik::loaders::File;

[[noreturn]] void wrong(const File& file, const std::string& what) { throw Error{MEKIK_E_INVALID, file.path() + ": " + what}; }

// What stands behind 'key': in the header, up to one of `ends`.
std::string entry(const File& file, const std::string& header, const std::string& key, const char* ends) {
  const auto at = header.find("'" + key + "': ");
  const auto end = at == header.npos ? at : header.find_first_of(ends, at + key.size() + 4);
  if (end == header.npos) wrong(file, "its header has no '" + key + "'");
  return header.substr(at + key.size() + 4, end - at - key.size() - 4);
}

std::uint32_t num_of(const File& file, const std::string& descr) {
  constexpr std::pair<const char*, std::uint32_t> known[] = {{"'<f4'", MEKIK_F32}, {"'<f2'", MEKIK_F16}, {"'|i1'", MEKIK_I8},
                                                             {"'|u1'", MEKIK_U8},  {"'<i4'", MEKIK_I32}, {"'<i8'", MEKIK_I64}};
  for (const auto& [name, num] : known)
    if (descr == name) return num;
  wrong(file, "numbers of type " + descr + " are not read");
}

class Npy {
 public:
  static constexpr const char *name = "npy", *version = "1.0", *summary = "Reads a folder with config.json and a .npy file a tensor.";

  static int probe(std::string_view path, std::string_view) { return fs::exists(fs::path{path} / "config.json") ? 1 : 0; }
  explicit Npy(std::string_view path) : folder_{path} {
    std::vector<fs::path> found;
    for (const auto& file : fs::directory_iterator{folder_})
      if (file.path().extension() == ".npy") found.push_back(file.path());
    std::sort(found.begin(), found.end());  // the same order at every start
    for (const fs::path& file : found) add(file);
    if (parts_.empty()) throw Error{MEKIK_E_INVALID, folder_.string() + ": has no .npy files"};
  }
  std::string meta(std::string_view key) const {
    if (key == "format") return "\"hf\"";
    if (key == "files") return mekik::loaders::file_list(files_, (folder_ / "config.json").string());
    if (key == "config") return text("config.json");
    return key.starts_with("file:") ? text(std::string{key.substr(5)}) : "";
  }
  std::span<const mekik_part> tensors() const { return parts_; }
  void read(std::uint32_t i, std::uint64_t at, void* out, std::uint64_t bytes) const { files_[i].read(begins_[i] + at, out, bytes); }

 private:
  // \x93NUMPY, version, length of the header, header: a dictionary of Python.
  void add(const fs::path& path) {
    const File& file = files_.emplace_back(path.string());
    unsigned char head[12] = {};
    file.read(0, head, std::min<std::uint64_t>(file.bytes(), sizeof head));
    if (std::memcmp(head, "\x93NUMPY", 6) != 0) wrong(file, "is no .npy file");
    const std::uint64_t long_ones = head[6] > 1 ? 2 : 0, length = head[8] + 256u * head[9] + (long_ones ? 65536u * head[10] : 0u);
    std::string header(length, ' ');
    file.read(10 + long_ones, header.data(), length);
    if (entry(file, header, "fortran_order", ",}") != "False") wrong(file, "is in Fortran order; save numpy.ascontiguousarray of it");
    mekik_part part{};
    part.num = num_of(file, entry(file, header, "descr", ",}"));
    part.bytes = mekik::num_size(part.num);
    const std::string shape = entry(file, header, "shape", ")") + ",";
    for (std::size_t p = 1; p < shape.size() && shape[p] != ','; p = shape.find(',', p) + 2) {
      if (part.rank == 4) wrong(file, "has more than four sizes");
      part.shape[part.rank] = std::strtoll(shape.c_str() + p, nullptr, 10);
      if (__builtin_mul_overflow(part.bytes, static_cast<std::uint64_t>(part.shape[part.rank++]), &part.bytes)) wrong(file, "is too large");
    }
    if (part.rank == 0) part.rank = 1, part.shape[0] = 1;
    begins_.push_back(10 + long_ones + length);
    if (file.bytes() != begins_.back() + part.bytes) wrong(file, "has not the length that its header says");
    part.name = names_.emplace_back(path.stem().string()).c_str();
    parts_.push_back(part);
  }
  std::string text(const std::string& file) const {
    if (!fs::exists(folder_ / file)) return "";
    const File from{(folder_ / file).string()};
    std::string out(from.bytes(), ' ');
    from.read(0, out.data(), out.size());
    return out;
  }
  fs::path folder_;
  std::deque<File> files_;
  std::deque<std::string> names_;
  std::vector<std::uint64_t> begins_;
  std::vector<mekik_part> parts_;
};

}  // namespace

MEKIK_PLUGIN("org.example.npy", "1.0", mekik::loader<Npy>());
