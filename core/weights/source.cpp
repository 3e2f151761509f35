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
  source->parts_ = std::make_unique<Parts>(file.stored(), file.parts(index), file.quantization().config);
  std::uint64_t rows = 1;
  for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i)
    if (__builtin_mul_overflow(rows, static_cast<std::uint64_t>(tensor.shape[i]), &rows))
      return invalid("tensor \"" + tensor.name + "\" has more rows than can be counted");
  // A scheme of several parts knows of experts by itself.
  const bool stacked = file.parts(index).size() > 1 && tensor.shape.size() == 3;
  mekik_parts& parts = source->parts_->abi();
  parts.k = tensor.shape.empty() ? 1 : static_cast<std::uint64_t>(tensor.shape.back());
  parts.experts = stacked ? static_cast<std::uint64_t>(tensor.shape[0]) : experts;
  parts.n = rows / parts.experts;
  MEKIK_CHECK_OK(source->describe());
  return source;
}

Source::~Source() {
  if (has_form_) table_->release(&form_);
}

Status Source::describe() {
  const mekik_status code = table_->describe(&abi(), &form_);
  if (code == MEKIK_E_UNSUPPORTED) {
    // Only decode is left; a scheme that cannot do that either says so when rows are asked for, so ask for none now.
    why_no_form_ = plugin::take_failure();
    float nothing = 0;
    return plugin::to_status(table_->decode(&abi(), 0, 0, 0, &nothing), "tensor \"" + name_ + "\"");
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
  if (form_.experts != abi().experts || form_.n != abi().n || form_.k != abi().k) return bad("shape differs from the tensor's");
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
    const std::uint64_t expert = first / abi().n, n0 = first % abi().n, n1 = std::min(abi().n, n0 + count);
    MEKIK_CHECK_OK(plugin::to_status(table_->decode(&abi(), expert, n0, n1, out), "tensor \"" + name_ + "\""));
    out += (n1 - n0) * abi().k;
    first += n1 - n0;
    count -= n1 - n0;
  }
  return {};
}

Status Source::fetch(std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, const mekik_form_rows& out) const {
  const std::string where = "tensor \"" + name_ + "\"";
  const std::uint64_t step = form_.row_step;
  const std::uint64_t low = n0 / step * step, high = n1 == abi().n ? n1 : std::min(abi().n, (n1 + step - 1) / step * step);
  if (low == n0 && high == n1) return plugin::to_status(table_->rows(&abi(), &form_, expert, n0, n1, &out), where);
  // Fetch what row_step makes us, and copy what was wanted.
  const FormLayout layout{form_};
  FormBuffer buffer{layout, high - low};
  MEKIK_CHECK_OK(plugin::to_status(table_->rows(&abi(), &form_, expert, low, high, &buffer.rows()), where));
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
    const std::uint64_t expert = first / abi().n, n0 = first % abi().n, n1 = std::min(abi().n, n0 + count);
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
