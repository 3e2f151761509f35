// Two architecture pages and a model as JSON, between zero bytes: a program that passes the verifier before and after folding, or a
// reason that is not "internal error".
#include <limits>

#include "base/text.hpp"
#include "files.hpp"
#include "program/page.hpp"

namespace {

using namespace mekik;
using fuzz::require;

// As tests/programs/*: {"format", "config", "tensors": [[name, type, [sizes]], ..], "layers": n}; a name with {l} stands for n tensors.
bool add_tensor(const json::value& row, std::int64_t layers, program::ModelMeta& out) {
  const json::array* cells = row.if_array();
  if (cells == nullptr || cells->size() != 3 || !(*cells)[0].is_string() || !(*cells)[1].is_string() || !(*cells)[2].is_array())
    return false;
  program::TensorInfo info;
  const std::string name{(*cells)[0].get_string()}, type{(*cells)[1].get_string()};
  if (type == "f32") info.num = MEKIK_F32;
  else if (type == "f16") info.num = MEKIK_F16;
  else info.scheme = type;
  for (const json::value& size : (*cells)[2].get_array()) {
    if (!size.is_int64() || size.get_int64() <= 0 || size.get_int64() > (std::int64_t{1} << 40)) return false;  // loaders check this
    info.shape.push_back(size.get_int64());
  }
  if (info.shape.empty() || info.shape.size() > 4) return false;
  const std::size_t mark = name.find("{l}");
  for (std::int64_t l = 0; l < (mark == std::string::npos ? 1 : layers); ++l) {
    info.name = name;
    if (mark != std::string::npos) info.name.replace(mark, 3, std::to_string(l));
    out.tensors.push_back(info);
  }
  return true;
}

bool read_model(std::string_view text, program::ModelMeta& out) {
  const json::ParseLimits limits{64, 1u << 20, true, true};
  auto parsed = json::parse(text, limits);
  if (!parsed.ok()) return false;
  const json::value *format = json::find(*parsed, "format"), *config = json::find(*parsed, "config"),
                    *tensors = json::find(*parsed, "tensors"), *layers = json::find(*parsed, "layers");
  if (format == nullptr || !format->is_string() || config == nullptr || tensors == nullptr || !tensors->is_array()) return false;
  const std::int64_t n = layers != nullptr && layers->is_int64() ? layers->get_int64() : 1;
  if (n < 0 || n > 8 || tensors->get_array().size() > 64) return false;
  out.path = "model";
  out.format = std::string{format->get_string()};
  out.config = *config;
  for (const json::value& row : tensors->get_array())
    if (!add_tensor(row, n, out)) return false;
  out.file = [](const std::string&) { return json::value{}; };
  return true;
}

void check_program(const program::Pages& pages, const program::ModelMeta& model, const program::BuildOptions& options) {
  const Result<program::Program> built = pages.build(model, options);
  if (!built.ok()) {
    require(built.status().code != Code::internal && !built.status().text.empty() && is_utf8(built.status().text));
    return;
  }
  require(program::verify(*built).ok());
  require(program::verify(program::fold(*built)).ok());
  require(!program::to_text(*built).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Folder folder;
  const auto texts = fuzz::pieces({reinterpret_cast<const char*>(data), size});
  folder.write("a.toml", texts[0]);
  folder.write("b.toml", texts.size() > 1 ? texts[1] : "");
  config::Diagnostics diagnostics;
  const auto pages = program::Pages::load({folder.path()}, diagnostics);
  const std::string complaints = diagnostics.render();
  require(is_utf8(complaints) && (diagnostics.ok() || !complaints.empty()));
  program::ModelMeta model;
  if (texts.size() < 3 || !read_model(texts[2], model)) return 0;
  check_program(*pages, model, {});
  program::BuildOptions options;
  options.context = 64;
  options.outputs = {"logits", "hidden"};
  for (const std::string& name : pages->names()) {
    options.page = name;
    check_program(*pages, model, options);
  }
  return 0;
}
