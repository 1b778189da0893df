#include "base/checksum.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#define UNISONO_CRC32C_INSTRUCTION __attribute__((target("sse4.2")))
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define UNISONO_CRC32C_INSTRUCTION
#endif

namespace unisono {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;
constexpr std::size_t kParts = 3;
using Sums = std::array<std::uint32_t, kParts>;

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t sum = i;
    for (int bit = 0; bit < 8; ++bit) {
      sum = (sum >> 1) ^ ((sum & 1) != 0 ? kPolynomial : 0);
    }
    table[i] = sum;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

std::uint32_t by_table(const std::byte* data, std::size_t bytes, std::uint32_t sum) noexcept {
  for (std::size_t i = 0; i < bytes; ++i) {
    sum = (sum >> 8) ^ kTable[(sum ^ std::to_integer<std::uint32_t>(data[i])) & 0xff];
  }
  return sum;
}

#ifdef UNISONO_CRC32C_INSTRUCTION
#if defined(__x86_64__)
UNISONO_CRC32C_INSTRUCTION std::uint32_t of_word(std::uint32_t sum, std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>(_mm_crc32_u64(sum, word));
}
bool has_instruction() noexcept {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}
#else
std::uint32_t of_word(std::uint32_t sum, std::uint64_t word) noexcept {
  return __crc32cd(sum, word);
}
bool has_instruction() noexcept {
  return true;
}
#endif

std::uint64_t word_at(const std::byte* data) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, data, sizeof(word));
  return word;
}

UNISONO_CRC32C_INSTRUCTION std::uint32_t by_instruction(const std::byte* data, std::size_t bytes,
                                                        std::uint32_t sum) noexcept {
  std::size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    sum = of_word(sum, word_at(data + at));
  }
  return by_table(data + at, bytes - at, sum);
}

// `bytes` of each part, a multiple of 8, one part behind the other.
UNISONO_CRC32C_INSTRUCTION Sums parts_by_instruction(const std::byte* data,
                                                     std::size_t bytes) noexcept {
  std::uint32_t a = ~0U;
  std::uint32_t b = ~0U;
  std::uint32_t c = ~0U;
  for (std::size_t at = 0; at < bytes; at += 8) {
    a = of_word(a, word_at(data + at));
    b = of_word(b, word_at(data + bytes + at));
    c = of_word(c, word_at(data + 2 * bytes + at));
  }
  return {a, b, c};
}
#else
bool has_instruction() noexcept {
  return false;
}
std::uint32_t by_instruction(const std::byte* data, std::size_t bytes, std::uint32_t sum) noexcept {
  return by_table(data, bytes, sum);
}
Sums parts_by_instruction(const std::byte*, std::size_t) noexcept {
  return {};
}
#endif

std::uint32_t run(const std::byte* data, std::size_t bytes, std::uint32_t sum) noexcept {
  return has_instruction() && std::endian::native == std::endian::little
             ? by_instruction(data, bytes, sum)
             : by_table(data, bytes, sum);
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  return ~run(bytes.data(), bytes.size(), ~before);
}

std::uint32_t checksum(std::span<const std::byte> bytes) noexcept {
  const std::byte* data = bytes.data();
  const std::size_t part = bytes.size() / kParts / 8 * 8;
  Sums sums{~0U, ~0U, ~0U};
  if (has_instruction() && std::endian::native == std::endian::little) {
    sums = parts_by_instruction(data, part);
  } else {
    for (std::size_t i = 0; i < kParts; ++i) {
      sums[i] = by_table(data + i * part, part, ~0U);
    }
  }
  sums[kParts - 1] = run(data + kParts * part, bytes.size() - kParts * part, sums[kParts - 1]);
  std::array<std::byte, 4 * kParts> all{};
  for (std::size_t i = 0; i < all.size(); ++i) {  // little endian
    all[i] = static_cast<std::byte>(sums[i / 4] >> (8 * (i % 4)));
  }
  return crc32c(all);
}

}  // namespace unisono
