// What is lent for one call: inputs are read-only from the start, outputs hold poison, and all of it is taken back when the call is over.
#pragma once
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <mekik/plugin.h>

#include "run/shared.hpp"
#include "support/mode.hpp"

namespace mekik::validate {

class Lent {
 public:
  explicit Lent(const Mode& mode) : mode_{mode} {}
  ~Lent() { end(); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  const void* bytes(const char* name, const void* from, std::size_t n, std::size_t align = 1) {
    Piece* p = take(n, align, name);
    if (n != 0) std::memcpy(data(p), from, n);
    freeze(p);
    return data(p);
  }
  template <class T>
  const T* in(const char* name, const std::vector<T>& values) {
    return static_cast<const T*>(bytes(name, values.data(), values.size() * sizeof(T), alignof(T)));
  }
  template <class T>
  const T* one(const char* name, const T& value) {
    return static_cast<const T*>(bytes(name, &value, sizeof value, alignof(T)));
  }
  mekik_str text(const char* name, std::string_view value) {  // without a terminator
    return {static_cast<const char*>(bytes(name, value.data(), value.size())), value.size()};
  }
  const char* c_str(const char* name, const std::string& value) {
    return static_cast<const char*>(bytes(name, value.c_str(), value.size() + 1));
  }
  // An array of structs, whose elements are `stride` bytes apart: as many more as the mode says.
  template <class T>
  const T* rows(const char* name, const std::vector<T>& values, std::uint32_t& stride) {
    Piece* p = spread<T>(name, values.size(), stride);
    for (std::size_t i = 0; i < values.size(); ++i) std::memcpy(static_cast<char*>(data(p)) + i * stride, &values[i], sizeof(T));
    freeze(p);
    return static_cast<const T*>(data(p));
  }
  template <class T>
  T* out(const char* name, std::size_t n) {
    Piece* p = take(n * sizeof(T), alignof(T), name);
    std::memset(data(p), mode_.poison, n * sizeof(T));
    return static_cast<T*>(data(p));
  }
  template <class T>
  T* inout(const char* name, const std::vector<T>& values) {
    T* to = out<T>(name, values.size());
    std::copy(values.begin(), values.end(), to);
    return to;
  }
  // Structs that the plugin fills: zeroed, as the contract says; what lies behind each is not the plugin's.
  template <class T>
  T* out_rows(const char* name, std::size_t n, std::uint32_t& stride) {
    Piece* p = spread<T>(name, n, stride);
    for (std::size_t i = 0; i < n; ++i) std::memset(static_cast<char*>(data(p)) + i * stride, 0, sizeof(T));
    filled_.push_back({p, sizeof(T), stride, n});
    return static_cast<T*>(data(p));
  }
  template <class T>
  static T& at(T* rows, std::size_t i, std::uint32_t stride) {
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return *reinterpret_cast<T*>(reinterpret_cast<Byte*>(rows) + i * stride);
  }
  // Looks at what surrounds the outputs and takes everything back.
  void end() {
    for (const Filled& f : filled_)
      for (std::size_t i = 0; i < f.n; ++i)
        for (std::size_t b = f.size; b < f.stride; ++b)
          if (static_cast<unsigned char*>(data(f.piece))[i * f.stride + b] != 0xDE) {
            fault(called() + ": wrote behind its own part of an element of `" + f.piece->name + "` (the stride was ignored)");
            b = f.stride, i = f.n - 1;
          }
    filled_.clear();
    for (Piece* p : pieces_)
      if (const std::string wrong = revoke(p); !wrong.empty()) fault(called() + ": " + wrong);
    pieces_.clear();
  }

 private:
  struct Filled {
    Piece* piece;
    std::size_t size, stride, n;
  };
  Piece* take(std::size_t n, std::size_t align, const char* name) {
    pieces_.push_back(lend(n, align, name, mode_.flush));
    return pieces_.back();
  }
  template <class T>
  Piece* spread(const char* name, std::size_t n, std::uint32_t& stride) {
    stride = static_cast<std::uint32_t>(sizeof(T)) + mode_.extra;
    Piece* p = take(n * stride, alignof(T), name);
    std::memset(data(p), 0xDE, n * stride);
    return p;
  }
  const Mode& mode_;
  std::vector<Piece*> pieces_;
  std::vector<Filled> filled_;
};

}  // namespace mekik::validate
