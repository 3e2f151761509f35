// The functions that a level's table is made of; see Kernels for what they do.
#pragma once
#include "isa/kernels.hpp"

namespace mekik::cpu::MEKIK_CPU_LEVEL {

IntGemm pick_small(const Matrix&);
IntGemm pick_nibble(const Matrix&);
IntGemm pick_wide(const Matrix&);
IntGemm pick_table(const Matrix&);
void decode(const Matrix&, const std::uint8_t* stripe, std::uint32_t k0, std::uint32_t k1, float* out);
void mac_any(Num, const void* w, std::size_t ws, std::uint32_t n, const float* x, std::size_t ldx, std::uint32_t m, float* acc,
             std::size_t lda);
void attention(const Attention&);
void latent(const Attention&);
void attention_heads(const Attention&);
void turn(float* x, std::uint32_t n);
std::uint16_t encode_head(std::uint32_t bits, const float* x, std::uint32_t n, std::int8_t* codes);
void delta(const Delta&);
void scan(const Scan&);
void conv(const float* const* x, const float* w, std::size_t ws, std::uint32_t taps, const float* bias, int kind, std::uint32_t n,
          float* y);
void quantise(const float* x, std::uint32_t k, const Acts& row);
void rms_norm(const float* x, const float* w, std::uint32_t n, float eps, float* y);
void layer_norm(const float* x, const float* w, const float* b, std::uint32_t n, float eps, float* y);
float mean(const float* x, std::uint32_t n);
void l2_norm(const float* x, std::uint32_t n, float eps, float* y);
void softmax(const float* x, std::uint32_t n, float* y);
void act(int kind, const float* x, std::uint32_t n, float* y);
void glu(int kind, const float* g, const float* u, std::uint32_t n, float limit, float alpha, float* y);
void softcap(const float* x, std::uint32_t n, float c, float* y);
void add(const float* a, const float* b, bool scalar, std::uint32_t n, float* y);
void mul(const float* a, const float* b, bool scalar, std::uint32_t n, float* y);
void scale(const float* x, std::uint32_t n, float a, float b, float* y);
void clamp(const float* x, std::uint32_t n, float low, float high, float* y);
void rope(const float* x, std::uint32_t d, const float* cos, const float* sin, std::uint32_t dim, int pairs, float* y);
void cast(Num to, const float* x, std::uint32_t n, void* y);
void f32_products(std::uint64_t rounds);
void int8_products(std::uint64_t rounds);
void read(const std::uint8_t* data, std::uint64_t bytes);

}  // namespace mekik::cpu::MEKIK_CPU_LEVEL
