// Numbers as files and states store them (mekik_num), one at a time. Rounding is to nearest, ties to even. Thread: any.
#pragma once
#include <mekik/plugin.h>

#include <cstddef>
#include <cstdint>

namespace mekik::reference {

float from_f16(std::uint16_t bits);
float from_bf16(std::uint16_t bits);
std::uint16_t to_f16(float value);        // infinite from 65520 on; a NaN stays one
std::uint16_t to_bf16(float value);       // a NaN stays one
float from_e8m0(std::uint8_t bits);       // 2^(x - 127); 255 is NaN
float from_e8m0_half(std::uint8_t bits);  // 2^(x - 128), 255 too
float from_e4m3(std::uint8_t bits);       // OCP: 0x7f and 0xff are NaN, no infinities
float from_e5m2(std::uint8_t bits);
float from_ue4m3(std::uint8_t bits);  // the lower seven bits as E4M3, 0x7f is NaN

// Bytes of one number; 0: not a mekik_num.
std::size_t num_size(std::uint32_t num);
// Element i of an array of `num`, as F32 (exact for all types up to 24 bits).
float load_num(std::uint32_t num, const void* array, std::size_t i);
// F32, F16 and BF16 only: what a KV state is stored in, and what `cast` rounds to.
bool is_storable(std::uint32_t num);
void store_num(std::uint32_t num, void* array, std::size_t i, float value);
float round_num(std::uint32_t num, float value);

}  // namespace mekik::reference
