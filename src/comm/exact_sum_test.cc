// ExactSum returns the double nearest to the sum, for any order and any number of ranks.
#include "unisono/exact_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "comm/testing_ranks.h"

namespace unisono {
namespace {

double exact_sum_of(const std::vector<float>& values) {
  ExactSum all;
  all.add(values);
  return all.value();
}

double exact_squares_of(const std::vector<float>& values) {
  ExactSum all;
  all.add_squares(values);
  return all.value();
}

TEST(ExactSum, IsRoundedOnce) {
  EXPECT_EQ(exact_sum_of({}), 0);
  EXPECT_EQ(exact_sum_of({0.0F, -0.0F}), 0);
  EXPECT_EQ(exact_sum_of({1.5F, -2.25F}), -0.75);
  EXPECT_EQ(exact_sum_of({1e30F, 1.0F, -1e30F}), 1);
  EXPECT_EQ(exact_sum_of({0x1p127F, 0x1p-149F, -0x1p127F}), 0x1p-149);
  EXPECT_EQ(exact_sum_of({0x1p52F, 0.5F}), 0x1p52) << "a tie goes to the even mantissa";
  EXPECT_EQ(exact_sum_of({0x1p52F, 0.5F, 0x1p-149F}), 0x1p52 + 1) << "more than a tie";
  EXPECT_EQ(exact_sum_of({-0x1p52F, -0.5F, -0x1p-149F}), -0x1p52 - 1);
  EXPECT_EQ(exact_squares_of({3.0F, -4.0F}), 25);
  EXPECT_EQ(exact_squares_of({0x1p-149F}), 0x1p-298);
  EXPECT_EQ(exact_squares_of({std::numeric_limits<float>::max()}),
            static_cast<double>(std::numeric_limits<float>::max()) *
                static_cast<double>(std::numeric_limits<float>::max()));
  EXPECT_EQ(exact_squares_of(std::vector<float>(100'000, 3.0F)), 900'000);
}

TEST(ExactSum, IsTheSameInAnyOrder) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<float> values(1 + random() % 3000);
    for (float& value : values) {
      value = std::ldexp(static_cast<float>(random() % 16'777'216) - 8'000'000.0F,
                         static_cast<int>(random() % 200) - 140);
    }
    const double sum = exact_sum_of(values);
    const double squares = exact_squares_of(values);
    std::shuffle(values.begin(), values.end(), random);
    EXPECT_EQ(exact_sum_of(values), sum);
    EXPECT_EQ(exact_squares_of(values), squares);
    double near = 0;
    for (const float value : values) {
      near += static_cast<double>(value) * static_cast<double>(value);
    }
    EXPECT_NEAR(squares / near, 1, 1e-12);
    ExactSum parts;
    for (std::size_t i = 0; i < values.size(); i += 100) {
      ExactSum part;
      part.add(std::span(values).subspan(i, std::min<std::size_t>(100, values.size() - i)));
      parts.add(part);
    }
    EXPECT_EQ(parts.value(), sum);
  }
}

TEST(ExactSum, PassesOnWhatIsNoNumber) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(exact_sum_of({1, kInf}), kInf);
  EXPECT_EQ(exact_sum_of({-kInf, 1}), -kInf);
  EXPECT_TRUE(std::isnan(exact_sum_of({kInf, -kInf})));
  EXPECT_TRUE(std::isnan(exact_sum_of({kNan})));
  EXPECT_EQ(exact_squares_of({-kInf, 1}), kInf);
  EXPECT_TRUE(std::isnan(exact_squares_of({kNan, 1})));
}

TEST(ExactSum, IsTheSameOnAnyNumberOfRanks) {
  std::vector<float> values(840);
  std::mt19937_64 random(3);
  for (float& value : values) {
    value = std::ldexp(static_cast<float>(random() % 1000) - 400.0F,
                       static_cast<int>(random() % 100) - 50);
  }
  const double wanted = exact_sum_of(values);
  for (const int ranks : {1, 2, 3, 5}) {
    comm::testing::run_ranks(ranks, [&](Communicator& communicator) {
      ExactSum sum;
      for (auto i = static_cast<std::size_t>(communicator.rank()); i < values.size();
           i += static_cast<std::size_t>(ranks)) {
        sum.add(values[i]);
      }
      sum.all_reduce(communicator);
      EXPECT_EQ(sum.value(), wanted) << ranks << " ranks";
    });
  }
}

}  // namespace
}  // namespace unisono
