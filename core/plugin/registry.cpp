#include "plugin/registry.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/files.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "config/core_rows.hpp"
#include "plugin/kinds.hpp"
#include "plugin/library.hpp"
#include "plugin/static.hpp"

namespace mekik::plugin {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxLibraryBytes = std::size_t{2} << 30;

// A file by what it is, not by how it is called: the same one reached by two paths is loaded once.
using FileId = std::pair<dev_t, ino_t>;

std::optional<FileId> file_id(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileId{info.st_dev, info.st_ino};
}

}  // namespace

struct Registry::Impl {
  Options options;
  metrics::Metrics& metrics;
  Tasks tasks;
  std::vector<fs::path> configured;              // [plugins] dirs
  std::vector<std::unique_ptr<Library>> loaded;  // in the order of loading
  std::vector<Library*> explicitly;              // [plugins] load
  std::map<FileId, Library*> by_file;
  std::map<std::string, Library*> by_static_name;

  Impl(Options o, metrics::Metrics& m) : options{std::move(o)}, metrics{m}, tasks{options.threads} {
    options.directory = fs::absolute(options.directory);
    std::vector<fs::path> absolute;
    for (const fs::path& path : options.extra) {
      // A relative or empty entry would mean the working directory, where nothing is ever looked up.
      if (path.empty()) continue;
      std::error_code error;
      const char* fault = !path.is_absolute() ? "an absolute path" : !fs::is_directory(path, error) ? "a folder" : nullptr;
      if (fault == nullptr) absolute.push_back(path);
      else log::warning("plugins", "MEKIK_PLUGIN_PATH: " + mekik::quoted(path.string()) + " is not " + fault + " and is left out");
    }
    options.extra = std::move(absolute);
  }
  ~Impl() {
    while (!loaded.empty()) loaded.pop_back();  // the last one first
  }

  std::vector<fs::path> directories() const {
    std::vector<fs::path> out{options.directory};
    out.insert(out.end(), configured.begin(), configured.end());
    out.insert(out.end(), options.extra.begin(), options.extra.end());
    return out;
  }

  Result<Library*> keep(Result<std::unique_ptr<Library>> made) {
    if (!made.ok()) return made.status();
    for (const auto& other : loaded)
      if (std::string_view{other->id()} == (*made)->id())
        return invalid((*made)->path() + " and " + other->path() + " both have the plugin id " + mekik::quoted((*made)->id()));
    loaded.push_back(std::move(*made));
    return loaded.back().get();
  }

  Result<Library*> load_file(const fs::path& path, const std::string& sha256) {
    std::error_code error;
    const fs::path whole = fs::weakly_canonical(fs::absolute(path, error), error);
    if (error) return invalid(path.string() + ": " + error.message());
    if (!sha256.empty()) MEKIK_CHECK_OK(check_digest(whole, sha256));
    const auto id = file_id(whole);
    if (id && by_file.find(*id) != by_file.end()) return by_file[*id];
    MEKIK_TRY(library, keep(Library::load(whole, metrics, tasks)));
    if (id) by_file[*id] = library;
    return library;
  }

  static Status check_digest(const fs::path& path, std::string wanted) {
    std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                   [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
    MEKIK_TRY(bytes, read_file(path, kMaxLibraryBytes));
    const std::string is = sha256_hex(bytes);
    return is == wanted ? Status{} : invalid(path.string() + ": has the SHA-256 " + is + ", not " + wanted);
  }

  Result<Library*> load_static(const StaticEntry& entry) {
    if (const auto it = by_static_name.find(entry.name); it != by_static_name.end()) return it->second;
    MEKIK_TRY(library, keep(Library::built_in(entry.name, entry.entry, metrics, tasks)));
    by_static_name[entry.name] = library;
    return library;
  }

  // The component in one library, or why it has none of that name.
  static Result<Component> in(const Library& library, const std::string& kind, const std::string& name) {
    if (const mekik_component* raw = library.find(kind, name)) return Component{raw, library.host(), library.path()};
    for (const Library::Refused& refused : library.refused())
      if ((refused.kind == kind && refused.name == name) || refused.name.empty()) return unsupported(library.path() + ": " + refused.why);
    return invalid(library.path() + ": has no " + kind + " " + mekik::quoted(name) + "; it has " + library.contents());
  }

  // Nothing: no such entry, or a different component.
  std::optional<Result<Component>> find_static(const std::string& kind, const std::string& name) {
    for (const bool exact : {true, false}) {  // the entry that is called like it, then those with several components
      for (const StaticEntry& entry : static_entries()) {
        if ((entry.name == kind + "_" + name) != exact) continue;
        const Result<Library*> library = load_static(entry);
        if (!library.ok() && exact) return library.status();
        if (!library.ok()) continue;
        if (exact || (*library)->find(kind, name) != nullptr) return in(**library, kind, name);
      }
    }
    return std::nullopt;
  }

  Result<Component> find(const std::string& kind, const std::string& name, const std::string& sha256) {
    if (auto built_in = find_static(kind, name)) {
      if (!sha256.empty())
        return invalid("the " + kind + " " + mekik::quoted(name) + " is built into the program: there is no file to compare with sha256");
      return std::move(*built_in);
    }
    for (const Library* library : explicitly)
      if (library->find(kind, name) != nullptr) {
        if (!sha256.empty()) MEKIK_CHECK_OK(check_digest(library->path(), sha256));
        return in(*library, kind, name);
      }
    for (const fs::path& directory : directories()) {
      const fs::path path = directory / (kind + "_" + name + ".so");
      std::error_code error;
      if (!fs::exists(path, error)) continue;
      MEKIK_TRY(library, load_file(path, sha256));
      return in(*library, kind, name);
    }
    return missing(kind, name);
  }

  // The files of all directories that are called like plugins, by kind and name; the first of a name wins, as in find().
  std::map<std::pair<std::string, std::string>, fs::path> files() const {
    std::map<std::pair<std::string, std::string>, fs::path> out;
    for (const fs::path& directory : directories()) {
      std::error_code error;
      for (fs::directory_iterator it{directory, error}, end; !error && it != end; it.increment(error)) {
        const std::string stem = it->path().stem().string();
        if (it->path().extension() != ".so") continue;
        for (const std::string& kind : kinds())
          if (stem.size() > kind.size() + 1 && stem.compare(0, kind.size() + 1, kind + "_") == 0)
            out.try_emplace({kind, stem.substr(kind.size() + 1)}, it->path());
      }
    }
    return out;
  }

  Status missing(const std::string& kind, const std::string& name) {
    std::set<std::string> names;
    for (const auto& [key, path] : files())
      if (key.first == kind) names.insert(key.second);
    for (const auto& library : loaded)
      for (const mekik_component* component : library->components())
        if (config::kind_of(component->kind) == kind) names.insert(component->name);
    for (const StaticEntry& entry : static_entries())
      if (std::string_view{entry.name}.substr(0, kind.size() + 1) == kind + "_") names.insert(entry.name + kind.size() + 1);
    const std::vector<std::string> all{names.begin(), names.end()};
    const auto near = closest(name, all);
    std::vector<std::string> places;
    for (const fs::path& directory : directories()) places.push_back(directory.string());
    return invalid("there is no " + kind + " " + mekik::quoted(name) +
                   (near          ? "; did you mean " + mekik::quoted(*near) + "? Installed: "
                    : all.empty() ? "; none is installed"
                                  : "; installed: ") +
                   join(all, ", ") + " (looked in " + join(places, ", ") + ")");
  }
};

Registry::Registry(Options options, metrics::Metrics& metrics) : impl_{std::make_unique<Impl>(std::move(options), metrics)} {}
void Registry::set_threads(std::uint32_t threads) { impl_->tasks.set_width(threads); }

Registry::~Registry() = default;

Result<Component> Registry::find(const std::string& kind, const std::string& name) { return impl_->find(kind, name, ""); }

Result<Component> Registry::find(const config::Use& use) {
  if (use.file.empty()) return impl_->find(use.kind, use.name, use.sha256);
  MEKIK_TRY(library, impl_->load_file(use.file, use.sha256));
  return Impl::in(*library, use.kind, use.name);
}

Result<const mekik_component*> Registry::component(const std::string& kind, const config::Use& use) {
  config::Use wanted = use;
  wanted.kind = kind;
  MEKIK_TRY(found, find(wanted));
  return found.raw;
}

Status Registry::add(const std::vector<std::string>& load, const std::vector<std::string>& dirs) {
  std::vector<std::string> faults;
  for (const std::string& directory : dirs) {
    std::error_code error;
    const fs::path whole = fs::absolute(directory, error);
    if (!fs::is_directory(whole, error)) faults.push_back(directory + ": no such folder");
    else impl_->configured.push_back(whole);
  }
  for (const std::string& entry : load) {
    fs::path path = entry;
    if (entry.find('/') == std::string::npos) {
      const std::string file = entry.ends_with(".so") ? entry : entry + ".so";
      const std::vector<fs::path> directories = impl_->directories();
      const auto in = std::find_if(directories.begin(), directories.end(), [&](const fs::path& directory) {
        std::error_code error;
        return fs::exists(directory / file, error);
      });
      if (in == directories.end()) {
        faults.push_back("there is no library " + file + " in the plugin folders");
        continue;
      }
      path = *in / file;
    }
    const Result<Library*> library = impl_->load_file(path, "");
    if (!library.ok()) faults.push_back(library.status().text);
    else impl_->explicitly.push_back(*library);
  }
  return faults.empty() ? Status{} : invalid(join(faults, "; "));
}

std::vector<Component> Registry::installed(std::vector<std::string>* problems) {
  const auto report = [&](std::string text) {
    if (problems != nullptr) problems->push_back(std::move(text));
  };
  for (const StaticEntry& entry : static_entries())
    if (const auto library = impl_->load_static(entry); !library.ok()) report(library.status().text);
  for (const auto& [key, path] : impl_->files()) {
    const auto library = impl_->load_file(path, "");
    if (!library.ok()) report(library.status().text);
    else if (const auto found = Impl::in(**library, key.first, key.second); !found.ok()) report(found.status().text);
  }
  std::vector<Component> out;
  for (const auto& library : impl_->loaded)
    for (const mekik_component* component : library->components()) out.push_back({component, library->host(), library->path()});
  std::sort(out.begin(), out.end(), [](const Component& a, const Component& b) {
    return std::pair<std::string_view, std::string_view>{a.raw->kind, a.raw->name} <
           std::pair<std::string_view, std::string_view>{b.raw->kind, b.raw->name};
  });
  return out;
}

}  // namespace mekik::plugin
