#include "support/subject.hpp"

#include <dlfcn.h>

#include "run/shared.hpp"
#include "support/heap.hpp"

namespace mekik::validate {

std::string label_of(const mekik_component& c) {
  std::string kind = c.kind != nullptr ? c.kind : "?";
  if (kind.rfind("mekik.", 0) == 0) kind.erase(0, 6);
  return kind.substr(0, kind.rfind('/')) + "/" + (c.name != nullptr ? c.name : "?");
}

void* open_library(const std::string& file, std::string& why) {
  now_calling("dlopen");
  const PluginScope scope;
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) why = dlerror();
  return handle;
}

const mekik_plugin* entry_of(void* handle) { return static_cast<const mekik_plugin*>(dlsym(handle, "mekik_plugin_v0")); }

Subject::Subject(const Task& task, const Mode& mode) : task_{task} {
  std::string why;
  handle_ = open_library(task.file, why);
  if (handle_ == nullptr) {
    fault("cannot be loaded: " + why);
    stop();
  }
  entry_ = entry_of(handle_);
  if (entry_ == nullptr || entry_->magic != MEKIK_MAGIC || entry_->struct_size < sizeof(mekik_plugin) || entry_->init == nullptr ||
      entry_->deinit == nullptr || entry_->count == nullptr || entry_->component == nullptr) {
    fault("has no entry that can be used");
    stop();
  }
  init(mode);
}

void Subject::init(const Mode& mode) {
  host_ = std::make_unique<Host>(mode);
  Piece* path = lend(task_.file.size(), 1, "library_path", mode.flush);
  task_.file.copy(static_cast<char*>(data(path)), task_.file.size());
  freeze(path);
  const Answer answer = ask(mode, "init", [&] {
    return entry_->init(host_->raw(), {static_cast<const char*>(data(path)), task_.file.size()});
  });
  revoke(path);
  if (!answer.ok()) {
    host_.reset();
    if (!mode.hostile) fault("init: answered " + std::string{code_name(answer.code)} + ": " + answer.why);
    stop();
  }
}

void Subject::deinit() {
  if (!host_) return;
  call(Mode{}, "deinit", [&] { entry_->deinit(); });
  if (host_->blocks() != 0)
    fault("deinit: " + std::to_string(host_->blocks()) + " blocks of mekik.memory/1 (" + std::to_string(host_->bytes()) +
          " bytes) were never released");
  host_.reset();  // whoever still uses it is caught
}

Subject::~Subject() = default;  // the file stays mapped, as in the engine

const mekik_component& Subject::component(const std::string& label) const {
  const std::uint32_t n = entry_->count();
  for (std::uint32_t i = 0; i < std::min(n, 4096u); ++i)
    if (const mekik_component* c = entry_->component(i); c != nullptr && label_of(*c) == label) return *c;
  fault("component() does not give " + label + " again");
  stop();
}

}  // namespace mekik::validate
