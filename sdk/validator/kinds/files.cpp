#include "kinds/files.hpp"

#include <sys/stat.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

namespace mekik::validate {

std::string bytes_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}
void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream{path, std::ios::binary}.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

namespace {

template <class T>
std::string raw(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}
std::string text(const std::string& s) { return raw<std::uint64_t>(s.size()) + s; }

std::string floats(std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += raw(static_cast<float>(i) * 0.25f - 3);
  return out;
}

std::string gguf() {
  std::string keys = text("general.architecture") + raw<std::uint32_t>(8) + text("test") + text("general.name") + raw<std::uint32_t>(8) +
                     text("small") + text("test.block_count") + raw<std::uint32_t>(4) + raw<std::uint32_t>(2) +
                     text("tokenizer.ggml.model") + raw<std::uint32_t>(8) + text("gpt2") + text("tokenizer.ggml.tokens") +
                     raw<std::uint32_t>(9) + raw<std::uint32_t>(8) + raw<std::uint64_t>(3) + text("a") + text("b") + text("c");
  std::string out = "GGUF" + raw<std::uint32_t>(3) + raw<std::uint64_t>(2) + raw<std::uint64_t>(5) + keys;
  out += text("one.weight") + raw<std::uint32_t>(2) + raw<std::uint64_t>(32) + raw<std::uint64_t>(4) + raw<std::uint32_t>(0) +
         raw<std::uint64_t>(0);
  out += text("two.weight") + raw<std::uint32_t>(1) + raw<std::uint64_t>(8) + raw<std::uint32_t>(0) + raw<std::uint64_t>(512);
  out.resize((out.size() + 31) / 32 * 32);
  return out + floats(32 * 4 + 8);
}

std::string safetensors() {
  std::string header =
      R"({"one.weight":{"dtype":"F32","shape":[4,32],"data_offsets":[0,512]},"two.weight":{"dtype":"F32","shape":[8],"data_offsets":[512,544]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return raw<std::uint64_t>(header.size()) + header + floats(32 * 4 + 8);
}

bool printable(char c) { return c >= 0x20 && c < 0x7F; }

}  // namespace

std::vector<SampleFile> known_formats(const std::string& folder) {
  const std::string one = folder + "/small.gguf", many = folder + "/small";
  write_file(one, gguf());
  ::mkdir(many.c_str(), 0755);
  write_file(many + "/config.json", R"({"model_type":"test","architectures":["TestForCausalLM"],"hidden_size":32})");
  write_file(many + "/model.safetensors", safetensors());
  return {{one, one}, {many, many + "/model.safetensors"}};
}

std::vector<std::string> constants_of(const std::string& library) {
  const std::string all = bytes_of(library);
  std::set<std::string> seen;
  std::vector<std::string> out;
  std::string run;
  for (const char c : all) {
    if (printable(c)) {
      run += c;
      continue;
    }
    if (run.size() >= 3 && run.size() <= 32 && seen.insert(run).second) out.push_back(run);
    run.clear();
  }
  // A comparison with a constant may be part of the code: four bytes within it.
  for (std::size_t i = 0; i + 4 <= all.size() && out.size() < 60000; ++i)
    if (printable(all[i]) && printable(all[i + 1]) && printable(all[i + 2]) && printable(all[i + 3]) &&
        std::isalpha(static_cast<unsigned char>(all[i])) != 0) {
      std::string four = all.substr(i, 4);
      if (seen.insert(four).second) out.push_back(std::move(four));
    }
  return out;
}

}  // namespace mekik::validate
