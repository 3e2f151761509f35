// mekik/files.hpp - loader and scheme from a class, and reading the parts of a weight. Included by mekik/plugin.hpp; see there.
#pragma once
#include <mekik/base.hpp>
#include <mekik/numbers.hpp>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {  // guard() and report() are this plugin's own, so this must be, too
#endif

// ---- the parts of a weight ----------------------------------------------------------------------------------------------------------

namespace detail {
[[noreturn]] inline void wrong(const std::string& what) { throw Error{MEKIK_E_INVALID, what}; }
}  // namespace detail

// One tensor of a weight, by its position among the suffixes of the scheme. Everything that reads checks what it reads; a number of bytes
// that a file can make large must have been bounded by its shape.
class Part {
 public:
  Part(const mekik_parts& all, std::uint32_t at) : all_{&all}, at_{at} {
    if (at < all.n_parts)
      part_ = reinterpret_cast<const mekik_part*>(reinterpret_cast<const char*>(all.parts) + std::size_t{at} * all.part_size);
    if (part_ != nullptr && part_->name == nullptr) part_ = nullptr;
  }
  explicit operator bool() const { return part_ != nullptr; }
  std::string name() const { return part_ != nullptr ? part_->name : "(absent)"; }
  std::uint32_t num() const { return there().num; }
  std::uint32_t rank() const { return there().rank; }
  std::uint64_t size(std::uint32_t axis) const { return static_cast<std::uint64_t>(there().shape[axis]); }
  std::uint64_t elements() const {
    std::uint64_t all = 1;
    for (std::uint32_t i = 0; i < rank(); ++i)
      if (__builtin_mul_overflow(all, size(i), &all)) detail::wrong(name() + " has more numbers than can be counted");
    return all;
  }
  std::string shape() const {
    std::string out = "[";
    for (std::uint32_t i = 0; i < rank(); ++i) out += (i != 0 ? ", " : "") + std::to_string(size(i));
    return out + "]";
  }
  std::size_t number_bytes() const { return num_size(num()); }
  // Fails unless the part has these sizes; ones in front may be missing or too many.
  void need_shape(std::vector<std::uint64_t> sizes) const {
    std::vector<std::uint64_t> have;
    for (std::uint32_t i = 0; i < rank(); ++i) have.push_back(size(i));
    const auto strip = [](std::vector<std::uint64_t>& v) {
      while (!v.empty() && v.front() == 1) v.erase(v.begin());
    };
    std::string wanted = "[";
    for (std::size_t i = 0; i < sizes.size(); ++i) wanted += (i != 0 ? ", " : "") + std::to_string(sizes[i]);
    strip(sizes);
    strip(have);
    if (sizes != have) detail::wrong(name() + " has shape " + shape() + ", not " + wanted + "]");
  }
  void need_matrix(const char* of = "") const {
    constexpr std::uint64_t most = std::uint64_t{1} << 31;
    if (rank() != 2) detail::wrong(name() + " has shape " + shape() + ", not a matrix's" + of);
    if (size(0) == 0 || size(1) == 0 || size(0) > most || size(1) > most)
      detail::wrong(name() + " has shape " + shape() + ", which cannot be");
  }
  void need_num(std::initializer_list<std::uint32_t> nums, const char* called) const {
    if (std::find(nums.begin(), nums.end(), num()) == nums.end()) detail::wrong(name() + " must hold " + called + " numbers");
  }

  void read(std::uint64_t at, void* out, std::uint64_t bytes) const {
    if (bytes == 0) return;
    if (at > there().bytes || bytes > part_->bytes - at) detail::wrong(name() + " is shorter than its shape");
    if (part_->data != nullptr) {
      std::memcpy(out, static_cast<const char*>(part_->data) + at, bytes);
    } else if (const mekik_status status = all_->read(all_->self, at_, at, out, bytes); status != MEKIK_OK) {
      throw HostFailed{status};
    }
  }
  // Numbers `first` .. first + count, as they are stored.
  std::vector<std::uint8_t> raw(std::uint64_t first, std::uint64_t count) const {
    std::vector<std::uint8_t> out(count * number_bytes());
    read(first * number_bytes(), out.data(), out.size());
    return out;
  }
  // A box of a matrix whose lines have `wide` numbers: lines a .. b, numbers c .. d of each.
  std::vector<std::uint8_t> box(std::uint64_t wide, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) const {
    const std::size_t each = number_bytes(), bytes = (d - c) * each;
    std::vector<std::uint8_t> out((b - a) * bytes);
    if (d - c == wide) read(a * wide * each, out.data(), out.size());
    else
      for (std::uint64_t line = a; line < b; ++line) read((line * wide + c) * each, out.data() + (line - a) * bytes, bytes);
    return out;
  }
  std::vector<float> floats(std::uint64_t first, std::uint64_t count) const {
    const std::vector<std::uint8_t> bytes = raw(first, count);
    std::vector<float> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = load_num(num(), bytes.data(), i);
    return out;
  }
  // Whole numbers, exactly.
  std::vector<std::int64_t> integers(std::uint64_t first, std::uint64_t count) const {
    need_num({MEKIK_I32, MEKIK_I64, MEKIK_I16, MEKIK_I8, MEKIK_U8}, "whole");
    const std::vector<std::uint8_t> bytes = raw(first, count);
    std::vector<std::int64_t> out(count);
    for (std::size_t i = 0; i < count; ++i)
      out[i] = num() == MEKIK_I64   ? numbers::load<std::int64_t>(bytes.data(), i)
               : num() == MEKIK_I32 ? numbers::load<std::int32_t>(bytes.data(), i)
               : num() == MEKIK_I16 ? numbers::load<std::int16_t>(bytes.data(), i)
               : num() == MEKIK_I8  ? numbers::load<std::int8_t>(bytes.data(), i)
                                    : numbers::load<std::uint8_t>(bytes.data(), i);
    return out;
  }

 private:
  const mekik_part& there() const {
    if (part_ == nullptr) detail::wrong("a part of the weight is missing");
    return *part_;
  }
  const mekik_parts* all_;
  std::uint32_t at_;
  const mekik_part* part_ = nullptr;
};

namespace blocks {  // schemes of one tensor; block formats have a table of their own, in mekik/block_scheme.hpp

inline const mekik_part& only_part(const mekik_parts& parts) {
  if (parts.n_parts != 1 || parts.parts == nullptr) throw Error{MEKIK_E_INVALID, "this scheme stores a weight as one tensor"};
  return parts.parts[0];
}

inline std::string label(const mekik_part& part) { return part.name != nullptr ? std::string{part.name} : std::string{"(no name)"}; }

// Fails unless the part holds experts x n rows of row_bytes.
inline void check_size(const mekik_parts& parts, std::uint64_t row_bytes) {
  const mekik_part& part = only_part(parts);
  std::uint64_t rows = 0, bytes = 0;
  if (__builtin_mul_overflow(parts.experts, parts.n, &rows) || __builtin_mul_overflow(rows, row_bytes, &bytes) || bytes != part.bytes)
    throw Error{MEKIK_E_INVALID, label(part) + ": " + std::to_string(part.bytes) + " bytes do not hold " + std::to_string(parts.experts) +
                                     " x " + std::to_string(parts.n) + " rows of " + std::to_string(parts.k) + " values"};
}

inline void check_rows(const mekik_parts& parts, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1) {
  if (expert >= parts.experts || n0 > n1 || n1 > parts.n)
    throw Error{MEKIK_E_INVALID, label(only_part(parts)) + ": rows " + std::to_string(n0) + " to " + std::to_string(n1) + " of expert " +
                                     std::to_string(expert) + " do not exist"};
}

// Calls f(row - n0, bytes of the row) for rows n0 .. n1 of an expert. Reads at most about 256 KiB at a time.
template <class F>
void each_row(const mekik_parts& parts, std::uint64_t row_bytes, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, F&& f) {
  check_size(parts, row_bytes);
  check_rows(parts, expert, n0, n1);
  if (n0 == n1 || row_bytes == 0) return;
  const mekik_part& part = only_part(parts);
  const std::uint64_t begin = (expert * parts.n + n0) * row_bytes;
  if (part.data != nullptr) {
    const auto* data = static_cast<const std::uint8_t*>(part.data) + begin;
    for (std::uint64_t row = 0; row < n1 - n0; ++row) f(row, data + row * row_bytes);
    return;
  }
  const std::uint64_t panel = std::min(n1 - n0, std::max<std::uint64_t>(1, (std::uint64_t{256} << 10) / row_bytes));
  const std::unique_ptr<std::uint8_t[]> buffer{new std::uint8_t[panel * row_bytes]};
  for (std::uint64_t row = 0; row < n1 - n0; row += panel) {
    const std::uint64_t count = std::min(panel, n1 - n0 - row);
    check_host(parts.read(parts.self, 0, begin + row * row_bytes, buffer.get(), count * row_bytes));
    for (std::uint64_t i = 0; i < count; ++i) f(row + i, buffer.get() + i * row_bytes);
  }
}

// A form with the sizes of the weight and nothing else in it: exact, a scale a row where there is one.
inline mekik_form empty_form(const mekik_parts& parts) {
  mekik_form form{};
  form.struct_size = sizeof(mekik_form);
  form.experts = parts.experts;
  form.n = parts.n;
  form.k = parts.k;
  form.group_n = 1;
  form.row_step = 1;
  form.exact = 1;
  return form;
}

}  // namespace blocks

// ---- scheme ---------------------------------------------------------------------------------------------------------------------------

// Rows n0 .. n1 of an expert.
struct Panel {
  std::uint64_t expert, n0, n1;
  std::uint64_t rows() const { return n1 - n0; }
};

// A scheme says what stored weights mean. It has no instance: S has static functions, all of them [any]. With p of const mekik_parts&:
// int claims(p)                              0 no ... 100 certain: by names, shapes, numbers and p.config_json, cheaply
// mekik_form describe(p)                     begin with blocks::empty_form(p). Throw MEKIK_E_UNSUPPORTED where only decode can say it
// void rows(p, form, Panel, const mekik_form_rows& out)   the stored codes and scales of rows, where the form says that they go
// void decode(p, Panel, float* out)          [rows][k], as the format's own tool computes them: the truth that the form must equal
// Optional: static block_elems and block_bytes of a block format, whose name is the type's in the file; static suffixes (see mekik_scheme)
// of a weight of several tensors, and then std::vector<std::int64_t> shape(p); release(mekik_form&), for what describe() allocated;
// encode(const float* x, const float* importance, n, k, std::span<std::uint8_t> blocks); const char* left_out(p), static, "": nothing.
// Panels are checked before S sees them, and rows() is asked at multiples of the form's row_step.
template <class S>
struct SchemeTable {
  static void check(const mekik_parts& p, const Panel& panel) {
    if (panel.expert >= p.experts || panel.n0 > panel.n1 || panel.n1 > p.n)
      throw Error{MEKIK_E_INVALID, Part{p, 0}.name() + ": rows " + std::to_string(panel.n0) + " to " + std::to_string(panel.n1) +
                                       " of expert " + std::to_string(panel.expert) + " do not exist"};
  }
  static int claims(const mekik_parts* p) {
    int sure = 0;
    static_cast<void>(guard([&] { sure = S::claims(*p); }));
    return sure;
  }
  static mekik_status describe(const mekik_parts* p, mekik_form* out) {
    return guard([&] { *out = S::describe(*p); });
  }
  static void release(mekik_form* form) {
    if constexpr (requires { S::release(*form); }) S::release(*form);
  }
  static mekik_status rows(const mekik_parts* p, const mekik_form* form, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1,
                           const mekik_form_rows* out) {
    return guard([&] {
      check(*p, {expert, n0, n1});
      S::rows(*p, *form, Panel{expert, n0, n1}, *out);
    });
  }
  static mekik_status decode(const mekik_parts* p, std::uint64_t expert, std::uint64_t n0, std::uint64_t n1, float* out) {
    return guard([&] {
      check(*p, {expert, n0, n1});
      S::decode(*p, Panel{expert, n0, n1}, out);
    });
  }
  static mekik_status encode(const float* x, const float* importance, std::uint64_t n, std::uint64_t k, void* to, std::uint64_t bytes) {
    return guard([&] {
      if constexpr (kEncodes) S::encode(x, importance, n, k, std::span{static_cast<std::uint8_t*>(to), bytes});
    });
  }
  static mekik_status shape(const mekik_parts* p, std::int64_t* out, std::uint32_t* rank) {
    return guard([&] {
      if constexpr (kShapes) {
        const std::vector<std::int64_t> sizes = S::shape(*p);
        if (sizes.size() != 2 && sizes.size() != 3) detail::wrong("a weight has two sizes, or three");
        std::copy(sizes.begin(), sizes.end(), out);
        *rank = static_cast<std::uint32_t>(sizes.size());
      }
    });
  }
  static mekik_str left_out(const mekik_parts* p) {
    const char* text = "";
    if constexpr (requires { S::left_out(*p); }) static_cast<void>(guard([&] { text = S::left_out(*p); }));
    return str(text);
  }
  static constexpr bool kEncodes = requires(const float* x, std::span<std::uint8_t> to) { S::encode(x, x, 1, 1, to); };
  static constexpr bool kShapes = requires(const mekik_parts& p) { S::shape(p); };
  static constexpr bool kSays = requires(const mekik_parts& p) { S::left_out(p); };
  static constexpr mekik_scheme table = [] {
    mekik_scheme t{};
    t.struct_size = sizeof t;
    if constexpr (requires { S::block_elems; }) t.block_elems = S::block_elems, t.block_bytes = S::block_bytes;
    if constexpr (requires { S::suffixes; }) t.suffixes = S::suffixes;
    t.claims = claims;
    t.describe = describe;
    t.release = release;
    t.rows = rows;
    t.decode = decode;
    t.encode = kEncodes ? encode : nullptr;
    t.shape = kShapes ? shape : nullptr;
    t.left_out = kSays ? left_out : nullptr;
    return t;
  }();
};
template <class S>
constexpr mekik_component scheme() {
  return component_of<S>(MEKIK_KIND_SCHEME, &SchemeTable<S>::table);
}

// ---- loader ---------------------------------------------------------------------------------------------------------------------------

// A loader opens a model's file or folder. It has no options; a pipeline names it in [model] loader. An instance is one open model:
// static int probe(std::string_view path, std::string_view head)   [any]   0 no ... 100 certain; head: how the file begins
// L(std::string_view path)                                         [load]  reads headers, no weights; what is wrong is said by throwing
// std::string meta(std::string_view key)                           [any]   JSON; "": the model has no such thing
//   "format": "\"hf\"" or "\"gguf\"", whose names of keys and tensors the model has, and so the column of the architecture pages;
//   "config": one object with all hyperparameters; "tokenizer"; "template": the chat template as a JSON string; "file:NAME": another JSON
//   file of the folder; "files": paths of all that decides the weights (where absent, nothing packed is kept from one start to the next).
// std::span<const mekik_part> tensors() const                      [any]   the same at every call; names and spans stay until the end
// void read(std::uint32_t i, std::uint64_t at, void* out, std::uint64_t bytes) const   [any]   within the tensor, or it is not asked
template <class L>
struct LoaderTable {
  struct Open {
    L file;
    std::mutex mutex;
    std::map<std::string, std::string, std::less<>> said;  // borrowed by the host until close()
  };
  static Open& of(mekik_model_file* f) { return *reinterpret_cast<Open*>(f); }
  static int probe(mekik_str path, const void* head, std::size_t bytes) {
    int sure = 0;
    static_cast<void>(guard([&] { sure = L::probe(view(path), std::string_view{static_cast<const char*>(head), bytes}); }));
    return sure;
  }
  static mekik_status open(const mekik_host*, mekik_str path, mekik_model_file** out) {
    return guard([&] { *out = reinterpret_cast<mekik_model_file*>(new Open{L{view(path)}, {}, {}}); });
  }
  static void close(mekik_model_file* f) { delete &of(f); }
  static mekik_status meta(mekik_model_file* f, mekik_str key, mekik_str* out) {
    return guard([&] {
      Open& open = of(f);
      const std::lock_guard lock{open.mutex};
      auto at = open.said.find(view(key));
      if (at == open.said.end()) at = open.said.emplace(std::string{view(key)}, open.file.meta(view(key))).first;
      if (at->second.empty()) detail::wrong("this model has no \"" + std::string{view(key)} + "\"");
      *out = str(at->second);
    });
  }
  static mekik_status tensors(mekik_model_file* f, const mekik_part** out, std::uint32_t* n, std::uint32_t* size) {
    return guard([&] {
      const std::span<const mekik_part> all = of(f).file.tensors();
      *out = all.data();
      *n = static_cast<std::uint32_t>(all.size());
      *size = sizeof(mekik_part);
    });
  }
  static mekik_status read(mekik_model_file* f, std::uint32_t i, std::uint64_t at, void* to, std::uint64_t bytes) {
    return guard([&] {
      const std::span<const mekik_part> all = of(f).file.tensors();
      if (i >= all.size() || at > all[i].bytes || bytes > all[i].bytes - at)
        detail::wrong((i < all.size() ? std::string{all[i].name} : "tensor " + std::to_string(i)) + " has no bytes " + std::to_string(at) +
                      " to " + std::to_string(at + bytes));
      of(f).file.read(i, at, to, bytes);
    });
  }
  static constexpr mekik_loader table{sizeof(mekik_loader), 0, probe, open, close, meta, tensors, read};
};
template <class L>
constexpr mekik_component loader() {
  return component_of<L>(MEKIK_KIND_LOADER, &LoaderTable<L>::table);
}

#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
