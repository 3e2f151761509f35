// Loading all pages, and finding the one of a model.
#include <algorithm>
#include <filesystem>
#include <map>

#include "base/files.hpp"
#include "base/text.hpp"
#include "config/folder.hpp"
#include "program/emitter.hpp"
#include "program/page.hpp"
#include "program/transcriber.hpp"

namespace mekik::program {

namespace fs = std::filesystem;

struct Pages::Impl {
  std::map<std::string, config::Value> raw;   // as written
  std::map<std::string, PageSpec> specs;      // merged and read; those without mistakes
  std::map<std::string, std::string> broken;  // name: what is wrong with it
};

namespace {

const config::Value* architecture(const config::Value& page, std::string_view key) {
  const config::Value* table = page.find("architecture");
  return table != nullptr && table->kind == config::Kind::table ? table->find(key) : nullptr;
}

// The page on top of all that it extends. Throws Mistake.
config::Value merged(const std::map<std::string, config::Value>& raw, const std::string& name, std::size_t depth) {
  const config::Value& page = raw.at(name);
  const config::Value* extends = architecture(page, "extends");
  if (extends == nullptr) return page;
  if (extends->kind != config::Kind::text) throw Mistake{extends->origin, "extends names another page", {}};
  if (depth >= kMaxExtends) throw Mistake{extends->origin, "pages may extend each other at most 8 deep; is there a cycle?", {}};
  if (raw.count(extends->text) == 0) {
    std::vector<std::string> names;
    for (const auto& [other, unused] : raw) names.push_back(other);
    const auto near = closest(extends->text, names);
    throw Mistake{extends->origin, "there is no page " + mekik::quoted(extends->text), near ? "did you mean \"" + *near + "\"?" : ""};
  }
  return merge_pages(merged(raw, extends->text, depth + 1), page);
}

std::optional<std::string> page_name(const config::Value& page, const config::Origin& at, config::Diagnostics& diagnostics) {
  const config::Value* name = architecture(page, "name");
  if (name == nullptr || name->kind != config::Kind::text || name->text.empty()) {
    diagnostics.error(name != nullptr ? name->origin : at, "a page needs [architecture] with a name");
    return std::nullopt;
  }
  return name->text;
}

void load_directory(const fs::path& directory, std::map<std::string, config::Value>& raw, config::Diagnostics& diagnostics) {
  std::map<std::string, config::Origin> here;
  for (const fs::path& file : config::toml_files(directory, "architecture pages", diagnostics)) {
    config::Value page;
    if (!config::parse_toml_file(file.string(), page, diagnostics, kMaxPageBytes)) continue;
    const auto name = page_name(page, page.origin, diagnostics);
    if (!name) continue;
    if (here.count(*name) != 0) diagnostics.error(page.origin, "page " + mekik::quoted(*name) + " is also in " + source_place(here[*name]));
    here[*name] = page.origin;
    raw[*name] = std::move(page);
  }
}

Status rendered(const config::Diagnostics& diagnostics) { return diagnostics.status(); }

}  // namespace

Pages::Pages(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
Pages::~Pages() = default;

std::unique_ptr<Pages> Pages::load(const std::vector<fs::path>& directories, config::Diagnostics& diagnostics) {
  auto impl = std::make_unique<Impl>();
  for (const fs::path& directory : directories) load_directory(directory, impl->raw, diagnostics);
  for (const auto& [name, page] : impl->raw) {
    config::Diagnostics own;
    PageSpec spec;
    try {
      spec = read_page(merged(impl->raw, name, 0), own);
    } catch (const Mistake& mistake) {
      own.error(mistake.at, mistake.message, mistake.hint);
    }
    spec.name = name;
    spec.origin = page.origin;
    for (const config::Diagnostic& one : own.all()) {
      // A mistake of a page that others extend is said once.
      const auto same = [&](const config::Diagnostic& d) {
        return d.at.source == one.at.source && d.at.line == one.at.line && d.message == one.message;
      };
      if (std::any_of(diagnostics.all().begin(), diagnostics.all().end(), same)) continue;
      if (one.warning) diagnostics.warning(one.at, one.message, one.hint);
      else diagnostics.error(one.at, one.message, one.hint);
    }
    if (own.ok()) impl->specs.emplace(name, std::move(spec));
    else impl->broken.emplace(name, own.render());
  }
  return std::unique_ptr<Pages>{new Pages{std::move(impl)}};
}

std::vector<std::string> Pages::names() const {
  std::vector<std::string> out;
  for (const auto& [name, spec] : impl_->specs) out.push_back(name);
  return out;
}

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

// Pages whose condition holds beat pages without one.
Result<const PageSpec*> find_page(const std::map<std::string, PageSpec>& specs, const ModelMeta& model, const BuildOptions& options) {
  const std::size_t format = format_index(model.format);
  if (format == kNoFormat) return unsupported("no architecture page describes models of format " + mekik::quoted(model.format));
  const std::vector<std::string> names = architectures(model);
  if (names.empty() && model.config.is_null())
    return invalid("there is no config.json beside it, which says what the model is; fetch the model's config.json into its folder");
  if (names.empty())
    return invalid(std::string{"the model does not say its architecture ("} +
                   (format == 0 ? "general.architecture" : "architectures in config.json") + ")");
  std::vector<const PageSpec*> with, without;
  for (const auto& [page_name_, spec] : specs) {
    const auto& matches = spec.matches[format];
    if (std::find(matches.begin(), matches.end(), names[0]) == matches.end()) continue;
    if (!spec.matches_when) {
      without.push_back(&spec);
      continue;
    }
    ModelReader reader{spec, model, options};
    if (reader.condition(*spec.matches_when, {})) with.push_back(&spec);
  }
  const std::vector<const PageSpec*>& found = with.empty() ? without : with;
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    std::vector<std::string> known;
    for (const auto& [page_name_, spec] : specs) known.insert(known.end(), spec.matches[format].begin(), spec.matches[format].end());
    const auto near = closest(names[0], known);
    return unsupported("no page matches '" + names[0] + "'; pages are TOML: docs/architecture-pages.md" +
                       (near ? " (the closest is for '" + *near + "')" : std::string{}));
  }
  return invalid("pages " + found[0]->name + " and " + found[1]->name + " both match " + model.format + " architecture " +
                 mekik::quoted(names[0]) + "; name one in [model] page");
}

Result<const PageSpec*> find_or_named(const std::map<std::string, PageSpec>& specs, const std::map<std::string, std::string>& broken,
                                      const ModelMeta& model, const BuildOptions& options) {
  if (options.page.empty()) return find_page(specs, model, options);
  if (const auto found = broken.find(options.page); found != broken.end()) return invalid(found->second);
  const auto named = specs.find(options.page);
  if (named != specs.end()) return &named->second;
  std::vector<std::string> names;
  for (const auto& [name, spec] : specs) names.push_back(name);
  const auto near = closest(options.page, names);
  return invalid("there is no architecture page " + mekik::quoted(options.page) +
                 (near ? "; did you mean " + mekik::quoted(*near) + "?" : ""));
}

}  // namespace

Result<Program> Pages::build(const ModelMeta& model, const BuildOptions& options) const {
  config::Diagnostics diagnostics;
  try {
    MEKIK_TRY(spec, find_or_named(impl_->specs, impl_->broken, model, options));
    Emitter emitter{*spec, model, options, diagnostics};
    if (std::optional<Program> program = emitter.build()) return std::move(*program);
  } catch (const Mistake& mistake) {
    diagnostics.error(mistake.at, mistake.message, mistake.hint);
  } catch (const Poisoned&) {}
  return rendered(diagnostics).ok() ? internal_error("the program could not be built") : std::move(rendered(diagnostics)).in(model.path);
}

Result<Transcript> Pages::transcribe(const ModelMeta& model, const std::string& format, const ReadVector& read_vector) const {
  const std::size_t target = format_index(format);
  if (target == kNoFormat) return unsupported("models are written as gguf or hf, not as " + mekik::quoted(format));
  config::Diagnostics diagnostics;
  try {
    BuildOptions options;
    options.outputs.clear();  // the one that the model is for
    MEKIK_TRY(spec, find_page(impl_->specs, model, options));
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
