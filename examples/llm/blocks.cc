// Formulas from the GGML library's specification of GGUF block formats.
#include "blocks.h"

#include <cstring>
#include <unisono/types.hpp>

namespace llm {
namespace {

template <typename T>
T load(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

float half(const std::uint8_t* at) {
  return unisono::to_float(load<unisono::f16>(at));
}

void f32(const std::uint8_t* in, float* out) {
  *out = load<float>(in);
}
void f16(const std::uint8_t* in, float* out) {
  *out = half(in);
}
void bf16(const std::uint8_t* in, float* out) {
  *out = unisono::to_float(load<unisono::bf16>(in));
}

constexpr int kSmall = 32;  // elements of a small block; the first half is in the low nibbles

// Computes d * (nibble + 16 * fifth bit - offset) + least.
void nibbles(const std::uint8_t* in, std::uint32_t fifth, float d, int offset, float least,
             float* out) {
  for (int i = 0; i < kSmall / 2; ++i) {
    const int low = (in[i] & 15) + static_cast<int>((fifth >> i & 1U) * 16);
    const int high = (in[i] >> 4) + static_cast<int>((fifth >> (i + kSmall / 2) & 1U) * 16);
    out[i] = d * static_cast<float>(low - offset) + least;
    out[i + kSmall / 2] = d * static_cast<float>(high - offset) + least;
  }
}

void q4_0(const std::uint8_t* in, float* out) {
  nibbles(in + 2, 0, half(in), 8, 0, out);
}
void q4_1(const std::uint8_t* in, float* out) {
  nibbles(in + 4, 0, half(in), 0, half(in + 2), out);
}
void q5_0(const std::uint8_t* in, float* out) {
  nibbles(in + 6, load<std::uint32_t>(in + 2), half(in), 16, 0, out);
}
void q5_1(const std::uint8_t* in, float* out) {
  nibbles(in + 8, load<std::uint32_t>(in + 4), half(in), 0, half(in + 2), out);
}
void q8_0(const std::uint8_t* in, float* out) {
  const float d = half(in);
  for (int i = 0; i < kSmall; ++i) {
    out[i] = d * static_cast<float>(static_cast<std::int8_t>(in[2 + i]));
  }
}

struct ScaleMin {
  int scale;
  int least;
};
// Reads pair `j` of eight pairs of 6-bit numbers, packed into 12 bytes.
ScaleMin scale_min(const std::uint8_t* s, int j) {
  if (j < 4) {
    return {.scale = s[j] & 63, .least = s[j + 4] & 63};
  }
  return {.scale = (s[j + 4] & 15) | (s[j - 4] >> 6 << 4),
          .least = (s[j + 4] >> 4) | (s[j] >> 6 << 4)};
}

// Unpacks a block of eight sub-blocks. `fifth`: 32 bytes with one bit per sub-block, or nullptr.
void k_blocks(const std::uint8_t* in, const std::uint8_t* fifth, const std::uint8_t* low,
              float* out) {
  const float d = half(in);
  const float dmin = half(in + 2);
  for (int j = 0; j < 8; ++j) {
    const ScaleMin s = scale_min(in + 4, j);
    for (int i = 0; i < kSmall; ++i) {
      const std::uint8_t byte = low[j / 2 * kSmall + i];
      const int q =
          (j % 2 == 0 ? byte & 15 : byte >> 4) + (fifth == nullptr ? 0 : (fifth[i] >> j & 1) * 16);
      out[j * kSmall + i] = d * static_cast<float>(s.scale) * static_cast<float>(q) -
                            dmin * static_cast<float>(s.least);
    }
  }
}
void q4_k(const std::uint8_t* in, float* out) {
  k_blocks(in, nullptr, in + 16, out);
}
void q5_k(const std::uint8_t* in, float* out) {
  k_blocks(in, in + 16, in + 48, out);
}

void q6_k(const std::uint8_t* in, float* out) {
  const float d = half(in + 208);
  for (int part = 0; part < 2; ++part) {
    const std::uint8_t* low = in + part * 64;
    const std::uint8_t* high = in + 128 + part * 32;
    const std::uint8_t* scales = in + 192 + part * 8;
    for (int quarter = 0; quarter < 4; ++quarter) {
      for (int i = 0; i < kSmall; ++i) {
        const std::uint8_t byte = low[i + quarter % 2 * kSmall];
        const int nibble = quarter < 2 ? byte & 15 : byte >> 4;
        const int q = (nibble | (high[i] >> (2 * quarter) & 3) << 4) - 32;
        const auto scale = static_cast<std::int8_t>(scales[quarter * 2 + i / 16]);
        out[part * 128 + quarter * kSmall + i] =
            d * static_cast<float>(scale) * static_cast<float>(q);
      }
    }
  }
}

constexpr BlockFormat kFormats[] = {
    {0, "F32", 1, 4, f32},        {1, "F16", 1, 2, f16},        {2, "Q4_0", 32, 18, q4_0},
    {3, "Q4_1", 32, 20, q4_1},    {6, "Q5_0", 32, 22, q5_0},    {7, "Q5_1", 32, 24, q5_1},
    {8, "Q8_0", 32, 34, q8_0},    {12, "Q4_K", 256, 144, q4_k}, {13, "Q5_K", 256, 176, q5_k},
    {14, "Q6_K", 256, 210, q6_k}, {30, "BF16", 1, 2, bf16}};

}  // namespace

const BlockFormat* block_format(std::uint32_t type) {
  for (const BlockFormat& format : kFormats) {
    if (format.type == type) {
      return &format;
    }
  }
  return nullptr;
}

}  // namespace llm
