#include "fixtures.hpp"

using namespace mekik;
using namespace mekik::program;

TEST_CASE("pages: the llama page builds from metadata alone") {
  const Program p = test::build(test::load_model("gguf/llama"));
  CHECK(p.layers == 2);
  CHECK(p.width == 576);
  CHECK(p.vocab == 49152);
  CHECK(p.context == 8192);
  CHECK(p.groups.size() == 1);
  CHECK(p.assumed == std::vector<std::string>{"kind = silu (gguf does not store it)"});
  for (const Tensor& tensor : p.tensors)
    if (tensor.name == "L1.wq") CHECK(p.weights[static_cast<std::size_t>(tensor.weight)].rows.size() == 18);
}
