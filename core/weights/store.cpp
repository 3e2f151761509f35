#include "weights/store.hpp"

#include <mekik/numbers.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include "weights/assemble.hpp"
#include "weights/form_layout.hpp"
#include "weights/gather.hpp"
#include "weights/source.hpp"

namespace mekik::weights {

namespace {

constexpr std::uint64_t kPanelFloats = std::uint64_t{1} << 18;  // decoded at once where values are rounded or computed

// Runs a postfix program over one value, each step in F32, as the tool that made the checkpoint computes.
float compute(const std::vector<program::ValueStep>& steps, float w) {
  using What = program::ValueStep::What;
  float stack[16];
  std::size_t top = 0;
  for (const program::ValueStep& step : steps) {
    switch (step.what) {
      case What::weight:
        stack[top++] = w;
        break;
      case What::constant:
        stack[top++] = static_cast<float>(step.constant);
        break;
      case What::negate:
        stack[top - 1] = -stack[top - 1];
        break;
      case What::exponential:
        stack[top - 1] = static_cast<float>(std::exp(static_cast<double>(stack[top - 1])));
        break;
      case What::logarithm:
        stack[top - 1] = static_cast<float>(std::log(static_cast<double>(stack[top - 1])));
        break;
      case What::add:
        --top, stack[top - 1] = stack[top - 1] + stack[top];
        break;
      case What::subtract:
        --top, stack[top - 1] = stack[top - 1] - stack[top];
        break;
      case What::multiply:
        --top, stack[top - 1] = stack[top - 1] * stack[top];
        break;
    }
  }
  return stack[0];
}

// Whether the program leaves exactly one value, and never more than fit the stack above.
bool well_formed(const std::vector<program::ValueStep>& steps) {
  using What = program::ValueStep::What;
  std::size_t depth = 0;
  for (const program::ValueStep& step : steps) {
    const bool pushes = step.what == What::weight || step.what == What::constant;
    const bool unary = step.what == What::negate || step.what == What::exponential || step.what == What::logarithm;
    if (pushes ? ++depth > 16 : depth < (unary ? 1u : 2u)) return false;
    if (!pushes && !unary) --depth;
  }
  return depth == 1;
}

std::uint32_t dense_num(const std::string& dense) {
  return dense == "f32" ? MEKIK_F32 : dense == "f16" ? MEKIK_F16 : dense == "bf16" ? MEKIK_BF16 : 0;
}

mekik_form float_form(const program::WeightRecipe& recipe, std::uint32_t num) {
  mekik_form form{};
  form.struct_size = sizeof form;
  form.kind = MEKIK_FORM_FLOAT;
  form.kept_num = num;
  form.group_n = 1;
  form.row_step = 1;
  form.exact = 1;
  form.experts = recipe.experts;
  form.n = recipe.n;
  form.k = recipe.k;
  return form;
}

std::string label(const program::WeightRecipe& recipe) {
  return recipe.layer < 0 ? "weight \"" + recipe.symbol + "\""
                          : "weight \"" + recipe.symbol + "\" of layer " + std::to_string(recipe.layer);
}

// How one weight of the program is served.
struct Weight {
  const program::WeightRecipe* recipe = nullptr;
  mekik_form form{};
  std::string scheme;
  std::vector<float> host;             // values made at load
  std::vector<float> tensor_scales;    // of the form
  std::unique_ptr<Gather> gather;      // whole rows
  std::unique_ptr<Assemble> assemble;  // values that moved
  bool factored = false;               // rows go out as stored; else decoded, computed, rounded to form.kept_num

  Status decode(std::uint64_t a, std::uint64_t b, float* out) const {
    if (!host.empty()) std::copy_n(host.data() + a * recipe->k, (b - a) * recipe->k, out);
    else if (gather != nullptr) MEKIK_CHECK_OK(gather->decode(a, b, out));
    else MEKIK_CHECK_OK(assemble->decode(a, b, out));
    if (!recipe->value.empty()) std::transform(out, out + (b - a) * recipe->k, out, [&](float w) { return compute(recipe->value, w); });
    return {};
  }

  Status rows(std::uint64_t a, std::uint64_t b, const mekik_form_rows& out) const {
    if (factored) return gather->rows(a, b, out);
    if (form.kept_num == MEKIK_F32) return decode(a, b, static_cast<float*>(out.kept));
    const std::uint64_t panel = std::max<std::uint64_t>(1, kPanelFloats / recipe->k);
    std::vector<float> buffer(std::min(panel, b - a) * recipe->k);
    auto* to = static_cast<std::uint8_t*>(out.kept);
    for (; a < b; a += panel) {
      const std::uint64_t end = std::min(b, a + panel), count = (end - a) * recipe->k;
      MEKIK_CHECK_OK(decode(a, end, buffer.data()));
      convert_floats(buffer.data(), count, form.kept_num, to);
      to += count * num_size(form.kept_num);
    }
    return {};
  }
};

}  // namespace

struct Store::Impl {
  struct Handle {  // what mekik_weight.self points to
    const Impl* store;
    std::size_t weight;
  };
  const ModelFile* file = nullptr;
  const program::Program* program = nullptr;
  // The sources come first: they are released after the weights that read them.
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::unique_ptr<Source>> sources;  // by tensor and experts
  std::vector<Weight> weights;
  std::vector<const mekik_form*> forms;
  std::vector<Handle> handles;
  std::vector<std::string> notes;
  std::map<std::string, std::uint32_t> decoded;  // why, of how many weights
  const mekik_host* host = nullptr;              // to report failures of rows()
  mutable std::mutex mutex;
  mutable Status failure;

  Result<const Source*> source(plugin::Registry& registry, std::uint32_t index, std::uint64_t experts);
  Status open_weight(plugin::Registry& registry, const program::WeightRecipe& recipe, const std::string& dense, Weight& out);
  Status open_host(plugin::Registry& registry, const program::WeightRecipe& recipe, Weight& out);
  Status open_rows(plugin::Registry& registry, const program::WeightRecipe& recipe, const std::string& dense, Weight& out);
  Status check_range(std::size_t weight, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1) const;
  Status rows(std::size_t weight, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, const mekik_form_rows& out) const;
};

Store::Store() : impl_{std::make_unique<Impl>()} {}
Store::~Store() = default;

Result<const Source*> Store::Impl::source(plugin::Registry& registry, std::uint32_t index, std::uint64_t experts) {
  if (index >= file->meta().tensors.size())
    return internal_error("the program names tensor " + std::to_string(index) + ", which the file lacks");
  const std::vector<std::int64_t>& shape = file->meta().tensors[index].shape;
  if (experts > 1 && (shape.size() < 3 || shape[0] != static_cast<std::int64_t>(experts))) experts = 1;
  std::unique_ptr<Source>& kept = sources[{index, experts}];
  if (kept == nullptr) {
    MEKIK_TRY(opened, Source::open(registry, *file, index, experts));
    kept = std::move(opened);
    host = kept->host();
  }
  return kept.get();
}

Status Store::Impl::open_host(plugin::Registry& registry, const program::WeightRecipe& recipe, Weight& out) {
  if (recipe.host.size() != recipe.experts * recipe.n * recipe.k)
    return internal_error(label(recipe) + " has other values than its shape says");
  out.host = recipe.host;
  out.form = float_form(recipe, MEKIK_F32);
  out.scheme = "f32";
  if (recipe.host_divisors == 0) return {};
  MEKIK_TRY(divisors, source(registry, recipe.host_divisors - 1, 1));
  const std::uint64_t count = divisors->n_rows() * divisors->k();
  if (count > out.host.size())
    return invalid("tensor \"" + divisors->name() + "\" has " + std::to_string(count) + " divisors, " + label(recipe) + " only " +
                   std::to_string(out.host.size()) + " values");
  std::vector<float> values(count);
  MEKIK_CHECK_OK(divisors->decode(0, divisors->n_rows(), values.data()));
  for (std::size_t i = 0; i < count; ++i) {
    if (values[i] == 0) return invalid("tensor \"" + divisors->name() + "\" has a divisor that is 0");
    out.host[i] /= values[i];
  }
  return {};
}

Status Store::Impl::open_rows(plugin::Registry& registry, const program::WeightRecipe& recipe, const std::string& dense, Weight& out) {
  std::map<std::uint32_t, const Source*> opened;
  for (const program::RowRun& run : recipe.rows) {
    MEKIK_TRY(found, source(registry, run.source, recipe.experts));
    opened[run.source] = found;
  }
  MEKIK_TRY(gather, Gather::make(recipe, [&](std::uint32_t index) { return opened.at(index); }));
  out.gather = std::make_unique<Gather>(std::move(gather));
  const std::string& stored = out.gather->runs()[0].source->scheme();
  if (!recipe.value.empty()) {
    out.form = float_form(recipe, MEKIK_F32);
    out.scheme = "f32";
    return {};
  }
  std::string why;
  if (const mekik_form* form = out.gather->common_form(recipe.experts, recipe.n, why)) {
    out.form = *form;
    out.form.experts = recipe.experts;
    out.form.n = recipe.n;
    out.form.k = recipe.k;
    out.form.owner = nullptr;
    out.tensor_scales = out.gather->tensor_scales(recipe.experts, recipe.n);
    if (!out.tensor_scales.empty()) out.form.tensor_scale = out.tensor_scales.data();
    out.scheme = stored;
    out.factored = true;
    return {};
  }
  out.form = float_form(recipe, dense_num(dense));
  out.scheme = dense;
  ++decoded["\"" + recipe.symbol + "\" (" + stored + ") is decoded to " + dense + " at load: " + why];
  return {};
}

Status Store::Impl::open_weight(plugin::Registry& registry, const program::WeightRecipe& recipe, const std::string& dense, Weight& out) {
  out.recipe = &recipe;
  std::uint64_t rows = 0, values = 0;
  if (recipe.n == 0 || recipe.k == 0 || recipe.experts == 0 || __builtin_mul_overflow(recipe.experts, recipe.n, &rows) ||
      __builtin_mul_overflow(rows, recipe.k, &values))
    return internal_error(label(recipe) + " has an impossible shape");
  const int ways = (recipe.host.empty() ? 0 : 1) + (recipe.rows.empty() ? 0 : 1) + (recipe.parts.empty() ? 0 : 1);
  if (ways != 1) return internal_error(label(recipe) + " is not made in exactly one way");
  if (!recipe.value.empty() && !well_formed(recipe.value)) return internal_error(label(recipe) + " has a malformed value program");
  if (!recipe.host.empty()) return open_host(registry, recipe, out);
  if (!recipe.rows.empty()) return open_rows(registry, recipe, dense, out);
  MEKIK_TRY(assemble, Assemble::make(recipe, [&](std::uint32_t index) { return source(registry, index, 1); }));
  out.assemble = std::move(assemble);
  out.form = float_form(recipe, MEKIK_F32);
  out.scheme = "f32";
  if (out.assemble->scheme() != "f32")
    ++decoded["\"" + recipe.symbol + "\" (" + out.assemble->scheme() + ") is decoded to f32 at load: its last axis is moved"];
  return {};
}

Result<std::unique_ptr<Store>> Store::open(plugin::Registry& registry, const ModelFile& file, const program::Program& program,
                                           const std::string& dense) {
  if (dense_num(dense) == 0) return invalid("weights can be decoded to \"f32\", \"f16\" or \"bf16\", not to \"" + dense + "\"");
  std::unique_ptr<Store> store{new Store};
  Impl& impl = *store->impl_;
  impl.file = &file;
  impl.program = &program;
  impl.weights.resize(program.weights.size());
  for (std::size_t i = 0; i < program.weights.size(); ++i)
    MEKIK_CHECK_OK(impl.open_weight(registry, program.weights[i], dense, impl.weights[i]).in(file.meta().path));
  for (std::size_t i = 0; i < impl.weights.size(); ++i) {
    impl.forms.push_back(&impl.weights[i].form);
    impl.handles.push_back({&impl, i});
  }
  impl.notes = file.notes();
  for (const auto& [why, count] : impl.decoded) impl.notes.push_back(count == 1 ? why : why + " (" + std::to_string(count) + " weights)");
  return store;
}

const std::vector<const mekik_form*>& Store::forms() const { return impl_->forms; }
const std::string& Store::scheme(std::size_t weight) const { return impl_->weights[weight].scheme; }
const std::vector<std::string>& Store::notes() const { return impl_->notes; }
std::set<std::string> Store::libraries() const {
  std::set<std::string> out;
  for (const auto& [key, source] : impl_->sources) out.insert(source->library());
  return out;
}
Status Store::failure() const {
  const std::lock_guard lock{impl_->mutex};
  return impl_->failure;
}

Status Store::Impl::check_range(std::size_t weight, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1) const {
  if (weight >= weights.size()) return internal_error("there is no weight " + std::to_string(weight));
  const mekik_form& form = weights[weight].form;
  if (expert >= form.experts || n0 > n1 || n1 > form.n || n0 % form.row_step != 0 || (n1 % form.row_step != 0 && n1 != form.n))
    return internal_error(label(*weights[weight].recipe) + " was asked for rows " + std::to_string(n0) + " to " + std::to_string(n1) +
                          " of expert " + std::to_string(expert) + ", which it does not have or serves in other steps");
  return {};
}

Status Store::Impl::rows(std::size_t weight, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, const mekik_form_rows& out) const {
  MEKIK_CHECK_OK(check_range(weight, expert, n0, n1));
  if (n0 == n1) return {};
  const std::uint64_t base = expert * weights[weight].form.n;
  return weights[weight].rows(base + n0, base + n1, out).in(label(*weights[weight].recipe));
}

Status Store::decode(std::size_t weight, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, float* out) const {
  if (weight >= impl_->weights.size() || expert >= impl_->weights[weight].form.experts || n0 > n1 || n1 > impl_->weights[weight].form.n)
    return internal_error("rows of a weight were asked for that it does not have");
  if (n0 == n1) return {};
  const std::uint64_t base = expert * impl_->weights[weight].form.n;
  return impl_->weights[weight].decode(base + n0, base + n1, out).in(label(*impl_->weights[weight].recipe));
}

mekik_weight Store::weight(std::uint32_t tensor) const {
  mekik_weight out{};
  out.struct_size = sizeof out;
  out.tensor = tensor;
  const auto index = static_cast<std::size_t>(impl_->program->tensors[tensor].weight);
  out.form = impl_->forms[index];
  out.self = &impl_->handles[index];
  out.rows = [](void* self, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, const mekik_form_rows* rows) -> mekik_status {
    const auto& handle = *static_cast<const Impl::Handle*>(self);
    Status status;
    try {
      status = handle.store->rows(handle.weight, expert, n0, n1, *rows);
    } catch (const std::bad_alloc&) {
      status = fail(Code::no_memory, "out of memory while reading weights");
    }
    if (status.ok()) return MEKIK_OK;
    if (const std::lock_guard lock{handle.store->mutex}; handle.store->failure.ok()) handle.store->failure = status;
    // The backend passes the code on; the text waits where a plugin's would.
    const mekik_host* host = handle.store->host;
    return host != nullptr ? host->fail(host, static_cast<mekik_status>(status.code), plugin::abi_str(status.text))
                           : static_cast<mekik_status>(status.code);
  };
  return out;
}

}  // namespace mekik::weights
