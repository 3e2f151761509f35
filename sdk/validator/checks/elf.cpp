#include "checks/elf.hpp"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>

namespace mekik::validate {

namespace {

// The bytes of a file as structs, without trusting any offset.
class Image {
 public:
  explicit Image(const std::string& file) {
    std::ifstream in{file, std::ios::binary};
    bytes_.assign(std::istreambuf_iterator<char>{in}, {});
  }
  template <class T>
  bool get(std::uint64_t at, T& out) const {
    if (at > bytes_.size() || sizeof out > bytes_.size() - at) return false;
    std::memcpy(&out, bytes_.data() + at, sizeof out);
    return true;
  }
  std::string text(std::uint64_t at) const {
    std::string out;
    for (; at < bytes_.size() && bytes_[at] != '\0' && out.size() < 4096; ++at) out += bytes_[at];
    return out;
  }

 private:
  std::string bytes_;
};

void dynamic_facts(const Image& image, const Elf64_Shdr& dynamic, std::uint64_t strings, ElfFacts& out) {
  for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic.sh_size; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn d{};
    if (!image.get(dynamic.sh_offset + at, d) || d.d_tag == DT_NULL) return;
    if (d.d_tag == DT_NEEDED) out.needed.push_back(image.text(strings + d.d_un.d_val));
    if (d.d_tag == DT_RPATH || d.d_tag == DT_RUNPATH) out.rpath = image.text(strings + d.d_un.d_val);
    if (d.d_tag == DT_TEXTREL || (d.d_tag == DT_FLAGS && (d.d_un.d_val & DF_TEXTREL) != 0)) out.text_relocations = true;
    if (d.d_tag == DT_FLAGS && (d.d_un.d_val & DF_STATIC_TLS) != 0) out.static_tls = true;
  }
}

void symbol_facts(const Image& image, const Elf64_Shdr& symbols, std::uint64_t strings, ElfFacts& out) {
  for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
    Elf64_Sym s{};
    if (!image.get(symbols.sh_offset + at, s)) return;
    const int binding = ELF64_ST_BIND(s.st_info), visibility = ELF64_ST_VISIBILITY(s.st_other);
    if (s.st_shndx != SHN_UNDEF && s.st_shndx != SHN_ABS && binding != STB_LOCAL && visibility == STV_DEFAULT)
      out.exported.push_back(image.text(strings + s.st_name));
  }
}

}  // namespace

ElfFacts elf_facts(const std::string& file) {
  ElfFacts out;
  const Image image{file};
  Elf64_Ehdr header{};
  if (!image.get(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    out.wrong = "is not an ELF file";
    return out;
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN) {
    out.wrong = "is not a 64-bit shared library";
    return out;
  }
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr p{};
    if (image.get(header.e_phoff + i * sizeof p, p) && p.p_type == PT_GNU_STACK && (p.p_flags & PF_X) != 0) out.executable_stack = true;
  }
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr s{}, strings{};
    if (!image.get(header.e_shoff + i * sizeof s, s)) break;
    if (s.sh_type != SHT_DYNSYM && s.sh_type != SHT_DYNAMIC) continue;
    if (!image.get(header.e_shoff + std::uint64_t{s.sh_link} * sizeof strings, strings)) break;
    if (s.sh_type == SHT_DYNSYM) symbol_facts(image, s, strings.sh_offset, out);
    else dynamic_facts(image, s, strings.sh_offset, out);
  }
  return out;
}

}  // namespace mekik::validate
