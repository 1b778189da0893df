// Compares tiny blocks with their definition, for every possible greatest element.
#include "kernels/tiny_blocks.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>

namespace unisono::kernels {
namespace {

using Block = std::array<float, kCodeBlock>;

Block through(const Block& block, std::uint32_t greatest) {
  std::array<std::byte, sizeof(Block)> bytes = {};
  std::memcpy(bytes.data(), block.data(), sizeof block);
  const TinyBlock coded = encode_tiny(bytes.data(), greatest);
  EXPECT_TRUE(is_tiny_scale(coded.scale));
  decode_tiny(bytes.data(), coded);
  Block result;
  std::memcpy(result.data(), bytes.data(), sizeof result);
  return result;
}

// Checks a block with this greatest element and random others of both signs, then encodes the
// decoded block again.
void expect_bound(std::uint32_t bits, std::mt19937& random) {
  const auto greatest = std::bit_cast<float>(bits);
  Block block = {greatest};
  for (std::size_t i = 1; i < block.size(); ++i) {
    const auto share = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000;
    block[i] = greatest * share;
  }
  const Block once = through(block, bits);
  for (std::size_t i = 0; i < block.size(); ++i) {
    ASSERT_LE(std::fabs(double{once[i]} - block[i]), 0.004 * greatest + 0x1p-149)
        << bits << " " << i;
  }
  const auto again = std::bit_cast<std::uint32_t>(std::fabs(once[0]));
  if (again < kTinyEnd) {
    ASSERT_EQ(through(once, again), once) << bits;
  } else {
    ASSERT_EQ(again, kTinyEnd) << bits;
  }
}

TEST(TinyBlocks, KeepTheirBoundAndTheirScale) {
  std::mt19937 random(1);
  for (std::uint32_t units = 1; units < 40'000; ++units) {
    expect_bound(units, random);
  }
  for (int i = 0; i < 100'000; ++i) {
    expect_bound(1 + static_cast<std::uint32_t>(random()) % (kTinyEnd - 1), random);
  }
  for (std::uint32_t i = 1; i < 2'000; ++i) {
    expect_bound(kTinyEnd - i, random);
    expect_bound(0x800000U - i, random);
    expect_bound(0x800000U + i, random);
  }
}

// Numbers below 2^-126 stay below it, so bf16 encodes them as a tiny block again.
TEST(TinyBlocks, StayBelowTheLeastNormalNumber) {
  for (std::uint32_t i = 1; i < 100'000; ++i) {
    const Block once = through({std::bit_cast<float>(0x800000U - i)}, 0x800000U - i);
    ASSERT_LT(once[0], 0x1p-126F) << i;
  }
}

TEST(TinyBlocks, AnyBytesAreSomeNumbers) {
  for (std::uint32_t scale = 0; scale < 0x10000U; scale += 7) {
    TinyBlock block{.scale = static_cast<std::uint16_t>(scale)};
    for (std::size_t i = 0; i < kCodeBlock; ++i) {
      block.codes[i] = static_cast<std::int8_t>(static_cast<int>(i * 8) - 128);
    }
    Block numbers = {};
    std::array<std::byte, sizeof(Block)> bytes = {};
    decode_tiny(bytes.data(), block);
    std::memcpy(numbers.data(), bytes.data(), sizeof numbers);
    for (const float number : numbers) {
      ASSERT_TRUE(std::isfinite(number)) << scale;
    }
  }
}

}  // namespace
}  // namespace unisono::kernels
