// Loading all pages, and finding the one of a model.
#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "base/files.hpp"
#include "base/text.hpp"
#include "config/folder.hpp"
#include "program/emitter.hpp"
#include "program/page.hpp"
#include "program/transcriber.hpp"

namespace mekik::program {

namespace fs = std::filesystem;

namespace {

const config::Value* architecture(const config::Value& page, std::string_view key) {
  const config::Value* table = page.find("architecture");
  return table != nullptr && table->kind == config::Kind::table ? table->find(key) : nullptr;
}

const config::Value* name_of(const config::Value& page) {
  const config::Value* name = architecture(page, "name");
  return name != nullptr && name->kind == config::Kind::text && !name->text.empty() ? name : nullptr;
}

// Where the table [architecture] begins and ends in a page's text; empty: it is not there as a table of its own.
std::pair<std::size_t, std::size_t> head_of(std::string_view text) {
  constexpr std::string_view kHead = "[architecture]", kPart = "[architecture.";
  std::size_t first = std::string_view::npos;
  for (std::size_t line = 0; line < text.size();) {
    const std::string_view rest = text.substr(line);
    if (rest.front() == '[' && first != std::string_view::npos && !rest.starts_with(kPart)) return {first, line};
    if (first == std::string_view::npos && rest.starts_with(kHead)) first = line;
    const std::size_t end = text.find('\n', line);
    line = end == std::string_view::npos ? text.size() : end + 1;
  }
  return first == std::string_view::npos ? std::pair<std::size_t, std::size_t>{} : std::pair{first, text.size()};
}

// A page as it lies in a folder. There are a hundred and a model needs two or three of them, so that of most only the head is parsed.
struct Page {
  std::string file, text;
  std::optional<config::Value> whole;
  config::Value head;  // at least [architecture]

  // Throws Mistake.
  const config::Value& tree() {
    if (!whole) {
      config::Diagnostics diagnostics;
      config::Value value;
      if (!config::parse_toml(text, file, value, diagnostics)) {
        const config::Diagnostic& first = diagnostics.all().front();
        throw Mistake{first.at, first.message, first.hint};
      }
      whole = std::move(value);
    }
    return *whole;
  }
};

// False: `diagnostics` says what is wrong with the page.
bool read_head(Page& page, config::Diagnostics& diagnostics) {
  if (const auto [begin, end] = head_of(page.text); end != 0) {
    const auto lines = std::count(page.text.begin(), page.text.begin() + static_cast<std::ptrdiff_t>(begin), '\n');
    config::Diagnostics doubts;  // what stands in the table may only look like a head: then the whole page is parsed
    const std::string head = std::string(static_cast<std::size_t>(lines), '\n') + page.text.substr(begin, end - begin);
    if (config::parse_toml(head, page.file, page.head, doubts) && name_of(page.head) != nullptr) return true;
  }
  config::Value value;
  if (!config::parse_toml(page.text, page.file, value, diagnostics)) return false;
  page.head = value;
  page.whole = std::move(value);
  if (name_of(page.head) != nullptr) return true;
  const config::Value* name = architecture(page.head, "name");
  diagnostics.error(name != nullptr ? name->origin : page.head.origin, "a page needs [architecture] with a name");
  return false;
}

// The names of the pages that are there now, too.
std::vector<std::string> load_directory(const fs::path& directory, std::map<std::string, Page>& pages, config::Diagnostics& diagnostics) {
  std::map<std::string, config::Origin> here;
  for (const fs::path& file : config::toml_files(directory, "architecture pages", diagnostics)) {
    Page page;
    page.file = file.string();
    Result<std::string> text = read_file(page.file, kMaxPageBytes);
    if (!text.ok()) {
      diagnostics.error({}, text.status().text);
      continue;
    }
    page.text = std::move(*text);
    if (!read_head(page, diagnostics)) continue;
    const std::string name = name_of(page.head)->text;
    const config::Origin origin = page.head.origin;
    if (here.count(name) != 0) diagnostics.error(origin, "page " + mekik::quoted(name) + " is also in " + source_place(here[name]));
    here[name] = origin;
    pages[name] = std::move(page);
  }
  std::vector<std::string> names;
  for (const auto& [name, origin] : here) names.push_back(name);
  return names;
}

Status rendered(const config::Diagnostics& diagnostics) { return diagnostics.status(); }

}  // namespace

struct Pages::Impl {
  std::map<std::string, Page> pages;
  struct Read {
    std::optional<PageSpec> spec;  // merged and read; empty: the page has mistakes
    config::Diagnostics diagnostics;
  };
  std::map<std::string, Read> read;  // what was asked for
  std::mutex reading;

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, page] : pages) out.push_back(name);
    return out;
  }

  // The page on top of all that it extends. Throws Mistake.
  config::Value merged(const std::string& name, std::size_t depth) {
    const config::Value& page = pages.at(name).tree();
    const config::Value* extends = architecture(page, "extends");
    if (extends == nullptr) return page;
    if (extends->kind != config::Kind::text) throw Mistake{extends->origin, "extends names another page", {}};
    if (depth >= kMaxExtends) throw Mistake{extends->origin, "pages may extend each other at most 8 deep; is there a cycle?", {}};
    if (pages.count(extends->text) == 0) {
      const auto near = closest(extends->text, names());
      throw Mistake{extends->origin, "there is no page " + mekik::quoted(extends->text), near ? "did you mean \"" + *near + "\"?" : ""};
    }
    return merge_pages(merged(extends->text, depth + 1), page);
  }

  const Read& get(const std::string& name) {
    const std::lock_guard lock{reading};
    const auto [at, fresh] = read.try_emplace(name);
    Read& out = at->second;
    if (!fresh) return out;
    PageSpec spec;
    try {
      spec = read_page(merged(name, 0), out.diagnostics);
      spec.name = name;
      spec.origin = pages.at(name).tree().origin;
    } catch (const Mistake& mistake) {
      out.diagnostics.error(mistake.at, mistake.message, mistake.hint);
    }
    if (out.diagnostics.ok()) out.spec = std::move(spec);
    return out;
  }

  Result<const PageSpec*> spec(const std::string& name) {
    const Read& found = get(name);
    if (!found.spec) return rendered(found.diagnostics);
    return &*found.spec;
  }

  Result<const PageSpec*> find(const ModelMeta& model, const BuildOptions& options);
  Result<const PageSpec*> find_or_named(const ModelMeta& model, const BuildOptions& options);
};

Pages::Pages(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
Pages::~Pages() = default;

std::unique_ptr<Pages> Pages::load(const std::vector<fs::path>& directories, config::Diagnostics& diagnostics, const fs::path& installed) {
  auto impl = std::make_unique<Impl>();
  std::set<std::string> checked;
  if (!installed.empty()) load_directory(installed, impl->pages, diagnostics);
  for (const fs::path& directory : directories)
    for (std::string& name : load_directory(directory, impl->pages, diagnostics)) checked.insert(std::move(name));
  for (const std::string& name : checked)
    for (const config::Diagnostic& one : impl->get(name).diagnostics.all()) {
      // A mistake of a page that others extend is said once.
      const auto same = [&](const config::Diagnostic& d) {
        return config::place(d.at) == config::place(one.at) && d.message == one.message;
      };
      if (std::any_of(diagnostics.all().begin(), diagnostics.all().end(), same)) continue;
      if (one.warning) diagnostics.warning(one.at, one.message, one.hint);
      else diagnostics.error(one.at, one.message, one.hint);
    }
  return std::unique_ptr<Pages>{new Pages{std::move(impl)}};
}

std::vector<std::string> Pages::names() const { return impl_->names(); }

namespace {

std::vector<std::string> architectures(const ModelMeta& model) {
  if (model.format == "gguf") {
    const json::value* name = json::find(model.config, "general.architecture");
    if (name != nullptr && name->is_string()) return {name->get_string().c_str()};
    return {};
  }
  const json::value* names = json::find(model.config, "architectures");
  std::vector<std::string> out;
  if (names != nullptr && names->is_array())
    for (const json::value& name : names->get_array())
      if (name.is_string()) out.emplace_back(name.get_string().c_str());
  return out;
}

// What the page's head says that it matches, as far as it is well written.
std::vector<std::string> matched(const Page& page, std::size_t format) {
  std::vector<std::string> out;
  const config::Value* matches = architecture(page.head, "matches");
  const config::Value* names = matches != nullptr && matches->kind == config::Kind::table ? matches->find(kFormats[format]) : nullptr;
  if (names == nullptr || names->kind != config::Kind::list) return out;
  for (const config::Value& name : names->list)
    if (name.kind == config::Kind::text) out.push_back(name.text);
  return out;
}

}  // namespace

// Pages whose condition holds beat pages without one.
Result<const PageSpec*> Pages::Impl::find(const ModelMeta& model, const BuildOptions& options) {
  const std::size_t format = format_index(model.format);
  if (format == kNoFormat) return unsupported("no architecture page describes models of format " + mekik::quoted(model.format));
  const std::vector<std::string> wanted = architectures(model);
  if (wanted.empty() && model.config.is_null())
    return invalid("there is no config.json beside it, which says what the model is; fetch the model's config.json into its folder");
  if (wanted.empty())
    return invalid(std::string{"the model does not say its architecture ("} +
                   (format == 0 ? "general.architecture" : "architectures in config.json") + ")");
  std::vector<const PageSpec*> with, without;
  std::vector<std::string> known;
  for (const auto& [name, page] : pages) {
    const std::vector<std::string> names = matched(page, format);
    known.insert(known.end(), names.begin(), names.end());
    if (std::find(names.begin(), names.end(), wanted[0]) == names.end()) continue;
    MEKIK_TRY(candidate, spec(name));
    if (!candidate->matches_when) {
      without.push_back(candidate);
      continue;
    }
    ModelReader reader{*candidate, model, options};
    if (reader.condition(*candidate->matches_when, {})) with.push_back(candidate);
  }
  const std::vector<const PageSpec*>& found = with.empty() ? without : with;
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    const auto near = closest(wanted[0], known);
    return unsupported("no page matches '" + wanted[0] + "'; pages are TOML: docs/architecture-pages.md" +
                       (near ? " (the closest is for '" + *near + "')" : std::string{}));
  }
  return invalid("pages " + found[0]->name + " and " + found[1]->name + " both match " + model.format + " architecture " +
                 mekik::quoted(wanted[0]) + "; name one in [model] page");
}

Result<const PageSpec*> Pages::Impl::find_or_named(const ModelMeta& model, const BuildOptions& options) {
  if (options.page.empty()) return find(model, options);
  if (pages.count(options.page) != 0) return spec(options.page);
  const auto near = closest(options.page, names());
  return invalid("there is no architecture page " + mekik::quoted(options.page) +
                 (near ? "; did you mean " + mekik::quoted(*near) + "?" : ""));
}

Result<Program> Pages::build(const ModelMeta& model, const BuildOptions& options) const {
  config::Diagnostics diagnostics;
  try {
    MEKIK_TRY(spec, impl_->find_or_named(model, options));
    Emitter emitter{*spec, model, options, diagnostics};
    if (std::optional<Program> program = emitter.build()) return std::move(*program);
  } catch (const Mistake& mistake) {
    diagnostics.error(mistake.at, mistake.message, mistake.hint);
  } catch (const Poisoned&) {}
  return rendered(diagnostics).ok() ? internal_error("the program could not be built") : std::move(rendered(diagnostics)).in(model.path);
}

Result<Transcript> Pages::transcribe(const ModelMeta& model, const std::string& format, const ReadVector& read_vector,
                                     const std::string& page) const {
  const std::size_t target = format_index(format);
  if (target == kNoFormat) return unsupported("models are written as gguf or hf, not as " + mekik::quoted(format));
  config::Diagnostics diagnostics;
  try {
    BuildOptions options;
    options.outputs.clear();  // the one that the model is for
    options.page = page;
    MEKIK_TRY(spec, impl_->find_or_named(model, options));
    Transcriber transcriber{*spec, model, options, diagnostics, target, read_vector};
    transcriber.fold();
    if (std::optional<Program> program = transcriber.build()) {
      Transcript out = transcriber.transcribe(std::move(*program));
      ModelMeta meta;
      meta.format = format;
      meta.config = out.config;
      meta.path = "as " + format;
      meta.file = [&](const std::string& name) {
        const auto found = out.files.find(name);
        return found == out.files.end() ? json::value() : json::value(found->second);
      };
      for (const Transcript::Tensor& tensor : out.tensors) meta.tensors.push_back({tensor.name, "", MEKIK_F32, tensor.shape, 0});
      options.page = spec->name;
      MEKIK_TRY(written, build(meta, options));
      check_same(out.program, written, true);
      if (!spec->written[target].empty()) {  // the page that reads it says the same
        options.page.clear();
        MEKIK_TRY(read, build(meta, options));
        check_same(out.program, read, false);
      }
      return out;
    }
  } catch (const Mistake& mistake) {
    diagnostics.error(mistake.at, mistake.message, mistake.hint);
  } catch (const Poisoned&) {}
  return rendered(diagnostics).ok() ? internal_error("the model could not be converted") : std::move(rendered(diagnostics)).in(model.path);
}

}  // namespace mekik::program
