// Carry-less multiplications fold the bytes, several vectors at a time, into one vector with the
// same remainder. The CPU's CRC instruction, or eight tables, then process that vector and the
// remaining bytes. Short inputs are not folded.
//
//   source  Gopal et al., Fast CRC Computation for Generic Polynomials Using PCLMULQDQ, Intel 2009;
//           tables: Kounavis and Berry, A Systematic Approach to Building High Performance
//           Software-Based CRC Generators, ISCC 2005
#include "kernels/crc32c.h"

#include <array>
#include <cstring>

// Enables only targets with carry-less multiplication: 64-byte vectors, 16-byte vectors, and Arm.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX2 | HWY_AVX3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#define HWY_WANT_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/crc32c.cc"
#include "hwy/foreach_target.h"  // must come first: includes this file again
#include "hwy/highway.h"
#include "kernels/memory-inl.h"
#if HWY_ARCH_X86
#include <nmmintrin.h>
#endif

#ifndef UNISONO_KERNELS_CRC32C_ONCE
#define UNISONO_KERNELS_CRC32C_ONCE
namespace unisono::kernels {
namespace {

// Multiplies by x. Here and below, bit 31 is the coefficient of x^0.
constexpr std::uint32_t times_x(std::uint32_t value) {
  return (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78U : 0);
}

constexpr std::uint64_t power_of_x(std::size_t exponent) {
  std::uint32_t value = 1U << 31;
  for (std::size_t i = 0; i < exponent; ++i) {
    value = times_x(value);
  }
  return value;
}

// Factors that shift the two halves of 16 bytes by `bytes`. A product of reflected factors is one
// bit too low, which the shift corrects.
struct Shift {
  std::uint64_t lower;
  std::uint64_t upper;
};
[[maybe_unused]] constexpr Shift shift_over(std::size_t bytes) {
  return {power_of_x(8 * bytes + 32) << 1, power_of_x(8 * bytes - 32) << 1};
}

// Table n contains the contribution of a byte that n bytes follow.
constexpr std::array<std::array<std::uint32_t, 256>, 8> make_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t sum = i;
    for (std::size_t behind = 0; behind < tables.size(); ++behind) {
      for (int bit = 0; bit < 8; ++bit) {
        sum = times_x(sum);
      }
      tables[behind][i] = sum;
    }
  }
  return tables;
}
constexpr auto kTables = make_tables();

std::uint32_t by_tables(const std::byte* data, std::size_t bytes, std::uint32_t sum) {
  const auto at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(data[i]); };
  for (; bytes >= 8; data += 8, bytes -= 8) {
    sum = kTables[7][(sum ^ at(0)) & 0xff] ^ kTables[6][(sum >> 8 ^ at(1)) & 0xff] ^
          kTables[5][(sum >> 16 ^ at(2)) & 0xff] ^ kTables[4][sum >> 24 ^ at(3)] ^
          kTables[3][at(4)] ^ kTables[2][at(5)] ^ kTables[1][at(6)] ^ kTables[0][at(7)];
  }
  for (; bytes != 0; ++data, --bytes) {
    sum = (sum >> 8) ^ kTables[0][(sum ^ at(0)) & 0xff];
  }
  return sum;
}

}  // namespace
}  // namespace unisono::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline std::uint32_t by_words(const std::byte* data, std::size_t bytes, std::uint32_t sum) {
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX3_DL
  for (; bytes >= 8; data += 8, bytes -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, sizeof(word));
    sum = static_cast<std::uint32_t>(_mm_crc32_u64(sum, word));
  }
#endif
  return by_tables(data, bytes, sum);
}

#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
inline constexpr std::size_t kVector =
    hn::MaxLanes(hn::ScalableTag<std::uint64_t>()) * sizeof(std::uint64_t);
inline constexpr std::size_t kAtOnce = 4 * kVector;

template <class V>
HWY_INLINE V fold(V before, V shift, V next) {
  return hn::Xor(hn::Xor(hn::CLMulLower(before, shift), hn::CLMulUpper(before, shift)), next);
}

std::uint32_t sum_of(const std::byte* data, std::size_t bytes, std::uint32_t sum) {
  if (bytes < 2 * kAtOnce) {
    return by_words(data, bytes, sum);
  }
  constexpr Shift kFar = shift_over(kAtOnce);
  constexpr Shift kNear = shift_over(kVector);
  const hn::ScalableTag<std::uint64_t> d;
  const auto far = hn::OddEven(hn::Set(d, kFar.upper), hn::Set(d, kFar.lower));
  const auto near = hn::OddEven(hn::Set(d, kNear.upper), hn::Set(d, kNear.lower));
  alignas(64) std::array<std::uint64_t, kVector / 8> kept{sum};
  auto a = hn::Xor(load(d, data), hn::Load(d, kept.data()));
  auto b = load(d, data + kVector);
  auto c = load(d, data + 2 * kVector);
  auto e = load(d, data + 3 * kVector);
  std::size_t at = kAtOnce;
  for (; at + kAtOnce <= bytes; at += kAtOnce) {
    a = fold(a, far, load(d, data + at));
    b = fold(b, far, load(d, data + at + kVector));
    c = fold(c, far, load(d, data + at + 2 * kVector));
    e = fold(e, far, load(d, data + at + 3 * kVector));
  }
  a = fold(fold(fold(a, near, b), near, c), near, e);
  for (; at + kVector <= bytes; at += kVector) {
    a = fold(a, near, load(d, data + at));
  }
  hn::Store(a, d, kept.data());
  sum = by_words(reinterpret_cast<const std::byte*>(kept.data()), kVector, 0);
  return by_words(data + at, bytes - at, sum);
}
#else
std::uint32_t sum_of(const std::byte* data, std::size_t bytes, std::uint32_t sum) {
  return by_words(data, bytes, sum);
}
#endif

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::kernels {
namespace {
HWY_EXPORT(sum_of);
}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  return ~HWY_DYNAMIC_DISPATCH(sum_of)(bytes.data(), bytes.size(), ~before);
}

}  // namespace unisono::kernels
#endif
