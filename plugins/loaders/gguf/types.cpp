#include "types.hpp"

#include <mekik/plugin.h>

namespace mekik_gguf {

namespace {

constexpr const char* kTryAgain = "convert the model again";
constexpr const char* kPlainQ4_0 = "fetch the file with Q4_0 in its place, from which programs make this order of blocks themselves";
constexpr const char* kPlainIq4Nl = "fetch the file with IQ4_NL in its place, from which programs make this order of blocks themselves";

constexpr TensorType kTypes[] = {
    {0, "F32", nullptr, MEKIK_F32, 1, 4},
    {1, "F16", nullptr, MEKIK_F16, 1, 2},
    {2, "Q4_0", "q4_0", 0, 32, 18},
    {3, "Q4_1", "q4_1", 0, 32, 20},
    {4, "Q4_2", "q4_2", 0, 0, 0, kTryAgain},
    {5, "Q4_3", "q4_3", 0, 0, 0, kTryAgain},
    {6, "Q5_0", "q5_0", 0, 32, 22},
    {7, "Q5_1", "q5_1", 0, 32, 24},
    {8, "Q8_0", "q8_0", 0, 32, 34},
    {9, "Q8_1", "q8_1", 0, 32, 36},
    {10, "Q2_K", "q2_k", 0, 256, 84},
    {11, "Q3_K", "q3_k", 0, 256, 110},
    {12, "Q4_K", "q4_k", 0, 256, 144},
    {13, "Q5_K", "q5_k", 0, 256, 176},
    {14, "Q6_K", "q6_k", 0, 256, 210},
    {15, "Q8_K", "q8_k", 0, 256, 292},
    {16, "IQ2_XXS", "iq2_xxs", 0, 256, 66},
    {17, "IQ2_XS", "iq2_xs", 0, 256, 74},
    {18, "IQ3_XXS", "iq3_xxs", 0, 256, 98},
    {19, "IQ1_S", "iq1_s", 0, 256, 50},
    {20, "IQ4_NL", "iq4_nl", 0, 32, 18},
    {21, "IQ3_S", "iq3_s", 0, 256, 110},
    {22, "IQ2_S", "iq2_s", 0, 256, 82},
    {23, "IQ4_XS", "iq4_xs", 0, 256, 136},
    {24, "I8", nullptr, MEKIK_I8, 1, 1},
    {25, "I16", nullptr, MEKIK_I16, 1, 2},
    {26, "I32", nullptr, MEKIK_I32, 1, 4},
    {27, "I64", nullptr, MEKIK_I64, 1, 8},
    {28, "F64", nullptr, MEKIK_F64, 1, 8},
    {29, "IQ1_M", "iq1_m", 0, 256, 56},
    {30, "BF16", nullptr, MEKIK_BF16, 1, 2},
    {31, "Q4_0_4_4", "q4_0_4_4", 0, 0, 0, kPlainQ4_0},
    {32, "Q4_0_4_8", "q4_0_4_8", 0, 0, 0, kPlainQ4_0},
    {33, "Q4_0_8_8", "q4_0_8_8", 0, 0, 0, kPlainQ4_0},
    {34, "TQ1_0", "tq1_0", 0, 256, 54},
    {35, "TQ2_0", "tq2_0", 0, 256, 66},
    {36, "IQ4_NL_4_4", "iq4_nl_4_4", 0, 0, 0, kPlainIq4Nl},
    {37, "IQ4_NL_4_8", "iq4_nl_4_8", 0, 0, 0, kPlainIq4Nl},
    {38, "IQ4_NL_8_8", "iq4_nl_8_8", 0, 0, 0, kPlainIq4Nl},
    {39, "MXFP4", "mxfp4", 0, 32, 17},
    {40, "NVFP4", "nvfp4", 0, 64, 36},
    {41, "Q1_0", "q1_0", 0, 128, 18},
    {42, "Q2_0", "q2_0", 0, 64, 18},
};

}  // namespace

const TensorType* tensor_type(std::uint32_t number) {
  for (const TensorType& type : kTypes)
    if (type.number == number) return &type;
  return nullptr;
}

}  // namespace mekik_gguf
