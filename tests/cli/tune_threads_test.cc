// The numbers of threads that `unisono tune` measures.
#include <gtest/gtest.h>

#include "tune/measure_threads.h"

namespace unisono::cli {
namespace {

using Counts = std::vector<int>;

TEST(ThreadCounts, GoUpToTheCpusOfARank) {
  EXPECT_EQ(thread_counts({}, 2, 16), (Counts{1, 2, 4, 8}));
  EXPECT_EQ(thread_counts({}, 2, 7), (Counts{1, 2, 3}));
  EXPECT_EQ(thread_counts({}, 4, 8), (Counts{1, 2}));
  EXPECT_EQ(thread_counts({}, 2, 1000), (Counts{1, 2, 4, 8, 16, 32, 64, 128, 256}));
}

TEST(ThreadCounts, AreNoneWhereThereIsNothingToCompare) {
  EXPECT_EQ(thread_counts({}, 1, 16), Counts{});
  EXPECT_EQ(thread_counts({}, 2, 3), Counts{});
  EXPECT_EQ(thread_counts({}, 8, 2), Counts{});
}

TEST(ThreadCounts, AreThoseThatWereNamed) {
  EXPECT_EQ(thread_counts({1, 3}, 2, 2), (Counts{1, 3}));
  EXPECT_EQ(thread_counts({1, 3}, 1, 2), Counts{});
}

}  // namespace
}  // namespace unisono::cli
