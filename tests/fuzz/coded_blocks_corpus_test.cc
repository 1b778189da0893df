// Runs the seeds of encoded messages, whole, cut anywhere and with single bytes changed, and random
// floats: the decoded values must be near the originals. The folder is an argument.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>

#include "coded_blocks_property.h"
#include "corpus.h"

namespace unisono {
namespace {

constexpr MoveCode kCodes[] = {MoveCode::i8, MoveCode::bf16};

TEST(CodedBlocksCorpus, Holds) {
  const auto files = fuzz::corpus();
  for (const fuzz::CorpusFile& file : files) {
    SCOPED_TRACE(file.name);
    EXPECT_EQ(fuzz::coded_blocks_property(file.text), "");
  }
  EXPECT_GE(files.size(), 8U);
}

TEST(CodedBlocksCorpus, DamagedMessagesAreNoTrouble) {
  for (const fuzz::CorpusFile& file : fuzz::corpus()) {
    SCOPED_TRACE(file.name);
    fuzz::expect_to_hold_damaged(file, 500, fuzz::coded_blocks_property);
  }
}

constexpr float kEnds[] = {0.0F,
                           -0.0F,
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN(),
                           std::numeric_limits<float>::max(),
                           std::numeric_limits<float>::lowest(),
                           std::numeric_limits<float>::min(),
                           std::numeric_limits<float>::denorm_min()};

enum class Kind : std::uint8_t { any_bits, not_normal, one_magnitude, ends, wide, mixed };

// `exponent`: the exponent of the largest value of one magnitude. Codes change near powers of two.
float draw_number(std::mt19937& random, Kind kind, int exponent) {
  const auto bits = static_cast<std::uint32_t>(random());
  switch (kind) {
    case Kind::any_bits:
      return std::bit_cast<float>(bits);
    case Kind::not_normal:
      return std::bit_cast<float>(bits & 0x807f'ffffU);
    case Kind::one_magnitude: {
      constexpr std::uint32_t kSteps = 1U << 14U;  // of a mantissa, starting at a power of two
      const auto mantissa = 1 + static_cast<float>(bits % kSteps) / 0x1p23F;
      return std::ldexp((bits >> 31U) == 0 ? mantissa : -mantissa,
                        exponent - static_cast<int>((bits >> 20U) % 3));
    }
    case Kind::ends:
      return kEnds[bits % std::size(kEnds)];
    default:
      return std::ldexp(static_cast<float>(bits % 2001) - 1000, static_cast<int>(bits % 60) - 30);
  }
}

// A vector with one kind of values, or with all kinds.
fuzz::Floats draw_numbers(unsigned seed) {
  std::mt19937 random(seed);
  const auto kind = static_cast<Kind>(seed % 6);
  const int exponent = static_cast<int>(random() % 278) - 150;
  fuzz::Floats floats(random() % 130);
  for (float& value : floats) {
    value =
        draw_number(random, kind == Kind::mixed ? static_cast<Kind>(random() % 5) : kind, exponent);
  }
  return floats;
}

TEST(CodedBlocksProperty, WhatIsDecodedIsNearWhatWasEncoded) {
  for (unsigned seed = 0; seed < 12'000; ++seed) {
    const fuzz::Floats floats = draw_numbers(seed);
    for (const MoveCode code : kCodes) {
      ASSERT_EQ(fuzz::rounding_property(code, floats), "") << to_string(code) << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace unisono
