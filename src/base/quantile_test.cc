#include "base/quantile.h"

#include <gtest/gtest.h>

namespace unisono {
namespace {

TEST(Quantile, OfNothingIsZero) {
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(median({}), 0);
}

TEST(Quantile, OfOneValueIsThatValue) {
  for (const double part : {0.0, 0.5, 0.99, 1.0}) {
    EXPECT_EQ(quantile({5}, part), 5) << part;
  }
}

TEST(Quantile, LiesBetweenTheNearestTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(quantile({4, 1, 2, 3}, 0), 1);
  EXPECT_EQ(quantile({4, 1, 2, 3}, 1), 4);
  EXPECT_DOUBLE_EQ(quantile({10, 20, 30, 40, 50}, 0.9), 46);
}

}  // namespace
}  // namespace unisono
