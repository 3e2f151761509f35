// A small page and a model that fits it, to be broken in one place.
#pragma once
#include "fixtures.hpp"

namespace mekik::test {

inline const char* kSmallPage = R"page([architecture]
name = "small"
matches = { gguf = ["tiny"] }
[hparams]
width = { gguf = "{arch}.width" }
layers = { gguf = "{arch}.layers" }
context = { gguf = "{arch}.context" }
vocab = { gguf = "{arch}.vocab", default = "dim(embed, 0)" }
heads = "4"
head_dim = "width / heads"
eps = "1e-6"
[rope.main]
dim = "head_dim"
base = "10000.0"
[weights]
embed = { gguf = "embed", shape = ["vocab", "width"] }
norm = { gguf = "{l}.norm", shape = ["width"] }
wq = { gguf = "{l}.q", shape = ["heads", "head_dim", "width"] }
wo = { gguf = "{l}.o", shape = ["width", "heads * head_dim"] }
q_norm = { gguf = "{l}.q_norm", shape = ["head_dim"], optional = true }
[program]
begin = ["x = embedding(tokens, embed)"]
layer = [
  "n = rms_norm(x, norm, eps)",
  "q = rope(linear(n, wq), main)",
  "x = x + linear(attention(q, q, q), wo)",
]
end = ["logits = linear(take_rows(x), embed)"]
)page";

inline const char* kSmallModel = R"({"format": "gguf", "layers": 2,
  "config": {"general.architecture": "tiny", "tiny.width": 64, "tiny.layers": 2, "tiny.context": 128},
  "tensors": [["embed", "f32", [96, 64]], ["{l}.norm", "f32", [64]], ["{l}.q", "f16", [64, 64]], ["{l}.o", "f16", [64, 64]]]})";

inline std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  INFO(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

struct PageFile {
  std::string name, text;
};

// The program of a model by these pages alone, or all complaints with the folder's name cut off.
inline Result<program::Program> build_with(const std::vector<PageFile>& pages, const std::string& model,
                                           const program::BuildOptions& options = {}) {
  TemporaryDirectory directory;
  for (const PageFile& page : pages) std::ofstream{directory.path() / page.name} << page.text;
  config::Diagnostics diagnostics;
  const auto loaded = program::Pages::load({directory.path()}, diagnostics);
  Status status = diagnostics.ok() ? Status{} : diagnostics.status();
  if (status.ok()) {
    Result<program::Program> out = loaded->build(make_model(parse_json(model)), options);
    if (out.ok()) return out;
    status = out.status();
  }
  const std::string prefix = directory.path().string() + "/";
  for (std::size_t at = status.text.find(prefix); at != std::string::npos; at = status.text.find(prefix))
    status.text.erase(at, prefix.size());
  return status;
}

inline std::string complaint(const std::string& page, const std::string& model = kSmallModel, const program::BuildOptions& options = {}) {
  return build_with({{"small.toml", page}}, model, options).status().text;
}

}  // namespace mekik::test
