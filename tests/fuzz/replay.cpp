// Runs a fuzz target over all files of the folders given, for builds without libFuzzer. Also tries each file cut short and with
// single bytes changed, so that the ordinary tests see some damage, too.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void run(const std::string& bytes) { LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()); }

void run_damaged(const std::string& bytes) {
  const std::size_t step = bytes.size() / 64 + 1;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    run(bytes.substr(0, at));
    for (const char byte : {'\x00', '\x7F', '\xFF'}) {
      std::string changed = bytes;
      changed[at] = byte;
      run(changed);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) continue;
    for (const auto& entry : std::filesystem::directory_iterator{argv[i]}) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in{entry.path(), std::ios::binary};
      const std::string bytes{std::istreambuf_iterator<char>{in}, {}};
      run(bytes);
      run_damaged(bytes);
      ++files;
    }
  }
  std::printf("%zu inputs\n", files);
  return files > 0 ? 0 : 1;
}
