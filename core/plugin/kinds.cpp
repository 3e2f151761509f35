#include "plugin/kinds.hpp"

#include <mekik/version.h>

#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "config/core_rows.hpp"
#include "config/options.hpp"

namespace mekik::plugin {

namespace {

// A member that must not be NULL.
struct Required {
  const char* name;
  std::size_t offset;
};

struct KindRow {
  const char* id;
  std::uint32_t first_revision_bytes;  // of its table; what later revisions add is asked for by MEKIK_HAS
  std::vector<Required> required;
};

#define MEKIK_REQUIRED(T, m) \
  Required { #m, offsetof(T, m) }

const std::vector<KindRow>& rows() {
  using B = mekik_backend;
  using L = mekik_loader;
  using Q = mekik_scheme;
  using S = mekik_scheduler;
  using C = mekik_cache_policy;
  using P = mekik_sampler;
  using D = mekik_drafter;
  using K = mekik_sink_api;
  static_assert(sizeof(B) == 120 && sizeof(L) == 56 && sizeof(Q) == 88 && sizeof(S) == 40);
  static_assert(sizeof(C) == 88 && sizeof(P) == 64 && sizeof(D) == 48 && sizeof(K) == 48);
  static const std::vector<KindRow> table{
      {MEKIK_KIND_BACKEND,
       120,
       {MEKIK_REQUIRED(B, probe), MEKIK_REQUIRED(B, open), MEKIK_REQUIRED(B, close), MEKIK_REQUIRED(B, supports), MEKIK_REQUIRED(B, plan),
        MEKIK_REQUIRED(B, compile), MEKIK_REQUIRED(B, exec_free), MEKIK_REQUIRED(B, weight), MEKIK_REQUIRED(B, submit),
        MEKIK_REQUIRED(B, move), MEKIK_REQUIRED(B, state_read), MEKIK_REQUIRED(B, state_write), MEKIK_REQUIRED(B, wait)}},
      {MEKIK_KIND_LOADER,
       56,
       {MEKIK_REQUIRED(L, probe), MEKIK_REQUIRED(L, open), MEKIK_REQUIRED(L, close), MEKIK_REQUIRED(L, meta), MEKIK_REQUIRED(L, tensors),
        MEKIK_REQUIRED(L, read)}},
      {MEKIK_KIND_SCHEME, 72, {MEKIK_REQUIRED(Q, describe), MEKIK_REQUIRED(Q, decode)}},
      {MEKIK_KIND_SCHEDULER, 40, {MEKIK_REQUIRED(S, create), MEKIK_REQUIRED(S, destroy), MEKIK_REQUIRED(S, plan)}},
      {MEKIK_KIND_CACHE,
       72,
       {MEKIK_REQUIRED(C, create), MEKIK_REQUIRED(C, destroy), MEKIK_REQUIRED(C, touched), MEKIK_REQUIRED(C, victims)}},
      {MEKIK_KIND_SAMPLER,
       64,
       {MEKIK_REQUIRED(P, create), MEKIK_REQUIRED(P, destroy), MEKIK_REQUIRED(P, accept), MEKIK_REQUIRED(P, apply)}},
      {MEKIK_KIND_DRAFTER,
       48,
       {MEKIK_REQUIRED(D, create), MEKIK_REQUIRED(D, destroy), MEKIK_REQUIRED(D, propose), MEKIK_REQUIRED(D, verified),
        MEKIK_REQUIRED(D, forget)}},
      {MEKIK_KIND_SINK, 48, {MEKIK_REQUIRED(K, create), MEKIK_REQUIRED(K, destroy), MEKIK_REQUIRED(K, publish)}},
  };
  return table;
}

bool is_null(const void* table, std::size_t offset) {
  void* function = nullptr;
  std::memcpy(&function, static_cast<const char*>(table) + offset, sizeof function);
  return function == nullptr;
}

bool is_name(const char* name) {
  return name[0] != '\0' && std::strlen(name) <= 64 && std::strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == std::strlen(name);
}

Status check_kind(const mekik_component& component, const char* built_for, const KindRow*& row) {
  const std::string kind = config::kind_of(component.kind);
  for (const KindRow& known : rows())
    if (config::kind_of(known.id) == kind) row = &known;
  if (row == nullptr) return unsupported("its kind " + mekik::quoted(component.kind) + " is not one that this engine knows");
  if (std::strcmp(row->id, component.kind) != 0)
    return unsupported("it is of kind " + std::string{component.kind} + ", this engine speaks " + row->id);
  const std::string_view id = row->id;
  const bool draft = id.substr(id.size() - 2) == "/0";
  if (draft && (built_for == nullptr || std::strcmp(built_for, MEKIK_VERSION) != 0))
    return unsupported("the kind " + std::string{id} + " is a draft, and its library is built for engine version " +
                       mekik::quoted(built_for == nullptr ? "" : built_for) + ", this one is " MEKIK_VERSION);
  return {};
}

// A slower tier is there as a whole or not at all.
Status check_tier(const mekik_cache_policy& table) {
  const int n = (table.has != nullptr) + (table.store != nullptr) + (table.fetch != nullptr) + (table.cancel != nullptr);
  return n == 0 || n == 4 ? Status{} : invalid("its slower tier is incomplete: has, store, fetch and cancel go together");
}

}  // namespace

const std::vector<std::string>& kinds() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const KindRow& row : rows()) out.push_back(config::kind_of(row.id));
    return out;
  }();
  return names;
}

Status check_component(const mekik_component& component, const char* built_for) {
  if (component.struct_size < sizeof(mekik_component))
    return invalid("its description has " + std::to_string(component.struct_size) + " bytes, the first revision already has " +
                   std::to_string(sizeof(mekik_component)));
  if (component.kind == nullptr || component.name == nullptr || component.version == nullptr || component.summary == nullptr)
    return invalid("it lacks a kind, name, version or summary");
  if (!is_name(component.name)) return invalid("its name " + mekik::quoted(component.name) + " does not match [a-z0-9_]+");
  const KindRow* row = nullptr;
  MEKIK_CHECK_OK(check_kind(component, built_for, row));
  if (component.table == nullptr) return invalid("it has no function table");
  std::uint32_t size = 0;
  std::memcpy(&size, component.table, sizeof size);
  if (size < row->first_revision_bytes)
    return invalid("its function table has " + std::to_string(size) + " bytes, the first revision of " + row->id + " already has " +
                   std::to_string(row->first_revision_bytes));
  for (const Required& function : row->required)
    if (is_null(component.table, function.offset)) return invalid("its function table lacks " + std::string{function.name});
  if (std::strcmp(row->id, MEKIK_KIND_CACHE) == 0) MEKIK_CHECK_OK(check_tier(*static_cast<const mekik_cache_policy*>(component.table)));
  return config::check_rows(component);
}

std::vector<mekik_kv_form> kv_forms(const mekik_component& component) {
  std::vector<mekik_kv_form> out;
  if (std::strcmp(component.kind, MEKIK_KIND_BACKEND) != 0 || component.extension == nullptr) return out;
  const auto* kv = static_cast<const mekik_backend_kv*>(component.extension(MEKIK_BACKEND_KV));
  for (std::uint32_t i = 0; kv != nullptr && i < kv->n_forms; ++i)
    out.push_back(*reinterpret_cast<const mekik_kv_form*>(reinterpret_cast<const char*>(kv->forms) + std::size_t{i} * kv->form_size));
  return out;
}

}  // namespace mekik::plugin
