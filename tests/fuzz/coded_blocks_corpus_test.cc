// Runs the seeds of encoded messages, whole, cut anywhere and with single bytes changed, and floats
// that are drawn: what comes of them is near them. The folder is an argument.
#include <gtest/gtest.h>

#include <bit>
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

// A number of any kind: any bits, among which infinities and NaN are rare; zeros and those that are
// not normal, one of a few magnitudes apart, or the ends of what f32 can say.
float draw_number(std::mt19937& random, int kind) {
  const auto bits = static_cast<std::uint32_t>(random());
  switch (kind) {
    case 0:
      return std::bit_cast<float>(bits);
    case 1:
      return std::bit_cast<float>(bits & 0x807f'ffffU);
    case 2:
      return std::ldexp(static_cast<float>(bits % 2001) - 1000, static_cast<int>(bits % 9) - 120);
    case 3: {
      constexpr float kEnds[] = {0.0F,
                                 -0.0F,
                                 std::numeric_limits<float>::infinity(),
                                 -std::numeric_limits<float>::infinity(),
                                 std::numeric_limits<float>::quiet_NaN(),
                                 std::numeric_limits<float>::max(),
                                 std::numeric_limits<float>::lowest(),
                                 std::numeric_limits<float>::min(),
                                 std::numeric_limits<float>::denorm_min()};
      return kEnds[bits % std::size(kEnds)];
    }
    default:
      return std::ldexp(static_cast<float>(bits % 2001) - 1000, static_cast<int>(bits % 60) - 30);
  }
}

// A whole vector of one kind, or of all.
TEST(CodedBlocksProperty, WhatIsDecodedIsNearWhatWasEncoded) {
  for (unsigned seed = 0; seed < 6000; ++seed) {
    std::mt19937 random(seed);
    fuzz::Floats floats(random() % 130);
    for (float& value : floats) {
      value = draw_number(random, static_cast<int>(seed % 6 == 5 ? random() % 5 : seed % 6));
    }
    for (const MoveCode code : kCodes) {
      ASSERT_EQ(fuzz::rounding_property(code, floats), "") << to_string(code) << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace unisono
