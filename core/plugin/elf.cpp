#include "plugin/elf.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <boost/dll/library_info.hpp>
#include <cstring>
#include <fstream>
#include <vector>

namespace mekik::plugin {

namespace {

namespace fs = std::filesystem;

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr std::uint16_t kMachine = EM_RISCV;
#else
#error "add this machine's ELF number"
#endif

template <class T>
bool read_at(std::ifstream& in, std::uint64_t at, T& out) {
  in.seekg(static_cast<std::streamoff>(at));
  return static_cast<bool>(in.read(reinterpret_cast<char*>(&out), sizeof out));
}

bool inside(std::uint64_t begin, std::uint64_t length, std::uint64_t size) { return begin <= size && length <= size - begin; }

// Whether all that the headers speak of is in the file: a loader maps it without asking, and reading past the end kills the process.
Status check_extent(std::ifstream& in, std::uint64_t size, const std::string& name) {
  const Status truncated = invalid(name + ": is truncated: its headers speak of more than its " + std::to_string(size) + " bytes");
  Elf64_Ehdr header{};
  if (size < sizeof header || !read_at(in, 0, header)) return truncated;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != kMachine)
    return invalid(name + ": is built for another kind of machine");
  if (header.e_type != ET_DYN) return invalid(name + ": is not a shared library");
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_phentsize != sizeof(Elf64_Phdr) || header.e_shnum == 0 ||
      header.e_shstrndx >= header.e_shnum)
    return invalid(name + ": has no section headers to read its symbols from");
  if (!inside(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), size) ||
      !inside(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr), size))
    return truncated;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section{};
    if (!read_at(in, header.e_shoff + i * sizeof section, section)) return truncated;
    if (section.sh_type != SHT_NOBITS && !inside(section.sh_offset, section.sh_size, size)) return truncated;
  }
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!read_at(in, header.e_phoff + i * sizeof segment, segment)) return truncated;
    if (!inside(segment.p_offset, segment.p_filesz, size)) return truncated;
  }
  return {};
}

// The ABI majors that a library offers: the digits of its symbols mekik_plugin_v<digits>.
std::vector<std::string> majors_of(const std::vector<std::string>& symbols) {
  static constexpr std::string_view kPrefix = "mekik_plugin_v";
  std::vector<std::string> out;
  for (const std::string& symbol : symbols) {
    if (symbol.compare(0, kPrefix.size(), kPrefix) != 0) continue;
    const std::string digits = symbol.substr(kPrefix.size());
    if (!digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos) out.push_back(digits);
  }
  return out;
}

}  // namespace

Status inspect(const fs::path& path) {
  const std::string name = path.string();
  std::error_code error;
  if (!fs::exists(path, error)) return invalid(name + ": no such file");
  if (!fs::is_regular_file(path, error)) return invalid(name + ": is not a regular file");
  std::ifstream in{path, std::ios::binary};
  if (!in) return fail(Code::io, name + ": cannot be read");
  std::array<char, SELFMAG> magic{};
  in.read(magic.data(), magic.size());
  if (in.gcount() != SELFMAG || std::memcmp(magic.data(), ELFMAG, SELFMAG) != 0)
    return invalid(name + ": is not an ELF file, so not a plugin");
  MEKIK_CHECK_OK(check_extent(in, fs::file_size(path, error), name));
  std::vector<std::string> majors;
  try {
    majors = majors_of(boost::dll::library_info{path}.symbols());
  } catch (const std::exception& e) {
    return invalid(name + ": its symbols cannot be read: " + e.what());
  }
  const std::string wanted = std::to_string(kAbiMajor);
  if (majors.empty()) return invalid(name + ": is not a mekik plugin: it has no symbol mekik_plugin_v" + wanted);
  if (std::find(majors.begin(), majors.end(), wanted) == majors.end())
    return unsupported(name + ": built for ABI major " + majors.front() + ", this engine speaks " + wanted +
                       "; build it again with this engine's headers");
  return {};
}

}  // namespace mekik::plugin
