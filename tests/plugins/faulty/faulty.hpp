// What the faulty plugins share.
#pragma once
#include <mekik/plugin.h>
#include <mekik/version.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

// MEKIK_FAULT names the one thing that is wrong; without it nothing is.
inline bool is(std::string_view fault) {
  static const char* const wanted = std::getenv("MEKIK_FAULT");
  return wanted != nullptr && fault == wanted;
}

inline const mekik_host* host;

inline mekik_status fail(mekik_status code, std::string_view why) { return host->fail(host, code, {why.data(), why.size()}); }

template <class T>
const T& at(const T* rows, std::size_t i, std::uint32_t size) {
  return *reinterpret_cast<const T*>(reinterpret_cast<const char*>(rows) + i * (is("ignores_stride") ? sizeof(T) : size));
}
template <class T>
T& at(T* rows, std::size_t i, std::uint32_t size) {
  return *reinterpret_cast<T*>(reinterpret_cast<char*>(rows) + i * (is("ignores_stride") ? sizeof(T) : size));
}
inline const mekik_config_api* config_api() { return static_cast<const mekik_config_api*>(host->service(host, MEKIK_CONFIG)); }

template <class T>
mekik_component one_component(const char* kind, const T* table, const mekik_option* options, std::uint32_t n) {
  mekik_component c{};
  c.struct_size = sizeof c;
  c.kind = kind;
  c.name = "faulty";
  c.version = "1.0";
  c.summary = "Wrong in one way.";
  c.options = options;
  c.n_options = n;
  c.option_size = sizeof(mekik_option);
  c.table = table;
  return c;
}

// The entry; `on_init` is what init does beside remembering the host.
#define FAULTY_PLUGIN(COMPONENT, ON_INIT)                  \
  extern "C" const mekik_plugin mekik_plugin_v0 = {        \
      MEKIK_MAGIC,                                         \
      sizeof(mekik_plugin),                                \
      MEKIK_ABI_MINOR,                                     \
      0,                                                   \
      "test.faulty",                                       \
      "test",                                              \
      "1.0",                                               \
      "Apache-2.0",                                        \
      MEKIK_VERSION,                                       \
      [](const mekik_host* h, mekik_str) -> mekik_status { \
        host = h;                                          \
        ON_INIT();                                         \
        return MEKIK_OK;                                   \
      },                                                   \
      [] { host = nullptr; },                              \
      [] { return 1u; },                                   \
      [](std::uint32_t i) -> const mekik_component* { return i == 0 ? &COMPONENT : nullptr; }}
