// Tests calls that several threads of each rank make together, against sums computed here.
#include "unisono/team.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/slices.h"

namespace unisono {
namespace {

float value(int rank, std::size_t i) {
  return 0.1F * static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 13) % 101) + 1e-3F;
}

// Sums in rank order, as the team guarantees.
float sum_at(int ranks, std::size_t i) {
  float total = value(0, i);
  for (int rank = 1; rank < ranks; ++rank) {
    total += value(rank, i);
  }
  return total;
}

void with_team(
    int ranks, int threads, const TeamOptions& options,
    const std::function<void(Team&, int rank,
                             const std::function<void(const std::function<void(int)>&)>&)>& body) {
  run_threads(ranks, [&](Communicator& comm) {
    Team team(comm, threads, options);
    body(team, comm.rank(), [&](const std::function<void(int)>& each) {
      std::vector<std::thread> all;
      for (int t = 0; t < threads; ++t) {
        all.emplace_back([&each, t] { each(t); });
      }
      for (std::thread& thread : all) {
        thread.join();
      }
    });
  });
}

class TeamCalls : public ::testing::TestWithParam<std::tuple<int, int, std::size_t>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  int threads() const { return std::get<1>(GetParam()); }
  std::size_t count() const { return std::get<2>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Of, TeamCalls,
                         ::testing::Combine(::testing::Values(1, 2, 3),
                                            ::testing::Values(1, 2, 3, 9),
                                            ::testing::Values(std::size_t{0}, std::size_t{1},
                                                              std::size_t{1000},
                                                              std::size_t{100'003})));

TEST_P(TeamCalls, SumInRankOrder) {
  const int n = ranks();
  with_team(n, threads(), {}, [&](Team& team, int rank, const auto& in_each) {
    std::vector<float> data(count());
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = value(rank, i);
    }
    const auto size = static_cast<std::size_t>(n);
    std::vector<float> parts(count() * size);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i] = value(rank, i);
    }
    std::vector<float> mine(count());
    std::vector<float> in_place = parts;
    const std::span<float> own =
        std::span(in_place).subspan(static_cast<std::size_t>(rank) * count(), count());
    std::vector<float> scaled(count());
    in_each([&](int t) {
      team.all_reduce(t, data, sum);
      team.reduce_scatter(t, parts, mine, sum);
      team.reduce_scatter(t, in_place, own, sum);
      team.reduce_scatter(t, parts, scaled, Reduction::premul_sum(2.0));
    });
    for (std::size_t i = 0; i < count(); ++i) {
      ASSERT_EQ(data[i], sum_at(n, i)) << i;
      ASSERT_EQ(mine[i], sum_at(n, static_cast<std::size_t>(rank) * count() + i)) << i;
      ASSERT_EQ(own[i], mine[i]) << i;
      ASSERT_EQ(scaled[i], 2 * mine[i]) << i;
    }
  });
}

TEST_P(TeamCalls, AveragesOfBytesDoNotWrap) {
  const int n = ranks();
  with_team(n, threads(), {}, [&](Team& team, int rank, const auto& in_each) {
    using Bytes = std::vector<std::int8_t>;
    Bytes data(count(), static_cast<std::int8_t>(100 + rank));
    Bytes parts(count() * static_cast<std::size_t>(n), static_cast<std::int8_t>(-100 - rank));
    Bytes mine(count());
    const std::span<std::int8_t> own =
        std::span(parts).subspan(static_cast<std::size_t>(rank) * count(), count());
    in_each([&](int t) {
      team.all_reduce(t, data, avg);
      team.reduce_scatter(t, parts, mine, avg);
      team.reduce_scatter(t, parts, own, avg);
    });
    const int mean = 100 + (n - 1) / 2;
    EXPECT_EQ(data, Bytes(count(), static_cast<std::int8_t>(mean)));
    EXPECT_EQ(mine, Bytes(count(), static_cast<std::int8_t>(-mean)));
    EXPECT_EQ(Bytes(own.begin(), own.end()), mine);
  });
}

TEST_P(TeamCalls, MoveEveryElement) {
  const int n = ranks();
  with_team(n, threads(), {}, [&](Team& team, int rank, const auto& in_each) {
    const auto size = static_cast<std::size_t>(n);
    std::vector<float> data(count());
    std::vector<float> pairs(count() * size);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      pairs[i] = value(rank, i);
    }
    for (std::size_t i = 0; i < count(); ++i) {
      data[i] = value(rank, i);
    }
    std::vector<float> all(count() * size);
    std::vector<float> turned(count() * size);
    std::vector<float> in_place = pairs;
    std::vector<float> rooted = data;
    in_each([&](int t) {
      team.all_gather(t, data, all);
      team.all_to_all(t, pairs, turned);
      team.all_to_all(t, in_place, in_place);
      team.broadcast(t, rooted, n - 1);
      team.barrier(t);
    });
    for (int from = 0; from < n; ++from) {
      for (std::size_t i = 0; i < count(); ++i) {
        const std::size_t at = static_cast<std::size_t>(from) * count() + i;
        ASSERT_EQ(all[at], value(from, i));
        ASSERT_EQ(turned[at], value(from, static_cast<std::size_t>(rank) * count() + i));
        ASSERT_EQ(in_place[at], turned[at]);
        ASSERT_EQ(rooted[i], value(n - 1, i));
      }
    }
  });
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TeamMistakes, AThreadThatNeverComesIsNamed) {
  with_team(2, 3, {.timeout_ms = 200}, [](Team& team, int rank, const auto& in_each) {
    std::vector<float> data(10);
    std::mutex mutex;
    std::vector<std::string> said;
    in_each([&](int t) {
      if (t == 1 && rank == 0) {
        return;
      }
      const std::string text = error_of([&] { team.all_reduce(t, data, sum); });
      const std::lock_guard lock(mutex);
      said.push_back(text);
    });
    for (const std::string& text : said) {
      EXPECT_NE(text.find("thread 1 of 3 has not arrived"), std::string::npos) << text;
    }
  });
}

TEST(TeamMistakes, AnotherCallThanThatOfThreadZeroIsAMismatch) {
  with_team(1, 2, {}, [](Team& team, int, const auto& in_each) {
    std::vector<float> a(10);
    std::vector<float> b(10);
    std::string of_one;
    in_each([&](int t) {
      const std::string text = error_of([&] { team.all_reduce(t, t == 0 ? a : b, sum); });
      if (t == 1) {
        of_one = text;
      }
    });
    EXPECT_NE(of_one.find("thread 1 makes another call than thread 0"), std::string::npos);
  });
}

TEST(TeamMistakes, AThreadOrACallThatItHasNotIsRefused) {
  with_team(1, 1, {}, [](Team& team, int, const auto&) {
    std::vector<float> data(1);
    EXPECT_NE(error_of([&] { team.all_reduce(1, data, sum); }).find("by thread 1 of 1"),
              std::string::npos);
    EXPECT_NE(error_of([&] { team.run(0, {.collective = Collective::gather}); }).find("usage"),
              std::string::npos);
  });
}

TEST(TeamMistakes, RanksThatDifferInTheirNumberOfThreadsAreTold) {
  run_threads(2, [](Communicator& comm) {
    EXPECT_NE(error_of([&] { Team team(comm, comm.rank() + 1); }).find("mismatch"),
              std::string::npos);
    EXPECT_NE(error_of([&] { Team team(comm, 0); }).find("usage"), std::string::npos);
  });
}

TEST(TeamSlices, CoverAVectorOnceInWholeLines) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{15}, std::size_t{12'345}}) {
    for (int movers = 1; movers <= 20; ++movers) {
      std::size_t next = 0;
      for (int t = 0; t < movers; ++t) {
        const comm::Slice slice = comm::slice_of(count, Dtype::f32, movers, t);
        EXPECT_EQ(slice.first, next);
        EXPECT_EQ(slice.first % 16, 0U);
        next += slice.count;
      }
      EXPECT_EQ(next, count);
    }
  }
}

}  // namespace
}  // namespace unisono
