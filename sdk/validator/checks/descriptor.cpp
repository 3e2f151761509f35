// A component's description: names, table, options.
#include <mekik/version.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "checks/checks.hpp"
#include "run/shared.hpp"
#include "support/config.hpp"

namespace mekik::validate {

namespace {

bool is_name(const char* s) {
  return s != nullptr && s[0] != '\0' && std::strlen(s) <= 64 && std::strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == std::strlen(s);
}

struct KindFacts {
  const char* id;
  std::uint32_t first, size;            // bytes of its table: of the first revision, as this validator knows it
  std::vector<std::uint32_t> optional;  // offsets of members that may be NULL, or are no pointers
};
#define MEKIK_AT(T, m) static_cast<std::uint32_t>(offsetof(T, m))
const std::vector<KindFacts>& kinds() {
  using Q = mekik_scheme;
  using C = mekik_cache_policy;
  using P = mekik_sampler;
  using K = mekik_sink_api;
  static const std::vector<KindFacts> all{
      {MEKIK_KIND_BACKEND, sizeof(mekik_backend), sizeof(mekik_backend), {}},
      {MEKIK_KIND_LOADER, sizeof(mekik_loader), sizeof(mekik_loader), {}},
      {MEKIK_KIND_SCHEME,
       MEKIK_AT(Q, shape),
       sizeof(Q),
       {8, MEKIK_AT(Q, suffixes), MEKIK_AT(Q, claims), MEKIK_AT(Q, release), MEKIK_AT(Q, rows), MEKIK_AT(Q, encode), MEKIK_AT(Q, shape),
        MEKIK_AT(Q, left_out)}},
      {MEKIK_KIND_SCHEDULER, sizeof(mekik_scheduler), sizeof(mekik_scheduler), {MEKIK_AT(mekik_scheduler, observe)}},
      {MEKIK_KIND_CACHE,
       MEKIK_AT(C, ask),
       sizeof(C),
       {MEKIK_AT(C, has), MEKIK_AT(C, store), MEKIK_AT(C, fetch), MEKIK_AT(C, cancel), MEKIK_AT(C, ask), MEKIK_AT(C, host_bytes)}},
      {MEKIK_KIND_SAMPLER, sizeof(P), sizeof(P), {MEKIK_AT(P, fork), MEKIK_AT(P, allow), MEKIK_AT(P, pick)}},
      {MEKIK_KIND_DRAFTER, sizeof(mekik_drafter), sizeof(mekik_drafter), {}},
      {MEKIK_KIND_SINK, sizeof(K), sizeof(K), {MEKIK_AT(K, event), MEKIK_AT(K, scrape)}}};
  return all;
}

bool executable(std::uintptr_t address) {
  std::ifstream in{"/proc/self/maps"};
  for (std::string line; std::getline(in, line);) {
    unsigned long first = 0, last = 0;
    char rights[8] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %7s", &first, &last, rights) == 3 && address >= first && address < last)
      return std::strchr(rights, 'x') != nullptr;
  }
  return false;
}

void function(std::uintptr_t address, const std::string& what) {
  if (address != 0 && !executable(address)) fault(what + " points to something that is no code");
}

void component_struct(const Task& task, const std::string& label) {
  Subject subject{task, Mode{}};
  const mekik_component& c = subject.component(label);
  if (c.struct_size != sizeof(mekik_component) && subject.entry().abi_minor == MEKIK_ABI_MINOR)
    fault("its mekik_component says that it has " + std::to_string(c.struct_size) + " bytes, not " +
          std::to_string(sizeof(mekik_component)));
  if (c.reserved != 0) fault("the reserved member of its mekik_component is not 0");
  const std::string kind = c.kind;
  const std::size_t slash = kind.rfind('/');
  if (slash == std::string::npos || slash + 1 == kind.size() || kind.find_first_not_of("0123456789", slash + 1) != std::string::npos)
    fault("its kind \"" + kind + "\" has no revision (\"mekik.sink/1\")");
  bool known = false;
  for (const KindFacts& k : kinds()) known = known || kind == k.id;
  if (!known && kind.rfind("mekik.", 0) == 0) fault("its kind \"" + kind + "\" is none of this revision's");
  if (!is_name(c.name)) fault("its name \"" + std::string{c.name} + "\" does not match [a-z0-9_]+");
  for (const auto& [what, text] : {std::pair<const char*, const char*>{"version", c.version}, {"summary", c.summary}})
    if (text == nullptr || text[0] == '\0' || !is_utf8(text)) fault(std::string{"has no "} + what);
    else if (std::strchr(text, '\n') != nullptr) fault(std::string{"its "} + what + " has more than one line");
  if (kind.size() > 2 && kind.substr(kind.size() - 2) == "/0" && std::strcmp(subject.entry().built_for, MEKIK_VERSION) != 0)
    fault("is of a draft kind, and built for engine version " + std::string{subject.entry().built_for} +
          ", not " MEKIK_VERSION ": the engine refuses it");
  std::uint32_t same = 0;
  for (std::uint32_t i = 0; i < subject.entry().count(); ++i)
    if (const mekik_component* other = subject.entry().component(i); other != nullptr && label_of(*other) == label) ++same;
  if (same > 1) fault("is there " + std::to_string(same) + " times");
  const std::string file = task.file.substr(task.file.rfind('/') + 1);
  if (subject.entry().count() == 1) {
    std::string expected = label + ".so";
    expected[label.find('/')] = '_';
    if (file != expected) fault("is in the file " + file + "; a pipeline that names it looks for " + expected);
  }
}

void table(const Task& task, const std::string& label) {
  Subject subject{task, Mode{}};
  const mekik_component& c = subject.component(label);
  const auto* bytes = static_cast<const char*>(c.table);
  std::uint32_t size = 0, reserved = 0;
  std::memcpy(&size, bytes, 4);
  std::memcpy(&reserved, bytes + 4, 4);
  for (const KindFacts& k : kinds()) {
    if (std::strcmp(k.id, c.kind) != 0) continue;
    if (size < k.first)
      fault("its function table says that it has " + std::to_string(size) + " bytes; the first revision of " + k.id + " already has " +
            std::to_string(k.first)),
          stop();
    if (size > k.size && subject.entry().abi_minor == MEKIK_ABI_MINOR)
      fault("its function table says that it has " + std::to_string(size) + " bytes; in this revision it has " + std::to_string(k.size));
    if (size % 8 != 0) fault("its function table says that it has " + std::to_string(size) + " bytes, which ends within a member");
    const bool drafter = std::strcmp(k.id, MEKIK_KIND_DRAFTER) == 0, scheme = std::strcmp(k.id, MEKIK_KIND_SCHEME) == 0;
    if (reserved != 0 && !drafter && !scheme) fault("the reserved member of its function table is not 0");
    if (drafter && (reserved & ~1u) != 0) fault("`wants` has bits that mean nothing");
    for (std::uint32_t at = 8; at + 8 <= std::min(size, k.size); at += 8) {
      std::uintptr_t address = 0;
      std::memcpy(&address, bytes + at, 8);
      const bool optional = std::find(k.optional.begin(), k.optional.end(), at) != k.optional.end();
      const std::string what = "the function at byte " + std::to_string(at) + " of its table";
      if (scheme && (at == 8 || at == offsetof(mekik_scheme, suffixes))) continue;  // no functions
      if (address == 0 && !optional) fault(what + " is missing");
      function(address, what);
    }
  }
  if (std::strcmp(c.kind, MEKIK_KIND_CACHE) == 0) {
    const auto t = table_of<mekik_cache_policy>(c);
    const int n = (t.has != nullptr) + (t.store != nullptr) + (t.fetch != nullptr) + (t.cancel != nullptr);
    if (n != 0 && n != 4) fault("its slower tier is incomplete: has, store, fetch and cancel go together");
  }
  if (std::strcmp(c.kind, MEKIK_KIND_SCHEME) == 0) {
    const auto t = table_of<mekik_scheme>(c);
    if (t.suffixes != nullptr && t.shape == nullptr) fault("reads several parts and has no shape()");
    if (t.suffixes != nullptr && t.claims == nullptr) fault("reads several parts and has no claims()");
  }
  function(reinterpret_cast<std::uintptr_t>(c.extension), "extension");
}

void extension(const Task& task, const std::string& label) {
  Subject subject{task, Mode{}};
  const mekik_component& c = subject.component(label);
  if (c.extension == nullptr) return skip("has no extensions");
  const auto get = [&](const std::string& id) {
    Piece* text = lend(id.size() + 1, 1, "an id");
    std::memcpy(data(text), id.c_str(), id.size() + 1);
    freeze(text);
    const void* out = nullptr;
    call(Mode{}, "extension", [&] { out = c.extension(static_cast<const char*>(data(text))); });
    revoke(text);
    return out;
  };
  for (const char* id : {"", "mekik", "mekik.no.such.thing/1", "mekik.backend.kv/2", "mekik.backend.kv", "mekik.backend.kv/10",
                         "mekik.backend.prepared/0", "com.example/1"})
    if (get(id) != nullptr) fault(std::string{"extension(\""} + id + "\") gives something, and there is no such extension");
  const bool backend = std::strcmp(c.kind, MEKIK_KIND_BACKEND) == 0;
  for (const char* id : {MEKIK_BACKEND_KV, MEKIK_BACKEND_PREPARED}) {
    const void* found = get(id);
    if (found == nullptr) continue;
    if (!backend) fault(std::string{"extension(\""} + id + "\") is of backends");
    std::uint32_t size = 0;
    std::memcpy(&size, found, 4);
    const std::size_t wanted = std::strcmp(id, MEKIK_BACKEND_KV) == 0 ? sizeof(mekik_backend_kv) : sizeof(mekik_backend_prepared);
    if (size < wanted)
      fault(std::string{"the extension "} + id + " says that it has " + std::to_string(size) + " bytes, not " + std::to_string(wanted));
    if (get(id) != found) fault(std::string{"extension(\""} + id + "\") gives another table when it is asked again");
  }
  if (const auto* kv = static_cast<const mekik_backend_kv*>(get(MEKIK_BACKEND_KV)); kv != nullptr && kv->struct_size >= sizeof *kv) {
    if (kv->form_size < sizeof(mekik_kv_form)) return fault("the KV forms have rows of " + std::to_string(kv->form_size) + " bytes");
    for (std::uint32_t i = 0; i < kv->n_forms; ++i) {
      const auto& f = *reinterpret_cast<const mekik_kv_form*>(reinterpret_cast<const char*>(kv->forms) + std::size_t{i} * kv->form_size);
      if (!is_name(f.name)) fault("KV form " + std::to_string(i) + " has no name that matches [a-z0-9_]+");
      if (!(f.bits_per_value > 0 && f.bits_per_value <= 64))
        fault("KV form " + std::to_string(i) + " takes " + std::to_string(f.bits_per_value) + " bits a value");
    }
  }
}

void option_row(const OptionRow& row, const std::string& where) {
  const mekik_option& o = row.raw;
  const std::string what = where + "'" + (is_name(o.key) ? o.key : "?") + "'";
  if (!is_name(o.key)) return fault(where + "has a key that does not match [a-z0-9_]+");
  if (o.type < MEKIK_OPT_BOOL || o.type > MEKIK_OPT_COMPONENT)
    return fault(what + " has the type " + std::to_string(o.type) + ", which is none");
  if ((o.flags & ~31u) != 0) fault(what + " has flags that mean nothing");
  if (o.doc == nullptr || o.doc[0] == '\0' || !is_utf8(o.doc)) fault(what + " has no sentence that says what it is for");
  if (std::isnan(o.min) || std::isnan(o.max)) fault(what + " has a limit that is no number");
  const bool choice = o.type == MEKIK_OPT_CHOICE;
  if (choice && choices_of(o).empty()) fault(what + " is a choice without choices");
  std::set<std::string> seen;
  for (const std::string& one : choices_of(o))
    if (choice && (one.empty() || !seen.insert(one).second)) fault(what + " has the choice \"" + one + "\" twice, or an empty one");
  if (o.type == MEKIK_OPT_COMPONENT &&
      (o.choices == nullptr || (std::strcmp(o.choices, "model") != 0 && std::strncmp(o.choices, "mekik.", 6) != 0)))
    fault(what + " does not say which kind of component it takes");
  if (o.type == MEKIK_OPT_TABLE && (o.fields == nullptr || o.n_fields == 0)) fault(what + " is a table without fields");
  if (o.type != MEKIK_OPT_TABLE && o.n_fields != 0) fault(what + " has fields and is no table");
  const bool filled = o.fallback != nullptr && o.fallback[0] != '\0';
  if (row.has(MEKIK_OPT_REQUIRED) && filled) fault(what + " is required and has a default");
  if (filled && o.type != MEKIK_OPT_TABLE) {
    std::string why;
    const auto values = parse(o, o.fallback, why);
    if (!values) fault(what + " has the default " + o.fallback + ", which it could not take: " + why);
    else if (row.bounded() && row.has(MEKIK_OPT_LIST) &&
             (static_cast<double>(values->size()) < o.min || static_cast<double>(values->size()) > o.max))
      fault(what + " has a default of " + std::to_string(values->size()) + " elements, out of its own limits");
    else if (row.bounded() && !row.has(MEKIK_OPT_LIST)) {
      const bool text = o.type == MEKIK_OPT_TEXT;
      const double value = text ? static_cast<double>((*values)[0].text.size()) : (*values)[0].real;
      if ((text || o.type == MEKIK_OPT_INT || o.type == MEKIK_OPT_REAL || o.type == MEKIK_OPT_SIZE || o.type == MEKIK_OPT_DURATION) &&
          (value < o.min || value > o.max))
        fault(what + " has the default " + o.fallback + ", which is out of its own limits");
    }
  }
}

void option_rows(const std::vector<OptionRow>& rows, const std::string& where, int depth) {
  std::set<std::string> keys;
  for (const OptionRow& row : rows) {
    option_row(row, where);
    if (is_name(row.raw.key) && !keys.insert(row.raw.key).second) fault(where + "'" + row.raw.key + "' is declared twice");
    if (row.raw.type == MEKIK_OPT_TABLE && row.raw.fields != nullptr && depth < 4) {
      if (row.raw.field_size < sizeof(mekik_option))
        fault(where + "the fields of '" + std::string{row.raw.key} + "' have rows of " + std::to_string(row.raw.field_size) + " bytes");
      else option_rows(rows_of(row.raw.fields, row.raw.n_fields, row.raw.field_size), where + row.raw.key + ".", depth + 1);
    }
  }
}

void options(const Task& task, const std::string& label) {
  Subject subject{task, Mode{}};
  const mekik_component& c = subject.component(label);
  if (c.n_options > 4096 || (c.n_options > 0 && c.options == nullptr))
    return fault("declares " + std::to_string(c.n_options) + " options that are not there");
  if (c.n_options > 0 && c.option_size != sizeof(mekik_option) &&
      (c.option_size < sizeof(mekik_option) || subject.entry().abi_minor == MEKIK_ABI_MINOR))
    return fault("has option rows of " + std::to_string(c.option_size) + " bytes, not " + std::to_string(sizeof(mekik_option)));
  option_rows(rows_of(c), "option ", 0);
  static const std::pair<const char*, const char*> kTaken[] = {{"", "use"},
                                                               {"", "file"},
                                                               {"", "sha256"},
                                                               {"backend", "threads"},
                                                               {"backend", "devices"},
                                                               {"cache", "block_tokens"},
                                                               {"cache", "memory"},
                                                               {"cache", "kv"},
                                                               {"scheduler", "max_batch_tokens"},
                                                               {"scheduler", "max_sequences"},
                                                               {"drafter", "max_drafts"},
                                                               {"drafter", "adaptive"}};
  for (const OptionRow& row : rows_of(c))
    for (const auto& [kind, key] : kTaken)
      if (row.raw.key != nullptr && std::strcmp(row.raw.key, key) == 0 && (kind[0] == '\0' || label.rfind(std::string{kind} + "/", 0) == 0))
        fault("option '" + std::string{key} + "' is a key of the core in this kind of table");
}

}  // namespace

std::vector<Check> descriptor_checks() {
  return {{"descriptor.component", "kind, name, version, summary, file name", "", component_struct},
          {"descriptor.table", "size and functions of the kind's table", "", table},
          {"descriptor.options", "keys, types, limits, defaults within them, a sentence each", "", options},
          {"descriptor.extension", "knows its own ids and no others", "", extension}};
}

}  // namespace mekik::validate
