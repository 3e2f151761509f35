// Every bound of the server in one place.
#pragma once
#include <cstddef>
#include <cstdint>

#include "config/pipeline.hpp"

namespace mekik::server {

struct Limits {
  std::size_t body_bytes = 32u << 20, header_bytes = 32u << 10;
  std::uint64_t header_timeout_ns = 10'000'000'000, body_timeout_ns = 60'000'000'000, idle_timeout_ns = 75'000'000'000,
                stall_timeout_ns = 30'000'000'000, drain_timeout_ns = 30'000'000'000;
  std::uint32_t connections = 1024;

  // 0 means the default above.
  static Limits of(const config::ServerUse& use);
};

inline constexpr std::size_t kMaxPipelinedBytes = 64u << 10;  // read ahead of an answer, to notice that a client left
inline constexpr std::size_t kMaxUnsentBytes = 8u << 20;      // of a client that reads slower than the engine writes
inline constexpr std::size_t kMaxJsonDepth = 64;
inline constexpr std::uint32_t kMaxAnswers = 128;   // n
inline constexpr std::uint32_t kMaxChoices = 1024;  // prompts x n of one request
inline constexpr std::uint32_t kMaxDocuments = 65536;
inline constexpr std::size_t kMaxQueryBytes = 256u << 20;                            // of the query, which is tokenized with each document
inline constexpr std::size_t kMaxVectorBytes = 256u << 20, kVectorNumberBytes = 13;  // of an answer with embeddings; of one number as JSON
inline constexpr std::uint32_t kMaxStops = 16;
inline constexpr std::size_t kMaxStopBytes = 1024;
inline constexpr std::uint32_t kMaxLogprobs = 20;

}  // namespace mekik::server
