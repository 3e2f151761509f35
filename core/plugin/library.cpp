#include "plugin/library.hpp"

#include <dlfcn.h>

#include <cfenv>
#include <cfloat>

#include "base/log.hpp"
#include "base/text.hpp"
#include "config/core_rows.hpp"
#include "plugin/elf.hpp"
#include "plugin/kinds.hpp"
#include "plugin/registry.hpp"

namespace mekik::plugin {

namespace {

constexpr std::uint32_t kMaxComponents = 4096;

// All is volatile, the product, too: otherwise a compiler may compute it, or move it behind a later fesetenv.
bool flushes_subnormals() {
  volatile float tiny = FLT_MIN;
  volatile float half = tiny * 0.5f;
  return half == 0.0f;
}

// Code of a library ran: puts back the floating-point mode and says whether it was left as promised.
class ModeGuard {
 public:
  ModeGuard() { std::fegetenv(&mode_); }
  ~ModeGuard() { std::fesetenv(&mode_); }
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;
  bool changed() const { return flushes_subnormals() || std::fegetround() != FE_TONEAREST; }

 private:
  std::fenv_t mode_;
};

constexpr int kFirstFlags = RTLD_NOW | RTLD_LOCAL;
boost::dll::load_mode::type mode(int flags) { return static_cast<boost::dll::load_mode::type>(flags); }

Status open_file(boost::dll::shared_library& file, const std::filesystem::path& path, int flags) {
  boost::dll::fs::error_code error;
  file.load(path, error, mode(flags));
  if (!error) return {};
  const char* why = ::dlerror();
  return invalid(path.string() + ": cannot be loaded: " + (why != nullptr ? why : error.message().c_str()));
}

}  // namespace

std::string Library::where() const { return file_.is_loaded() ? path_ : "the built-in " + name_; }

Result<std::unique_ptr<Library>> Library::load(const std::filesystem::path& path, metrics::Metrics& metrics, Tasks& tasks) {
  MEKIK_CHECK_OK(inspect(path));
  std::unique_ptr<Library> out{new Library{path.stem().string(), path.string()}};
  MEKIK_CHECK_OK(out->open(path));
  MEKIK_CHECK_OK(out->start(metrics, tasks));
  return out;
}

Result<std::unique_ptr<Library>> Library::built_in(const char* name, const mekik_plugin* entry, metrics::Metrics& metrics, Tasks& tasks) {
  std::unique_ptr<Library> out{new Library{name, "(built in)"}};
  out->entry_ = entry;
  MEKIK_CHECK_OK(out->start(metrics, tasks));
  return out;
}

// First without RTLD_NODELETE: a library that spoils the floating-point mode has to go again, or its constructors would not run, and not
// be caught, the next time. One that passed stays until the process ends.
Status Library::open(const std::filesystem::path& path) {
  bool changed = false;
  {
    const ModeGuard guard;
    MEKIK_CHECK_OK(open_file(file_, path, kFirstFlags));
    changed = guard.changed();
    if (changed) file_.unload();
  }
  if (changed)
    return invalid(path.string() + ": changes the floating-point mode when it is loaded; link it without -ffast-math (and -Ofast)");
  boost::dll::shared_library kept;
  MEKIK_CHECK_OK(open_file(kept, path, kFirstFlags | RTLD_NODELETE));
  file_ = std::move(kept);
  if (!file_.has("mekik_plugin_v0")) return invalid(path.string() + ": does not export its symbol mekik_plugin_v0");
  entry_ = &file_.get<const mekik_plugin>("mekik_plugin_v0");
  return {};
}

Status Library::start(metrics::Metrics& metrics, Tasks& tasks) {
  if (entry_->magic != MEKIK_MAGIC) return invalid(where() + ": its entry does not begin with the magic number of a mekik plugin");
  if (entry_->struct_size < sizeof(mekik_plugin))
    return invalid(where() + ": its entry has " + std::to_string(entry_->struct_size) + " bytes, the first revision already has " +
                   std::to_string(sizeof(mekik_plugin)));
  if (entry_->id == nullptr || entry_->init == nullptr || entry_->deinit == nullptr || entry_->count == nullptr ||
      entry_->component == nullptr)
    return invalid(where() + ": its entry lacks an id or a function");
  host_ = std::make_unique<Host>(name_, metrics, tasks);
  bool changed = false;
  Status status;
  {
    const ModeGuard guard;
    const std::string& path = path_;
    take_failure();  // of earlier calls
    status = to_status(entry_->init(host_->raw(), abi_str(path)), where() + ": init failed");
    initialised_ = status.ok();
    if (initialised_) collect();
    changed = guard.changed();
  }
  if (changed) return invalid(where() + ": changes the floating-point mode when it is initialised");
  return status;
}

void Library::collect() {
  const std::uint32_t n = entry_->count();
  if (n > kMaxComponents) {
    refused_.push_back({"", "", "it counts " + std::to_string(n) + " components; at most " + std::to_string(kMaxComponents)});
    return;
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    const mekik_component* component = entry_->component(i);
    const std::string number = "component " + std::to_string(i);
    if (component == nullptr) {
      refused_.push_back({"", "", number + " of " + std::to_string(n) + " is not there"});
      continue;
    }
    const Status status = check_component(*component, entry_->built_for);
    if (status.ok()) {
      components_.push_back(component);
      continue;
    }
    const bool named = component->struct_size >= sizeof(mekik_component) && component->kind != nullptr && component->name != nullptr;
    const std::string kind = named ? config::kind_of(component->kind) : "", name = named ? component->name : "";
    refused_.push_back({kind, name, (named ? kind + " " + mekik::quoted(name) : number) + " cannot be used: " + status.text});
  }
}

Library::~Library() {
  if (!initialised_) return;
  const ModeGuard guard;
  entry_->deinit();
  if (const std::size_t left = host_->memory.bytes(); left > 0)
    log::warning(name_, "did not release " + std::to_string(left) + " bytes of memory");
}

const mekik_component* Library::find(const std::string& kind, const std::string& name) const {
  for (const mekik_component* component : components_)
    if (config::kind_of(component->kind) == kind && name == component->name) return component;
  return nullptr;
}

std::string Library::contents() const {
  std::vector<std::string> names;
  for (const mekik_component* component : components_)
    names.push_back(config::kind_of(component->kind) + " " + mekik::quoted(component->name));
  return names.empty() ? "nothing that can be used" : join(names, ", ");
}

}  // namespace mekik::plugin
