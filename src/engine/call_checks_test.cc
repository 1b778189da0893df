#include "engine/call_checks.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "unisono/error.hpp"

namespace unisono::engine {
namespace {

std::string told(const Call& call, int ranks) {
  try {
    check_shape(call, {.rank = 0, .ranks = ranks}, 1);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return std::string(error.summary());
  }
  return {};
}

TEST(CallChecks, AListOfAWrongLengthIsNamed) {
  const std::array<std::size_t, 3> three = {};
  const std::array<std::size_t, 2> two = {};
  Call call{.collective = Collective::all_to_all_v, .counts = three, .recv_counts = two};
  EXPECT_EQ(told(call, 3), "all_to_all_v on rank 0: recv_counts has 2 entries for 3 ranks");
  call.recv_counts = three;
  EXPECT_EQ(told(call, 3), "");
  call.displs = two;
  EXPECT_EQ(told(call, 3), "all_to_all_v on rank 0: displs has 2 entries for 3 ranks");
}

// The counts add up to 2^64 bytes, which wraps to 0.
TEST(CallChecks, CountsThatWrapTogetherAreRefused) {
  const std::vector<std::size_t> counts(256, std::size_t{1} << 56);
  EXPECT_EQ(told({.collective = Collective::all_gather_v, .counts = counts}, 256),
            "all_gather_v on rank 0: more elements than memory can hold");
}

TEST(CallChecks, APartIsInPlaceWhereTheWholeHasIt) {
  std::array<float, 8> data = {};
  const std::array<std::size_t, 3> counts = {1, 2, 3};
  const std::array<std::size_t, 3> displs = {5, 3, 0};
  Call call{.collective = Collective::all_gather_v,
            .in = &data[1],
            .out = data.data(),
            .dtype = Dtype::f32,
            .counts = counts};
  EXPECT_TRUE(is_in_place(call, 1));
  EXPECT_FALSE(is_in_place(call, 2));
  call.displs = displs;
  EXPECT_FALSE(is_in_place(call, 1));
  call.in = &data[3];
  EXPECT_TRUE(is_in_place(call, 1));
}

}  // namespace
}  // namespace unisono::engine
