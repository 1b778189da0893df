// Compares blocks that are computed while others are in transit with the plain sequence.
#include "unisono/parallel/overlap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <type_traits>
#include <vector>

#include "parallel/core_use.h"
#include "unisono/error.hpp"

namespace unisono::parallel {
namespace {

constexpr std::size_t kWidth = 3;

float summand(std::size_t element, int rank) {
  return static_cast<float>(element % 13) * static_cast<float>(rank + 1);
}

class Overlap : public ::testing::TestWithParam<std::tuple<int, std::size_t>> {};
INSTANTIATE_TEST_SUITE_P(Of, Overlap,
                         ::testing::Combine(::testing::Values(1, 2, 3, 5),
                                            ::testing::Values(std::size_t{0}, std::size_t{1},
                                                              std::size_t{7}, std::size_t{1000},
                                                              std::size_t{300'000})));

TEST_P(Overlap, GathersEveryBlockBeforeItIsComputed) {
  const int ranks = std::get<0>(GetParam());
  const std::size_t rows = std::get<1>(GetParam());
  run_threads(ranks, [rows](Communicator& comm) {
    const Range mine = shard_range(rows, comm.size(), comm.rank());
    std::vector<float> shard(mine.count * kWidth);
    for (std::size_t i = 0; i < shard.size(); ++i) {
      shard[i] = static_cast<float>(mine.first * kWidth + i + 1);
    }
    std::vector<float> whole(rows * kWidth);
    std::vector<Range> seen;
    const auto told = all_gather_then(comm, shard, whole, kWidth, [&](Range block) {
      seen.push_back(block);
      for (std::size_t i = block.first * kWidth; i < (block.first + block.count) * kWidth; ++i) {
        ASSERT_EQ(whole[i], static_cast<float>(i + 1));
      }
    });
    ASSERT_EQ(static_cast<int>(seen.size()), comm.size());
    ASSERT_EQ(seen.front(), mine);
    std::size_t all = 0;
    for (const Range& block : seen) {
      all += block.count;
    }
    ASSERT_EQ(all, rows);
    ASSERT_GE(told.exposed_us, 0);
  });
}

TEST_P(Overlap, ScattersTheSums) {
  const int ranks = std::get<0>(GetParam());
  const std::size_t rows = std::get<1>(GetParam());
  run_threads(ranks, [rows](Communicator& comm) {
    const int n = comm.size();
    const Range mine = shard_range(rows, n, comm.rank());
    const auto write = [&](Range block, std::span<float> out) {
      for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = summand(block.first * kWidth + i, comm.rank());
      }
    };
    std::vector<float> shard(mine.count * kWidth, 5.0F);
    then_reduce_scatter(comm, rows, shard, kWidth, write);
    std::vector<float> whole(rows * kWidth);
    then_all_reduce(comm, whole, kWidth, 4, write);
    const auto sum_at = [&](std::size_t i) {
      return summand(i, 0) * static_cast<float>(n * (n + 1) / 2);
    };
    for (std::size_t i = 0; i < shard.size(); ++i) {
      ASSERT_EQ(shard[i], sum_at(mine.first * kWidth + i));
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
      ASSERT_EQ(whole[i], sum_at(i));
    }
  });
}

template <typename Element>
class OverlapOf : public ::testing::Test {};
using Elements = ::testing::Types<double, bf16, f16, std::int32_t>;
TYPED_TEST_SUITE(OverlapOf, Elements);

// Uses small integers, whose sums are exact in every type.
TYPED_TEST(OverlapOf, AnyTypeIsAsThePlainCollectives) {
  constexpr std::size_t kRows = 7;
  run_threads(3, [](Communicator& comm) {
    const auto number = [](std::size_t i) {
      if constexpr (std::is_same_v<TypeParam, bf16>) {
        return to_bf16(static_cast<float>(i % 8));
      } else if constexpr (std::is_same_v<TypeParam, f16>) {
        return to_f16(static_cast<float>(i % 8));
      } else {
        return static_cast<TypeParam>(i % 8);
      }
    };
    const Range mine = shard_range(kRows, comm.size(), comm.rank());
    std::vector<TypeParam> summands(kRows * kWidth);
    for (std::size_t i = 0; i < summands.size(); ++i) {
      summands[i] = number(i * static_cast<std::size_t>(comm.rank() + 1));
    }
    std::vector<TypeParam> sums = summands;
    comm.all_reduce(sums, sum);
    const auto same = [](std::span<const TypeParam> a, std::span<const TypeParam> b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
    };
    const std::span<const TypeParam> here =
        std::span(sums).subspan(mine.first * kWidth, mine.count * kWidth);
    const auto write = [&](Range rows, std::span<TypeParam> out) {
      std::copy_n(summands.begin() + static_cast<std::ptrdiff_t>(rows.first * kWidth), out.size(),
                  out.begin());
    };
    std::vector<TypeParam> shard(here.size());
    then_reduce_scatter(comm, kRows, shard, kWidth, write);
    EXPECT_TRUE(same(shard, here));
    std::vector<TypeParam> whole(sums.size());
    all_gather_then(comm, shard, whole, kWidth, [](Range) {});
    EXPECT_TRUE(same(whole, sums));
    then_all_reduce(comm, whole, kWidth, 2, write);
    EXPECT_TRUE(same(whole, sums));
  });
}

// Ranks that decide differently still work together.
TEST(OverlapOfCores, SomeMoveBehindTheComputingAndSomeBeforeIt) {
  constexpr std::size_t kRows = 3001;
  run_threads(3, [](Communicator& comm) {
    const Range mine = shard_range(kRows, comm.size(), comm.rank());
    for (int turn = 0; turn < 12; ++turn) {
      const auto value = static_cast<float>(turn + 1);
      std::vector<float> shard(mine.count * kWidth, value);
      std::vector<float> whole(kRows * kWidth);
      all_gather_then(comm, shard, whole, kWidth, [&](Range rows) {
        ASSERT_EQ(whole[rows.first * kWidth], value);
        ASSERT_EQ(whole[(rows.first + rows.count) * kWidth - 1], value);
      });
      const auto write = [&](Range, std::span<float> out) {
        std::fill(out.begin(), out.end(), value);
      };
      CoreUse::of_this_thread().note((turn + comm.rank()) % 2, 1);
      then_reduce_scatter(comm, kRows, shard, kWidth, write);
      ASSERT_EQ(shard.back(), 3 * value);
      CoreUse::of_this_thread().note((turn + comm.rank() + 1) % 2, 1);
      then_all_reduce(comm, whole, kWidth, 4, write);
      ASSERT_EQ(whole.back(), 3 * value);
      CoreUse::of_this_thread().note((turn + comm.rank()) % 3 == 0 ? 1 : 0, 1);
    }
  });
}

TEST(OverlapOfCores, AThreadKnowsWhetherItComputesOrWaits) {
  CoreUse use;
  EXPECT_FALSE(use.computes());
  use.note(0.0021, 0.004);
  EXPECT_TRUE(use.computes());
  use.note(0, 1e-6);  // too short to measure
  EXPECT_TRUE(use.computes());
  use.note(0.0019, 0.004);
  EXPECT_FALSE(use.computes());
  use.observe([] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
  EXPECT_FALSE(use.computes());
}

TEST(OverlapErrors, SayWhatDoesNotFit) {
  run_threads(1, [](Communicator& comm) {
    std::vector<float> whole(7);
    EXPECT_THROW(all_gather_then(comm, whole, whole, 3, [](Range) {}), Error);
    EXPECT_THROW(then_reduce_scatter(comm, 3, whole, 3, [](Range, std::span<float>) {}), Error);
    EXPECT_THROW(then_all_reduce(comm, whole, 7, 0, [](Range, std::span<float>) {}), Error);
  });
}

// Rank 0 has one row less, so that its block is shorter than rank 1 expects.
TEST(OverlapErrors, ABlockThatIsTooShortIsAMismatch) {
  for (const int computed : {0, 1}) {
    run_threads(2, [computed](Communicator& comm) {
      CoreUse::of_this_thread().note(computed, 1);
      const std::size_t rows = comm.rank() == 0 ? 3 : 4;
      const std::vector<float> shard(shard_range(rows, 2, comm.rank()).count * kWidth);
      std::vector<float> whole(rows * kWidth);
      ErrorCode told{};
      try {
        all_gather_then(comm, shard, whole, kWidth, [](Range) {});
        comm.barrier();
      } catch (const Error& error) {
        told = error.code();
      }
      EXPECT_EQ(told, ErrorCode::mismatch) << "rank " << comm.rank();
    });
  }
}

}  // namespace
}  // namespace unisono::parallel
