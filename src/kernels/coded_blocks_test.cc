// Compares encoded f32 with their definition on every SIMD target that this CPU can run, and checks
// the table of errors.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/coded_blocks.h"
#include "kernels/coded_rows.h"
#include "kernels/test_support.h"
#include "unisono/types.hpp"

namespace unisono::kernels {
namespace {

using Floats = std::vector<float>;

class CodedBlocks : public ::testing::Test {
 protected:
  void TearDown() override { use_target(0); }
};

constexpr MoveCode kCodes[] = {MoveCode::i8, MoveCode::bf16};
constexpr std::size_t kCounts[] = {0, 1, 2, 31, 32, 33, 63, 64, 65, 1000, 4096, 4099};

Floats draw(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats values(count);
  for (float& value : values) {
    value = normal(random);
  }
  return values;
}

// Returns the values after encode() and decode() at several alignments. Checks that surrounding
// bytes do not change.
Floats through(MoveCode code, const Floats& values) {
  const CodedBlockFunctions functions = find_coded_blocks(code);
  const std::size_t bytes = coded_bytes(code, values.size());
  Buffer coded(bytes, 1);
  Buffer decoded(values.size() * sizeof(float), 4);
  functions.encode(coded.data(), values.data(), values.size());
  functions.decode(decoded.data(), coded.data(), values.size());
  EXPECT_TRUE(coded.guards_intact() && decoded.guards_intact()) << values.size();
  Floats result(values.size());
  if (!result.empty()) {
    std::memcpy(result.data(), decoded.data(), decoded.size());
  }
  return result;
}

// Returns the greatest magnitude of a block, computed one element at a time.
float greatest_of(const Floats& values, std::size_t block) {
  float greatest = 0;
  for (std::size_t i = block; i < std::min(values.size(), block + kCodeBlock); ++i) {
    greatest = std::max(greatest, std::fabs(values[i]));
  }
  return greatest;
}

Floats by_formula(MoveCode code, const Floats& values) {
  Floats result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (code == MoveCode::bf16) {
      result[i] = to_float(to_bf16(values[i]));
      continue;
    }
    const float scale = to_float(to_bf16(greatest_of(values, i / 32 * 32) / 127.0F));
    result[i] = scale == 0 ? 0 : (std::nearbyintf(values[i] * (1.0F / scale)) + 0.0F) * scale;
  }
  return result;
}

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

TEST_F(CodedBlocks, FollowTheirFormulaOnEveryTarget) {
  for (const std::int64_t target : all_targets()) {
    use_target(target);
    for (const MoveCode code : kCodes) {
      for (const std::size_t count : kCounts) {
        const Floats values = draw(count, static_cast<unsigned>(count));
        EXPECT_TRUE(same_bits(through(code, values), by_formula(code, values)))
            << hwy::TargetName(target) << " " << to_string(code) << " " << count;
      }
    }
  }
}

TEST_F(CodedBlocks, WhatWasDecodedIsEncodedWithoutAFurtherRounding) {
  std::mt19937 random(7);
  std::uniform_int_distribution<std::uint32_t> bits;
  for (int round = 0; round < 2000; ++round) {
    Floats values = draw(97, static_cast<unsigned>(round));
    for (float& value : values) {  // finite, of every magnitude that one block can have
      value = std::ldexp(value, static_cast<int>(bits(random) % 12) + round % 240 - 124);
      value = std::isfinite(value) ? value : std::numeric_limits<float>::max();
    }
    for (const MoveCode code : kCodes) {
      const Floats once = through(code, values);
      ASSERT_TRUE(same_bits(through(code, once), once)) << to_string(code) << " " << round;
    }
  }
}

TEST_F(CodedBlocks, EachElementIsOffByAtMostHalfAStep) {
  for (int round = 0; round < 500; ++round) {
    Floats values = draw(100, 900U + static_cast<unsigned>(round));
    for (float& value : values) {
      value = std::ldexp(value, round % 200 - 100);
    }
    const Floats i8 = through(MoveCode::i8, values);
    const Floats bf16 = through(MoveCode::bf16, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double greatest = greatest_of(values, i / 32 * 32);
      ASSERT_LE(std::fabs(i8[i] - values[i]), sum_error(MoveCode::i8).worst / 2 * greatest);
      ASSERT_LE(std::fabs(bf16[i] - values[i]),
                sum_error(MoveCode::bf16).worst / 2 * std::fabs(values[i]));
    }
  }
}

TEST_F(CodedBlocks, SpecialValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const std::int64_t target : all_targets()) {
    use_target(target);
    for (const float special : {kInfinity, -kInfinity, std::nanf("")}) {
      Floats values(70, 1.0F);
      values[40] = special;
      const Floats result = through(MoveCode::i8, values);
      for (std::size_t i = 0; i < 70; ++i) {
        EXPECT_EQ(std::isnan(result[i]), i >= 32 && i < 64) << i;
      }
      const Floats kept = through(MoveCode::bf16, values);
      EXPECT_TRUE(std::isnan(special) ? std::isnan(kept[40]) : kept[40] == special);
    }
    const Floats zeros(40, -0.0F);
    EXPECT_TRUE(same_bits(through(MoveCode::i8, zeros), Floats(40, 0.0F)));
    EXPECT_TRUE(same_bits(through(MoveCode::bf16, zeros), zeros));
    const Floats least(40, 127 * 0x1p-126F);
    EXPECT_TRUE(same_bits(through(MoveCode::i8, least), least));
    const Floats below(40, std::nextafter(least[0], 0.0F));
    EXPECT_NEAR(through(MoveCode::i8, below)[0] / below[0], 1.0, 0.005);
    EXPECT_NEAR(through(MoveCode::i8, least)[0] / least[0], 1.0, 0.005);
    const Floats greatest(40, kMost);
    EXPECT_NEAR(through(MoveCode::i8, greatest)[0] / kMost, 1.0, 0.005);
    EXPECT_NEAR(through(MoveCode::bf16, greatest)[0] / kMost, 1.0, 0.004);
  }
}

// Uses numbers from the least f32 to the greatest, in blocks of every length.
TEST_F(CodedBlocks, EndsOfTheRangeStayWithinTheBound) {
  for (const std::int64_t target : all_targets()) {
    use_target(target);
    for (const MoveCode code : kCodes) {
      for (const std::size_t count : {1U, 2U, 3U, 4U, 5U, 31U, 32U, 33U, 35U, 36U, 70U}) {
        for (const float value : {0x1p-149F, 3 * 0x1p-149F, 1e-44F, 1e-42F, 1e-40F, 1e-38F,
                                  0x1p-126F, 1e-37F, 1.49e-36F, 127 * 0x1p-126F, 1e38F, 3.39e38F,
                                  3.395e38F, 3.4e38F, std::numeric_limits<float>::max()}) {
          Floats values(count, value);
          for (std::size_t i = 0; i < count; i += 2) {
            values[i] = -value * (static_cast<float>(i % 5) / 4);
          }
          const Floats once = through(code, values);
          // In bf16, the last 1 to 3 elements of a message have no room for a scale.
          const std::size_t whole =
              code == MoveCode::bf16 && count % 32 < 4 ? count / 32 * 32 : count;
          for (std::size_t i = 0; i < count; ++i) {
            const double greatest = greatest_of(values, i / 32 * 32);
            const double least = i < whole ? 0x1p-149 : 0x1p-134;
            ASSERT_LE(std::fabs(double{once[i]} - values[i]), 0.004 * greatest + least)
                << to_string(code) << " " << count << " " << value << " " << i;
          }
          ASSERT_TRUE(same_bits(through(code, once), once)) << to_string(code) << " " << value;
        }
      }
    }
  }
}

TEST_F(CodedBlocks, LengthsHaveOneMeaning) {
  for (const MoveCode code : kCodes) {
    for (std::size_t elements = 0; elements < 200; ++elements) {
      EXPECT_EQ(coded_elements(code, coded_bytes(code, elements)), elements);
    }
  }
  EXPECT_EQ(coded_elements(MoveCode::i8, 1), 0U);
  EXPECT_EQ(coded_elements(MoveCode::i8, 2), 0U);
  EXPECT_EQ(coded_elements(MoveCode::i8, 35), 0U);
  EXPECT_EQ(coded_elements(MoveCode::i8, 36), 0U);
  EXPECT_EQ(coded_elements(MoveCode::bf16, 3), 0U);
}

TEST_F(CodedBlocks, AnyBytesCanBeDecoded) {
  std::mt19937 random(3);
  for (unsigned round = 0; round < 1000; ++round) {
    for (const MoveCode code : kCodes) {
      const std::size_t count = random() % 200;
      Buffer coded(coded_bytes(code, count), round % 3);
      for (std::size_t i = 0; i < coded.size(); ++i) {
        coded.data()[i] = static_cast<std::byte>(random());
      }
      Buffer floats(count * sizeof(float), 0);
      find_coded_blocks(code).decode(floats.data(), coded.data(), count);
      ASSERT_TRUE(floats.guards_intact());
    }
  }
}

// Sums normally distributed numbers over `ranks` in two steps, rounding each input and the result.
// Returns the root mean square of the error divided by that of the result.
template <class Round>
double two_shot_error(unsigned ranks, const Round& round) {
  constexpr std::size_t kElements = 1 << 15;
  Floats sum(kElements, 0.0F);
  std::vector<double> exact(kElements, 0.0);
  for (unsigned rank = 0; rank < ranks; ++rank) {
    const Floats input = draw(kElements, 100 + rank);
    const Floats rounded = rank == 0 ? input : round(input);  // the owner's input is not sent
    for (std::size_t i = 0; i < kElements; ++i) {
      sum[i] += rounded[i];
      exact[i] += input[i];
    }
  }
  const Floats result = round(sum);
  double errors = 0;
  double squares = 0;
  for (std::size_t i = 0; i < kElements; ++i) {
    errors += (result[i] - exact[i]) * (result[i] - exact[i]);
    squares += exact[i] * exact[i];
  }
  return std::sqrt(errors / squares);
}

double error_of(MoveCode code, unsigned ranks) {
  return two_shot_error(ranks, [code](const Floats& values) { return through(code, values); });
}

// Rounds to 8-bit float codes, for comparison.
Floats through_f8(const Floats& values) {
  const CodedRowFunctions rows = find_coded_rows(Dtype::f32, Dtype::f8e4m3);
  std::vector<float> coded(kernels::coded_bytes(values.size()) / sizeof(float));
  Floats result(values.size());
  rows.encode(coded.data(), values.data(), values.size());
  rows.decode(result.data(), coded.data(), values.size(), Store::cached);
  return result;
}

TEST_F(CodedBlocks, ErrorsOfTwoShotsOverEightRanks) {
  EXPECT_NEAR(error_of(MoveCode::i8, 8), 0.0074, 0.0002);
  EXPECT_NEAR(error_of(MoveCode::bf16, 8), 0.0023, 0.0001);
  EXPECT_NEAR(two_shot_error(8, through_f8), 0.0353, 0.001);
}

TEST_F(CodedBlocks, ErrorsStayBelowWhatIsSaidOfNormalNumbers) {
  for (const unsigned ranks : {2U, 3U, 8U, 32U, 100U}) {
    for (const MoveCode code : kCodes) {
      const double error = error_of(code, ranks);
      EXPECT_LE(error, sum_error(code).normal) << to_string(code) << " " << ranks;
      EXPECT_GE(error, sum_error(code).normal / 2) << to_string(code) << " " << ranks;
    }
  }
}

}  // namespace
}  // namespace unisono::kernels
