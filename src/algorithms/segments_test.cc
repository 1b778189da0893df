#include "algorithms/segments.h"

#include <gtest/gtest.h>

#include <cmath>

namespace unisono {
namespace {

double time(int fill, int segments, double bytes, double alpha, double beta) {
  return (fill + segments) * (alpha + bytes / segments * beta);
}

TEST(OptimalSegments, AreNoWorseThanAnyOtherNumber) {
  for (const int fill : {0, 1, 2, 6, 30}) {
    for (const double bytes : {1.0, 7.0, 100.0, 1e5, 1e8}) {
      for (const double alpha : {1e-6, 5e-6, 1e-3}) {
        const double beta = 1e-10;
        const int best = optimal_segments(fill, bytes, alpha, beta);
        ASSERT_GE(best, 1);
        ASSERT_LE(best, std::max(1.0, bytes));
        for (int segments = 1; segments <= std::min(bytes, 5000.0); ++segments) {
          ASSERT_LE(time(fill, best, bytes, alpha, beta),
                    time(fill, segments, bytes, alpha, beta) * (1 + 1e-12))
              << fill << " " << bytes << " " << alpha << ": " << best << " or " << segments;
        }
      }
    }
  }
}

TEST(OptimalSegments, AreOneWhereNothingIsGained) {
  EXPECT_EQ(optimal_segments(0, 1e9, 1e-6, 1e-10), 1);  // two ranks
  EXPECT_EQ(optimal_segments(6, 0, 1e-6, 1e-10), 1);    // no bytes
  EXPECT_EQ(optimal_segments(6, 1e6, 1e-6, 0), 1);      // bytes cost nothing
  EXPECT_EQ(optimal_segments(6, 100, 1.0, 1e-10), 1);   // messages cost much
  EXPECT_EQ(optimal_segments(6, 100, 0, 1e-10), 100);   // messages cost nothing
  EXPECT_EQ(optimal_segments(6, 1e18, 0, 1e-10), 1 << 20);
}

TEST(OptimalSegments, OfAChainFollowFromItsSteps) {
  const Algorithm& chain = *find_algorithm(Collective::broadcast, "chain");
  for (const int ranks : {1, 2, 3, 8, 64, 1000}) {
    const int best = optimal_segments(chain, {.ranks = ranks}, 1e8, 5e-6, 1e-10);
    EXPECT_EQ(best, optimal_segments(std::max(0, ranks - 2), 1e8, 5e-6, 1e-10)) << ranks;
    EXPECT_EQ(best, ranks <= 2 ? 1 : std::lround(std::sqrt((ranks - 2) * 1e8 * 1e-10 / 5e-6)));
  }
}

}  // namespace
}  // namespace unisono
