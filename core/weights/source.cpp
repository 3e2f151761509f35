#include "weights/source.hpp"

#include <mekik/numbers.hpp>

#include <algorithm>

namespace mekik::weights {

namespace {

std::string scheme_name(const program::TensorInfo& tensor) {
  if (!tensor.scheme.empty()) return tensor.scheme;
  switch (tensor.num) {
    case MEKIK_F32:
      return "f32";
    case MEKIK_F16:
      return "f16";
    case MEKIK_BF16:
      return "bf16";
    default:
      return "float";
  }
}

}  // namespace

Result<std::unique_ptr<Source>> Source::open(plugin::Registry& registry, const ModelFile& file, std::uint32_t index,
                                             std::uint64_t experts) {
  const std::vector<program::TensorInfo>& tensors = file.meta().tensors;
  if (index >= tensors.size())
    return internal_error("the program names tensor " + std::to_string(index) + " of " + std::to_string(tensors.size()));
  const program::TensorInfo& tensor = tensors[index];
  std::unique_ptr<Source> source{new Source};
  source->name_ = tensor.name;
  source->scheme_ = scheme_name(tensor);
  source->file_ = &file;
  source->index_ = index;
  auto component = registry.find("scheme", tensor.scheme.empty() ? "float" : tensor.scheme);
  if (!component.ok()) return component.status().in("tensor \"" + tensor.name + "\" is stored as " + source->scheme_);
  source->component_ = std::move(*component);
  source->table_ = &source->component_.table<mekik_scheme>();
  source->part_ = *file.part(index);
  mekik_parts& parts = source->parts_;
  parts.struct_size = sizeof parts;
  parts.n_parts = 1;
  parts.part_size = sizeof(mekik_part);
  parts.parts = &source->part_;
  parts.k = tensor.shape.empty() ? 1 : static_cast<std::uint64_t>(tensor.shape.back());
  std::uint64_t rows = 1;
  for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i)
    if (__builtin_mul_overflow(rows, static_cast<std::uint64_t>(tensor.shape[i]), &rows))
      return invalid("tensor \"" + tensor.name + "\" has more rows than can be counted");
  parts.experts = experts;
  parts.n = rows / experts;
  if (const json::value* quantization = json::find(file.meta().config, "quantization_config"))
    source->config_ = json::serialize(*quantization);
  parts.config_json = plugin::abi_str(source->config_);
  parts.self = source.get();
  parts.read = read;
  MEKIK_CHECK_OK(source->describe(file));
  return source;
}

Source::~Source() {
  if (has_form_) table_->release(&form_);
}

mekik_status Source::read(void* self, std::uint32_t part, std::uint64_t at, void* out, std::uint64_t bytes) {
  const auto& source = *static_cast<const Source*>(self);
  if (part != 0) return MEKIK_E_INVALID;
  return source.file_->loader().read(source.file_->raw(), source.index_, at, out, bytes);
}

Status Source::describe(const ModelFile&) {
  const mekik_status code = table_->describe(&parts_, &form_);
  if (code == MEKIK_E_UNSUPPORTED) {
    // Only decode is left; a scheme that cannot do that either says so when rows are asked for, so ask for none now.
    why_no_form_ = plugin::take_failure();
    float nothing = 0;
    return plugin::to_status(table_->decode(&parts_, 0, 0, 0, &nothing), "tensor \"" + name_ + "\"");
  }
  MEKIK_CHECK_OK(plugin::to_status(code, "tensor \"" + name_ + "\""));
  has_form_ = true;
  return check_form();
}

// A form drives the sizes of buffers, so a plugin's mistake must not get past here.
Status Source::check_form() const {
  const auto bad = [&](const char* what) {
    return internal_error("scheme " + scheme_ + " describes tensor \"" + name_ + "\" by a form whose " + what);
  };
  if (form_.experts != parts_.experts || form_.n != parts_.n || form_.k != parts_.k) return bad("shape differs from the tensor's");
  if (form_.row_step == 0 || form_.group_n == 0 || form_.row_step % form_.group_n != 0) return bad("row_step is no multiple of group_n");
  if (form_.kind == MEKIK_FORM_FLOAT) return num_size(form_.kept_num) != 0 ? Status{} : bad("kept_num is unknown");
  if (form_.kind != MEKIK_FORM_AFFINE && form_.kind != MEKIK_FORM_CODEBOOK) return bad("kind is unknown");
  if (form_.bits < 1 || form_.bits > 8) return bad("codes have not 1 to 8 bits");
  if (form_.group_k == 0 || num_size(form_.scale_num) == 0) return bad("scales are missing");
  if (form_.super_k != 0 && (form_.super_k % form_.group_k != 0 || num_size(form_.super_num) == 0))
    return bad("supers do not fit its groups");
  if (form_.kind == MEKIK_FORM_CODEBOOK && (form_.table == nullptr || form_.n_table == 0 || form_.n_table > 256))
    return bad("table is missing");
  if (form_.n_kept != 0 && (form_.kept_k == nullptr || num_size(form_.kept_num) == 0)) return bad("kept columns are missing");
  return {};
}

Status Source::decode(std::uint64_t first, std::uint64_t count, float* out) const {
  while (count > 0) {
    const std::uint64_t expert = first / parts_.n, n0 = first % parts_.n, n1 = std::min(parts_.n, n0 + count);
    MEKIK_CHECK_OK(plugin::to_status(table_->decode(&parts_, expert, n0, n1, out), "tensor \"" + name_ + "\""));
    out += (n1 - n0) * parts_.k;
    first += n1 - n0;
    count -= n1 - n0;
  }
  return {};
}

Status Source::fetch(std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, const mekik_form_rows& out) const {
  const std::string where = "tensor \"" + name_ + "\"";
  const std::uint64_t step = form_.row_step;
  const std::uint64_t low = n0 / step * step, high = n1 == parts_.n ? n1 : std::min(parts_.n, (n1 + step - 1) / step * step);
  if (low == n0 && high == n1) return plugin::to_status(table_->rows(&parts_, &form_, expert, n0, n1, &out), where);
  // Fetch what row_step makes us, and copy what was wanted.
  const FormLayout layout{form_};
  FormBuffer buffer{layout, high - low};
  MEKIK_CHECK_OK(plugin::to_status(table_->rows(&parts_, &form_, expert, low, high, &buffer.rows()), where));
  const MemberPointers from{buffer.rows()}, to{out};
  for (std::size_t i = 0; i < FormLayout::kMembers; ++i) {
    const Member& member = layout.members[i];
    if (member.row_bytes == 0) continue;
    const std::uint64_t unit = member.grouped ? layout.group_n : 1;
    const std::uint64_t count = (n1 - n0 + unit - 1) / unit;
    std::copy_n(from.at[i] + (n0 - low) / unit * member.row_bytes, count * member.row_bytes, to.at[i]);
  }
  return {};
}

Status Source::rows(std::uint64_t first, std::uint64_t count, const mekik_form_rows& out) const {
  const FormLayout layout{form_};
  MemberPointers to{out};
  while (count > 0) {
    const std::uint64_t expert = first / parts_.n, n0 = first % parts_.n, n1 = std::min(parts_.n, n0 + count);
    MEKIK_CHECK_OK(fetch(expert, n0, n1, to.rows()));
    for (std::size_t i = 0; i < FormLayout::kMembers; ++i) {
      const Member& member = layout.members[i];
      if (to.at[i] == nullptr) continue;
      to.at[i] += member.row_bytes * (member.grouped ? (n1 - n0 + layout.group_n - 1) / layout.group_n : n1 - n0);
    }
    first += n1 - n0;
    count -= n1 - n0;
  }
  return {};
}

}  // namespace mekik::weights
