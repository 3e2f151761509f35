// mekik/backend.hpp - backend from a class; memory that the host accounts for, the calls on a compiled program, forms of KV. Included by
// mekik/plugin.hpp; see there.
#pragma once
#include <mekik/base.hpp>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>

namespace mekik {
#ifdef MEKIK_STATIC_NAME
inline namespace MEKIK_STATIC_NAME {
#endif

// Host memory from the host's accounting where it offers that (service MEKIK_MEMORY), under `tag` in its reports. It is zeroed:
// large ones by the kernel, page by page as they are first touched, so pools cost nothing before they are used. Throws
// Error{MEKIK_E_NO_MEMORY}.
class HostMemory {
 public:
  HostMemory() = default;
  // align: a power of two.
  HostMemory(std::uint64_t bytes, std::uint64_t align, const char* tag) {
    if (bytes == 0) return;
    const auto* memory = service<mekik_memory>(MEKIK_MEMORY);
    void* data = memory != nullptr ? memory->alloc(host, bytes, align, tag) : without_host(bytes, align);
    if (data == nullptr) throw Error{MEKIK_E_NO_MEMORY, "no memory for " + std::to_string(bytes) + " bytes of " + tag};
    data_.reset(static_cast<std::byte*>(data));
  }
  std::byte* data() const { return data_.get(); }

 private:
  static void* without_host(std::uint64_t bytes, std::uint64_t align) {
    void* data = std::aligned_alloc(align, (bytes + align - 1) / align * align);
    if (data != nullptr) std::memset(data, 0, bytes);
    return data;
  }
  struct Release {
    void operator()(std::byte* data) const {
      const auto* memory = service<mekik_memory>(MEKIK_MEMORY);
      if (memory != nullptr) memory->release(host, data);
      else std::free(data);
    }
  };
  std::unique_ptr<std::byte[], Release> data_;
};

// The functions of mekik_backend on a mekik_exec, for a class X that does the work: mekik_status weight(const mekik_weight&) (the status of
// the host's rows(), where that failed); std::uint64_t submit(const mekik_batch&), move(Strided<const mekik_move>), read(...), write(...):
// tickets; bool completed(ticket). X is done with a step when submit() returns, throws Error, and then has changed nothing.
template <class X>
struct ExecCalls {
  static X& of(mekik_exec* exec) { return *reinterpret_cast<X*>(exec); }
  static void exec_free(mekik_exec* exec) { delete &of(exec); }
  static mekik_status weight(mekik_exec* exec, const mekik_weight* w) {
    mekik_status answered = MEKIK_OK;  // the host's own reason stands when its rows() failed
    const mekik_status status = guard([&] { answered = of(exec).weight(*w); });
    return status != MEKIK_OK ? status : answered;
  }
  static mekik_status no_adapter(mekik_exec*, std::uint32_t, const mekik_weight*, std::uint32_t, std::uint32_t) {
    return report(MEKIK_E_UNSUPPORTED, "this backend has no adapters");
  }
  static mekik_status submit(mekik_exec* exec, const mekik_batch* batch, std::uint64_t* ticket) {
    return guard([&] { *ticket = of(exec).submit(*batch); });
  }
  static mekik_status move(mekik_exec* exec, const mekik_move* moves, std::uint32_t n, std::uint32_t size, std::uint64_t* ticket) {
    return guard([&] { *ticket = of(exec).move({moves, n, size}); });
  }
  static mekik_status state_read(mekik_exec* exec, std::uint32_t what, std::uint32_t group, std::int32_t id, void* to, std::uint64_t bytes,
                                 std::uint64_t* ticket) {
    return guard([&] { *ticket = of(exec).read(what, group, id, to, bytes); });
  }
  static mekik_status state_write(mekik_exec* exec, std::uint32_t what, std::uint32_t group, std::int32_t id, const void* from,
                                  std::uint64_t bytes, std::uint64_t* ticket) {
    return guard([&] { *ticket = of(exec).write(what, group, id, from, bytes); });
  }
  static mekik_status wait(mekik_exec* exec, std::uint64_t ticket, std::uint64_t) {
    if (of(exec).completed(ticket)) return MEKIK_OK;
    return report(MEKIK_E_INVALID, "ticket " + std::to_string(ticket) + " was never given out");
  }
};

// The table of a backend whose compiled programs are of class X and take no adapters.
template <class X>
constexpr mekik_backend backend_table(decltype(mekik_backend::probe) probe, decltype(mekik_backend::open) open,
                                      decltype(mekik_backend::close) close, decltype(mekik_backend::supports) supports,
                                      decltype(mekik_backend::plan) plan, decltype(mekik_backend::compile) compile) {
  using Calls = ExecCalls<X>;
  return {sizeof(mekik_backend),
          0,
          probe,
          open,
          close,
          supports,
          plan,
          compile,
          Calls::exec_free,
          Calls::weight,
          Calls::no_adapter,
          Calls::submit,
          Calls::move,
          Calls::state_read,
          Calls::state_write,
          Calls::wait};
}

// The extension of a backend whose X can give its packed weights out and take them back: void id(std::uint8_t* sha256) const;
// std::span<const std::uint8_t> packed(std::uint32_t tensor) const; void map(const mekik_weight&, const void* data, std::uint64_t bytes).
template <class X>
constexpr mekik_backend_prepared prepared_table() {
  return {sizeof(mekik_backend_prepared), 0,
          [](mekik_exec* exec, std::uint8_t* sha256) { return guard([&] { ExecCalls<X>::of(exec).id(sha256); }); },
          [](mekik_exec* exec, std::uint32_t tensor, const void** data, std::uint64_t* bytes) {
            return guard([&] {
              const std::span<const std::uint8_t> packed = ExecCalls<X>::of(exec).packed(tensor);
              *data = packed.data();
              *bytes = packed.size();
            });
          },
          [](mekik_exec* exec, const mekik_weight* weight, const void* data, std::uint64_t bytes) {
            return guard([&] { ExecCalls<X>::of(exec).map(*weight, data, bytes); });
          }};
}

// The extension of a backend whose X can say where time goes: void profile(bool on); std::span<const std::uint64_t> spent() const, one per
// operation of the program.
template <class X>
constexpr mekik_backend_measure measure_table(decltype(mekik_backend_measure::roof) roof) {
  return {sizeof(mekik_backend_measure), 0, roof,
          [](mekik_exec* exec, int on) { return guard([&] { ExecCalls<X>::of(exec).profile(on != 0); }); },
          [](mekik_exec* exec, std::uint64_t* ns, std::uint32_t n_ops) {
            return guard([&] {
              const std::span<const std::uint64_t> spent = ExecCalls<X>::of(exec).spent();
              for (std::uint32_t i = 0; i < n_ops; ++i) ns[i] = i < spent.size() ? spent[i] : 0;
            });
          }};
}

// A mekik_kv_form's group where a scale is of all values of a token's key, or value, of one head.
inline constexpr std::uint32_t kKvGroupHead = 0xFFFFFFFFu;
// The extension of a backend: how KV can be stored, as floats, or by mekik/head_form.hpp. The first is what `kv = "auto"` takes.
inline constexpr mekik_kv_form kKvForms[] = {
    {"f16", "half precision", MEKIK_F16, 0, 16},
    {"bf16", "bfloat16", MEKIK_BF16, 0, 16},
    {"f32", "single precision, as computed", MEKIK_F32, 0, 32},
    {"q8_head", "8 bits, a scale for each token's key and value of a head", MEKIK_I8, kKvGroupHead, 8},
    {"q4_head", "4 bits, a scale for each token's key and value of a head", MEKIK_U8, kKvGroupHead, 4}};
inline constexpr mekik_backend_kv kKv{sizeof(mekik_backend_kv), std::size(kKvForms), sizeof(mekik_kv_form), 0, kKvForms};
inline constexpr mekik_backend_kv kFloatKv{sizeof(mekik_backend_kv), 3, sizeof(mekik_kv_form), 0, kKvForms};  // floats only

// Of a device, as users see it and as they choose it; both are cut to what fits.
inline void set_name(mekik_device_info& out, std::string_view name, std::string_view uid) {
  out.name[name.copy(out.name, sizeof out.name - 1)] = 0;
  out.uid[uid.copy(out.uid, sizeof out.uid - 1)] = 0;
}

// B: an opened device.
// static bool probe(std::uint32_t index, mekik_device_info& out)            [load] false: past the last device
// B(std::span<const std::uint32_t> devices, Config)                         [load] indices that probe() knows
// std::string lacks(const mekik_program&, std::uint32_t op)                 [any]  why the operation is not native; "": it is
// void plan(const mekik_program&, const mekik_limits&, mekik_plan& out)     [any]  out is zeroed
// using Exec = X, with X(const mekik_program&, const mekik_limits&) [load] and what ExecCalls asks for; X may outlive the program
// Optional: static kv, a mekik_backend_kv, else floats; static const void* extension(const char* id), for further tables.
// A whole one to begin with, whose operations can be replaced one by one, is mekik::reference_backend (CMake: the target of that name).
template <class B>
struct BackendTable {
  using X = typename B::Exec;
  static mekik_status probe(std::uint32_t index, mekik_device_info* out) {
    return guard([&] {
      if (!B::probe(index, *out)) throw Error{MEKIK_E_INVALID, "there is no device " + std::to_string(index)};
    });
  }
  static mekik_status open(const mekik_host*, const std::uint32_t* indices, std::uint32_t n, const mekik_config* config,
                           mekik_device** out) {
    return guard([&] { *out = reinterpret_cast<mekik_device*>(new B{std::span{indices, indices == nullptr ? 0 : n}, Config{config}}); });
  }
  static B& of(mekik_device* device) { return *reinterpret_cast<B*>(device); }
  static int supports(mekik_device* device, const mekik_program* program, std::uint32_t op) {
    return guard([&] {
             if (const std::string why = of(device).lacks(*program, op); !why.empty()) throw Error{MEKIK_E_UNSUPPORTED, why};
           }) == MEKIK_OK
               ? 1
               : 0;
  }
  static mekik_status plan(mekik_device* device, const mekik_program* program, const mekik_limits* limits, mekik_plan* out) {
    return guard([&] { of(device).plan(*program, *limits, *out); });
  }
  static mekik_status compile(mekik_device*, const mekik_program* program, const mekik_limits* limits, mekik_exec** out) {
    return guard([&] { *out = reinterpret_cast<mekik_exec*>(new X{*program, *limits}); });
  }
  static const void* extension(const char* id) {
    if (std::string_view{id} == MEKIK_BACKEND_KV) {
      if constexpr (requires { B::kv; }) return &B::kv;
      return &kFloatKv;
    }
    if constexpr (requires { B::extension(id); }) return B::extension(id);
    return nullptr;
  }
  static constexpr mekik_backend table = backend_table<X>(
      probe, open, [](mekik_device* device) { delete &of(device); }, supports, plan, compile);
};
template <class B>
constexpr mekik_component backend() {
  return component_of<B>(MEKIK_KIND_BACKEND, &BackendTable<B>::table, BackendTable<B>::extension);
}

#ifdef MEKIK_STATIC_NAME
}  // inline namespace
#endif
}  // namespace mekik
