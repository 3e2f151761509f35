#include "convert/gguf_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/text.hpp"

namespace mekik::convert {

namespace {

enum Type : std::uint32_t { kU8 = 0, kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kText = 8, kArray = 9 };

template <class T>
void append(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void append_text(std::string& out, std::string_view text) {
  append<std::uint64_t>(out, text.size());
  out.append(text);
}

// Keys that other readers take as reals only, whatever the number.
bool is_real(std::string_view key) {
  for (const char* end :
       {"epsilon", "freq_base", "freq_base_swa", "scaling.factor", "attn_factor", "scale", "_scale", "softcapping", "clamp_kqv",
        "max_alibi_bias", "log_multiplier", "ext_factor", "beta_fast", "beta_slow", "weights_scale", "freq_scale"})
    if (key.ends_with(end)) return true;
  return false;
}

}  // namespace

void GgufKeys::begin(std::string_view key, std::uint32_t type) {
  append_text(bytes_, key);
  append(bytes_, type);
  ++count_;
}
void GgufKeys::text(std::string_view key, std::string_view value) {
  begin(key, kText);
  append_text(bytes_, value);
}
void GgufKeys::u32(std::string_view key, std::uint32_t value) {
  begin(key, kU32);
  append(bytes_, value);
}
void GgufKeys::f32(std::string_view key, float value) {
  begin(key, kF32);
  append(bytes_, value);
}
void GgufKeys::boolean(std::string_view key, bool value) {
  begin(key, kBool);
  append<std::uint8_t>(bytes_, value ? 1 : 0);
}
void GgufKeys::texts(std::string_view key, const std::vector<std::string>& values) {
  begin(key, kArray);
  append<std::uint32_t>(bytes_, kText);
  append<std::uint64_t>(bytes_, values.size());
  for (const std::string& value : values) append_text(bytes_, value);
}
void GgufKeys::floats(std::string_view key, const std::vector<float>& values) {
  begin(key, kArray);
  append<std::uint32_t>(bytes_, kF32);
  append<std::uint64_t>(bytes_, values.size());
  for (const float value : values) append(bytes_, value);
}
void GgufKeys::u8s(std::string_view key, std::string_view bytes) {
  begin(key, kArray);
  append<std::uint32_t>(bytes_, kU8);
  append<std::uint64_t>(bytes_, bytes.size());
  bytes_ += bytes;
}
void GgufKeys::integers(std::string_view key, const std::vector<std::int32_t>& values) {
  begin(key, kArray);
  append<std::uint32_t>(bytes_, kI32);
  append<std::uint64_t>(bytes_, values.size());
  for (const std::int32_t value : values) append(bytes_, value);
}

Status GgufKeys::list(std::string_view key, const json::array& values) {
  const auto all = [&](auto&& of) { return std::all_of(values.begin(), values.end(), of); };
  if (values.empty()) return {};
  if (all([](const json::value& v) { return v.is_bool(); })) {
    begin(key, kArray);
    append<std::uint32_t>(bytes_, kBool);
    append<std::uint64_t>(bytes_, values.size());
    for (const json::value& v : values) append<std::uint8_t>(bytes_, v.get_bool() ? 1 : 0);
  } else if (all([](const json::value& v) { return v.is_string(); })) {
    std::vector<std::string> out;
    for (const json::value& v : values) out.emplace_back(std::string_view{v.get_string()});
    texts(key, out);
  } else if (all([](const json::value& v) { return v.is_int64(); }) && !is_real(key)) {
    std::vector<std::int32_t> out;
    for (const json::value& v : values) out.push_back(static_cast<std::int32_t>(v.get_int64()));
    integers(key, out);
  } else if (all([](const json::value& v) { return v.is_number(); })) {
    std::vector<float> out;
    for (const json::value& v : values) out.push_back(v.to_number<float>());
    floats(key, out);
  } else {
    return unsupported("key " + mekik::quoted(key) + " holds a list that GGUF cannot");
  }
  return {};
}

Status GgufKeys::json(std::string_view key, const json::value& value) {
  if (value.is_string()) text(key, value.get_string());
  else if (value.is_bool()) boolean(key, value.get_bool());
  else if (value.is_array()) return list(key, value.get_array());
  else if (value.is_double() || (value.is_number() && is_real(key))) f32(key, value.to_number<float>());
  else if (value.is_int64() && value.get_int64() >= 0 && value.get_int64() <= std::numeric_limits<std::uint32_t>::max())
    u32(key, static_cast<std::uint32_t>(value.get_int64()));
  else if (value.is_int64() && value.get_int64() < 0 && value.get_int64() >= std::numeric_limits<std::int32_t>::min()) {
    begin(key, kI32);
    append(bytes_, static_cast<std::int32_t>(value.get_int64()));
  } else {
    return unsupported("key " + mekik::quoted(key) + " holds " + json::serialize(value) + ", which GGUF cannot");
  }
  return {};
}

Result<OutFile> OutFile::create(const std::filesystem::path& path) {
  OutFile out;
  out.path_ = path.string();
  out.file_.reset(std::fopen(out.path_.c_str(), "wbx"));
  if (!out.file_) return fail(Code::io, out.path_ + ": cannot be written: " + std::strerror(errno));
  return out;
}

Status OutFile::write(const void* data, std::uint64_t bytes) {
  if (bytes == 0 || std::fwrite(data, 1, bytes, file_.get()) == bytes) return {};
  return fail(Code::io, path_ + ": cannot be written: " + std::strerror(errno));
}

Status OutFile::zeros(std::uint64_t bytes) {
  const std::string nothing(bytes, '\0');
  return write(nothing.data(), bytes);
}

Status OutFile::close() {
  if (std::fclose(file_.release()) == 0) return {};
  return fail(Code::io, path_ + ": cannot be written: " + std::strerror(errno));
}

Status write_gguf_head(OutFile& out, const GgufKeys& keys, const std::vector<GgufTensor>& tensors) {
  std::string head = "GGUF";
  append<std::uint32_t>(head, 3);
  append<std::uint64_t>(head, tensors.size());
  append<std::uint64_t>(head, keys.count());
  head += keys.bytes();
  std::uint64_t at = 0;
  for (const GgufTensor& tensor : tensors) {
    append_text(head, tensor.name);
    append(head, static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) append(head, static_cast<std::uint64_t>(*size));
    append(head, tensor.type);
    append(head, at);
    at += (tensor.bytes + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment;
  }
  head.resize((head.size() + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment, '\0');
  return out.write(head.data(), head.size());
}

}  // namespace mekik::convert
