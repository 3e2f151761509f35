// The file: symbols, loading, the entry struct, the order of calls.
#include <dlfcn.h>

#include <chrono>
#include <cstring>
#include <fstream>

#include "checks/checks.hpp"
#include "checks/elf.hpp"
#include "run/shared.hpp"
#include "support/heap.hpp"
#include "support/watch.hpp"

namespace mekik::validate {

namespace {

void symbols(const Task& task, const std::string&) {
  const ElfFacts facts = elf_facts(task.file);
  if (!facts.wrong.empty()) {
    fault(facts.wrong);
    return;
  }
  bool entry = false;
  std::string others;
  std::size_t n = 0;
  for (const std::string& s : facts.exported) {
    if (s == "mekik_plugin_v0") {
      entry = true;
    } else if (s.rfind("mekik_plugin_v", 0) != 0 && s != "_init" && s != "_fini") {
      if (++n <= 5) others += (others.empty() ? "" : ", ") + s;
    }
  }
  if (!entry) fault("exports no symbol mekik_plugin_v0");
  if (n > 0)
    fault("exports " + std::to_string(n) + " symbols beside its entry (" + others + (n > 5 ? ", ..." : "") +
          "): they may meet those of other libraries; link with mekik.map");
  if (facts.text_relocations) fault("has text relocations: it was not compiled with -fPIC");
  if (facts.executable_stack) fault("asks for an executable stack");
  for (const std::string& one : facts.needed)
    if (one.rfind("libmekik", 0) == 0) fault("needs " + one + ": a plugin links nothing of the engine");
  if (!facts.rpath.empty() && facts.rpath[0] == '/')
    fault("looks for libraries in a folder of the machine that it was built on: " + facts.rpath);
}

bool plain(const char* text) { return text != nullptr && text[0] != '\0' && std::strlen(text) < 4096 && is_utf8(text); }

void entry_struct(const mekik_plugin& e) {
  if (e.magic != MEKIK_MAGIC) fault("the entry does not begin with MEKIK_MAGIC");
  if (e.struct_size < sizeof(mekik_plugin))
    fault("the entry says that it has " + std::to_string(e.struct_size) + " bytes; the first revision already has " +
          std::to_string(sizeof(mekik_plugin))),
        stop();
  if (e.abi_minor == MEKIK_ABI_MINOR && e.struct_size != sizeof(mekik_plugin))
    fault("the entry says that it has " + std::to_string(e.struct_size) + " bytes, in this revision it has " +
          std::to_string(sizeof(mekik_plugin)));
  if (e.abi_minor > MEKIK_ABI_MINOR + 1000) fault("the entry's abi_minor is " + std::to_string(e.abi_minor));
  if (e.reserved != 0) fault("the entry's reserved member is not 0");
  if (!plain(e.id)) fault("the entry has no id, or none that is text");
  else if (std::strpbrk(e.id, " \t\n/") != nullptr)
    fault("the id \"" + std::string{e.id} + "\" has blanks or slashes; \"org.example.name\" is usual");
  if (e.vendor == nullptr || !is_utf8(e.vendor)) fault("the entry has no vendor, or none that is text");
  if (!plain(e.version)) fault("the entry has no version");
  if (e.license == nullptr || !is_utf8(e.license)) fault("the entry has no license, or none that is text");
  if (!plain(e.built_for) || std::isdigit(static_cast<unsigned char>(e.built_for[0])) == 0)
    fault("the entry does not say which version of the engine it is built for");
  if (e.init == nullptr || e.deinit == nullptr || e.count == nullptr || e.component == nullptr) fault("the entry lacks a function"), stop();
}

void load(const Task& task, const std::string&) {
  const Watch before;
  std::string why;
  const auto began = std::chrono::steady_clock::now();
  void* handle = open_library(task.file, why);
  if (handle == nullptr) fault("cannot be loaded: " + why), stop();
  const mekik_plugin* entry = entry_of(handle);
  if (entry == nullptr) fault("exports no symbol mekik_plugin_v0"), stop();
  call(Mode{}, "loading", [] {});
  before.compare("after loading", true);
  entry_struct(*entry);
  const Watch loaded;
  Subject subject{task, Mode{}};
  if (const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); s > 1)
    fault("takes " + std::to_string(s) + " s to load and init(); both are to be cheap");
  loaded.compare("after init", true);
  std::uint32_t n = 0;
  call(Mode{}, "count", [&] { n = entry->count(); });
  if (n == 0) fault("has no components");
  if (n > 4096) fault("counts " + std::to_string(n) + " components; at most 4096"), stop();
  std::string list;
  for (std::uint32_t i = 0; i < n; ++i) {
    const mekik_component* c = nullptr;
    call(Mode{}, "component", [&] { c = entry->component(i); });
    if (c == nullptr) fault("component(" + std::to_string(i) + ") of " + std::to_string(n) + " gives nothing");
    else if (c->struct_size >= sizeof(mekik_component) && c->kind != nullptr && c->name != nullptr && c->table != nullptr)
      list += label_of(*c) + "\n";
    else
      fault("component " + std::to_string(i) + " has no kind, name or table, or says that it has " + std::to_string(c->struct_size) +
            " bytes");
  }
  list.copy(shared->data, sizeof shared->data - 1);
  subject.deinit();
  before.compare("after deinit", true);
}

// The descriptors as bytes, with everything that they point to.
std::string picture(const mekik_plugin& entry) {
  std::string out;
  const auto text = [&](const char* s) { out += s != nullptr ? s : "(null)", out += '\n'; };
  for (std::uint32_t i = 0; i < std::min(entry.count(), 4096u); ++i) {
    const mekik_component* c = entry.component(i);
    if (c == nullptr) continue;
    out.append(reinterpret_cast<const char*>(&c), sizeof c);
    text(c->kind), text(c->name), text(c->version), text(c->summary);
    out.append(reinterpret_cast<const char*>(c), sizeof *c);
    for (std::uint32_t j = 0; j < c->n_options; ++j) {
      const auto* o = reinterpret_cast<const mekik_option*>(reinterpret_cast<const char*>(c->options) + std::size_t{j} * c->option_size);
      text(o->key), text(o->fallback), text(o->choices), text(o->doc);
    }
  }
  return out;
}

void order(const Task& task, const std::string&) {
  Subject subject{task, Mode{}};
  const mekik_plugin& e = subject.entry();
  const std::uint32_t n = std::min(e.count(), 4096u);
  const std::string before = picture(e);
  for (const std::uint32_t past : {n, n + 1, 0x7FFFFFFFu, 0xFFFFFFFFu}) {
    const mekik_component* c = nullptr;
    call(Mode{}, "component", [&] { c = e.component(past); });
    if (c != nullptr) fault("component(" + std::to_string(past) + ") of " + std::to_string(n) + " gives something; NULL is right");
  }
  if (picture(e) != before) fault("count() or component() give something else when they are asked again");
  subject.deinit();
  subject.init(Mode{});
  if (picture(e) != before) fault("is another plugin after deinit() and init()");
  subject.deinit();
}

void hostile_init(const Task& task, const std::string&) {
  Mode none;
  none.hostile = true;
  none.missing = {"*"};
  Subject subject{task, none};  // a host without services: a reason, or it works
  subject.deinit();
}

}  // namespace

std::vector<Check> file_checks() {
  return {
      {"file.symbols", "one exported symbol, no text relocations, no executable stack, no paths of the build machine", nullptr, symbols},
      {"file.load", "loads, its entry struct is right, init is cheap and leaves no thread, file, handler or print behind", nullptr, load},
      {"file.order", "asked again, past the end, and after deinit and init it is the same plugin", nullptr, order},
      {"file.bare_host", "init on a host that has no services", nullptr, hostile_init}};
}

}  // namespace mekik::validate
