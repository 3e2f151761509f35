#include "config/extract.hpp"

namespace mekik::config {

ServerUse server_of(const Table& table) {
  const auto unsigned_of = [&](const char* key) { return static_cast<std::uint64_t>(table.i64(key)); };
  ServerUse out;
  out.listen = table.texts("listen");
  out.api_keys = table.texts("api_keys");
  if (const std::string_view key = table.text("api_key"); !key.empty()) out.api_keys.emplace(out.api_keys.begin(), key);
  out.share_prefixes = table.i64("share_prefixes") != 0;
  out.max_body_bytes = unsigned_of("max_body");
  out.max_header_bytes = unsigned_of("max_header");
  out.header_timeout_ns = unsigned_of("header_timeout");
  out.body_timeout_ns = unsigned_of("body_timeout");
  out.idle_timeout_ns = unsigned_of("idle_timeout");
  out.stall_timeout_ns = unsigned_of("stall_timeout");
  out.drain_timeout_ns = unsigned_of("drain_timeout");
  out.max_connections = static_cast<std::uint32_t>(unsigned_of("max_connections"));
  out.max_queue = static_cast<std::uint32_t>(unsigned_of("max_queue"));
  out.origin = table.origin;
  return out;
}

ModelUse model_of(const Table& table) {
  ModelUse out;
  out.path = table.text("path");
  out.loader = table.text("loader");
  out.page = table.text("page");
  out.dense = table.text("dense");
  out.context = static_cast<std::uint32_t>(table.i64("context"));
  out.name = table.text("name");
  out.task = table.text("task");
  if (const std::string_view pooling = table.text("pooling"); pooling != "auto") out.pooling = pooling;
  out.pages = table.texts("pages");
  out.score_tokens = table.texts("score_tokens");
  out.pair_template = table.text("pair_template");
  out.prepared = table.i64("prepared") != 0;
  out.prepared_folder = table.text("prepared_folder");
  out.origin = table.find("path")->origin;
  return out;
}

}  // namespace mekik::config
