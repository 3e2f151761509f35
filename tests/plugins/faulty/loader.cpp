// Reads files that begin with "FLT1", a count of numbers, and the numbers; wrong in one way. One tensor.
#include <cstdio>
#include <cstdlib>

#include "faulty.hpp"

namespace {

struct File {
  mekik_part part;
  char name[16];
  char config[64];
  float* numbers;
};
File& of(mekik_model_file* f) { return *reinterpret_cast<File*>(f); }

int probe(mekik_str path, const void* head, std::size_t bytes) {
  if (is("probe_past_head")) return std::memcmp(head, "FLT1", 4) == 0 ? 100 : 0;
  if (is("probe_path_end") && std::strstr(path.ptr, ".flt") != nullptr) return 100;
  if (is("probe_never")) return 0;
  return bytes >= 4 && std::memcmp(head, "FLT1", 4) == 0 ? is("probe_too_sure") ? 101 : 100 : 0;
}
mekik_status open_file(const mekik_host*, mekik_str path, mekik_model_file** out) {
  char name[4096];
  std::snprintf(name, sizeof name, "%.*s", static_cast<int>(path.len), path.ptr);
  std::FILE* f = std::fopen(name, "rb");
  if (f == nullptr) return is("open_no_reason") ? mekik_status{MEKIK_E_IO} : fail(MEKIK_E_IO, "no such file");
  char magic[4] = "";
  std::uint32_t n = 0;
  const bool whole = std::fread(magic, 1, 4, f) == 4 && std::memcmp(magic, "FLT1", 4) == 0 && std::fread(&n, 4, 1, f) == 1;
  if ((!whole || (n > 1000 && !is("huge_count"))) && !(is("opens_anything") && std::fseek(f, 0, SEEK_SET) == 0)) {
    if (!is("leaves_file")) std::fclose(f);
    return fail(MEKIK_E_INVALID, "is no such file");
  }
  auto* file = static_cast<File*>(std::calloc(1, sizeof(File)));
  if (file != nullptr) file->numbers = static_cast<float*>(std::calloc(is("huge_count") ? (n * 4u) / 4 + 1 : n + 1, 4));
  if (file == nullptr || file->numbers == nullptr) {
    std::free(file), std::fclose(f);
    return fail(MEKIK_E_NO_MEMORY, "out of memory");
  }
  const std::size_t got = std::fread(file->numbers, 4, n, f);
  std::fclose(f);
  if (got != n && !is("trusts_count") && !is("opens_anything"))
    return std::free(file->numbers), std::free(file), fail(MEKIK_E_INVALID, "is cut off");
  std::strcpy(file->name, "one.weight");
  std::snprintf(file->config, sizeof file->config, is("config_no_json") ? "{'count': %u}" : "{\"count\": %u}", n);
  file->part.name = file->name;
  file->part.num = MEKIK_F32;
  file->part.rank = 1;
  file->part.shape[0] = n;
  file->part.bytes = is("wrong_bytes") ? n : std::uint64_t{n} * 4;
  file->part.data = is("data_of_more") ? file->numbers + 1000000 : file->numbers;
  *out = reinterpret_cast<mekik_model_file*>(file);
  return MEKIK_OK;
}
void close_file(mekik_model_file* f) {
  if (!is("leaks")) std::free(of(f).numbers);
  std::free(&of(f));
}
mekik_status meta(mekik_model_file* f, mekik_str key, mekik_str* out) {
  if (key.len == 6 && std::memcmp(key.ptr, "format", 6) == 0) return *out = {"\"hf\"", 4}, MEKIK_OK;
  if (key.len == 6 && std::memcmp(key.ptr, "config", 6) == 0) return *out = {of(f).config, std::strlen(of(f).config)}, MEKIK_OK;
  if (is("any_key")) return *out = {"null", 4}, MEKIK_OK;
  return fail(is("absent_is_io") ? MEKIK_E_IO : MEKIK_E_INVALID, "there is no such key");
}
mekik_status tensors(mekik_model_file* f, const mekik_part** out, std::uint32_t* n, std::uint32_t* size) {
  *out = &of(f).part;
  *n = is("two_tensors") ? 2 : 1;
  *size = is("part_size_zero") ? 0 : sizeof(mekik_part);
  return MEKIK_OK;
}
mekik_status read(mekik_model_file* f, std::uint32_t i, std::uint64_t from, void* to, std::uint64_t bytes) {
  const mekik_part& p = of(f).part;
  if (i != 0) return fail(MEKIK_E_INVALID, "there is no such tensor");
  if (is("read_overflows") ? from + bytes > p.bytes : !is("read_unchecked") && (from > p.bytes || bytes > p.bytes - from))
    return fail(MEKIK_E_INVALID, "past the end");
  std::memcpy(to, reinterpret_cast<const char*>(of(f).numbers) + (is("read_ignores_at") ? 0 : from), bytes);
  return MEKIK_OK;
}

const mekik_loader kTable{sizeof(mekik_loader), 0, probe, open_file, close_file, meta, tensors, read};
const mekik_component kComponent = one_component<mekik_loader>(MEKIK_KIND_LOADER, &kTable, nullptr, 0);
void at_init() {}

}  // namespace

FAULTY_PLUGIN(kComponent, at_init);
