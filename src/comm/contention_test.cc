#include "comm/contention.h"

#include <gtest/gtest.h>

namespace unisono::comm {
namespace {

using namespace std::chrono_literals;

class ContentionTest : public ::testing::Test {
 protected:
  void give_way(CoreContention::Clock::duration takes) {
    contention.gave_way(now, now + takes);
    now += takes;
  }

  CoreContention contention{0, []() noexcept { return 0; }};
  CoreContention::Clock::time_point now{1h};
};

TEST_F(ContentionTest, IsOffWhereGivingWayIsQuick) {
  for (int i = 0; i < 100; ++i) {
    give_way(50us);
    EXPECT_FALSE(contention.is_on());
  }
}

TEST_F(ContentionTest, BeginsWithOneSliceOfAnotherAndEndsWithSeveralQuickProbes) {
  give_way(3ms);
  EXPECT_TRUE(contention.is_on());
  EXPECT_FALSE(contention.wants_probe(now + 19ms));
  now += 20ms;
  EXPECT_TRUE(contention.wants_probe(now));
  for (int i = 0; i < 3; ++i) {
    give_way(1us);
    EXPECT_TRUE(contention.is_on() && contention.wants_probe(now)) << i;
  }
  give_way(1us);
  EXPECT_FALSE(contention.is_on());
}

TEST_F(ContentionTest, IsProbedMoreAndMoreSeldomWhileItLasts) {
  CoreContention::Clock::duration probing = 0ms;
  const auto begin = now;
  give_way(3ms);
  while (now - begin < 10s) {
    now += 1ms;
    if (contention.wants_probe(now)) {
      give_way(1us);  // a neighbour that woke for a moment
      give_way(3ms);
      probing += 3ms;
    }
  }
  EXPECT_TRUE(contention.is_on());
  EXPECT_LT(probing, (now - begin) / 50);
  // Pauses are short again after contention ends.
  now += 1s;
  for (int i = 0; i < 4; ++i) {
    give_way(1us);
  }
  give_way(3ms);
  EXPECT_TRUE(contention.wants_probe(now + 20ms));
}

TEST_F(ContentionTest, IsNotOfRanksThatTakeTurns) {
  CoreContention turns(4, []() noexcept { return 4; });
  turns.gave_way(now, now + 3ms);
  EXPECT_FALSE(turns.is_on());
  CoreContention beside_another(4, []() noexcept { return 5; });
  for (int slices = 1; slices <= 3; ++slices) {
    EXPECT_TRUE(beside_another.gave_way(now, now + 3ms));
    EXPECT_EQ(beside_another.is_on(), slices == 3);
  }
}

int running = 0;

// A launcher or a daemon runs for a moment.
TEST_F(ContentionTest, IsNotOfOneThatIsSeenOnce) {
  CoreContention turns(4, []() noexcept { return running; });
  for (int slice = 0; slice < 10; ++slice) {
    running = slice % 3 == 2 ? 4 : 5;
    EXPECT_TRUE(turns.gave_way(now, now + 3ms));
    EXPECT_FALSE(turns.is_on()) << slice;
  }
}

// Another job or container takes a slice occasionally, while yields within this job are
// quick.
TEST_F(ContentionTest, IsNotOfSlicesThatAreTakenSeldomFromRanksThatTakeTurns) {
  CoreContention turns(4, []() noexcept { return 6; });
  for (int slice = 0; slice < 10; ++slice) {
    for (int quick = 0; quick < 100; ++quick) {
      turns.gave_way(now, now + 1us);
    }
    EXPECT_TRUE(turns.gave_way(now, now + 3ms));
    EXPECT_FALSE(turns.is_on());
  }
  turns.gave_way(now, now + 3ms);
  EXPECT_TRUE(turns.is_on());
}

int changed = 0;

TEST_F(ContentionTest, ThreadsKeepShortSlicesUntilItHasBeenOffForASecond) {
  changed = 0;
  CoreContention beside(
      0, []() noexcept { return 0; },
      [](int, std::uint64_t ns) noexcept {
        ++changed;
        return ns + 1;
      });
  const auto give_way_to = [&](CoreContention::Clock::duration takes) {
    beside.gave_way(now, now + takes);
    now += takes;
  };
  for (int i = 0; i < 3; ++i) {
    give_way_to(3ms);
    beside.shorten_slice();
    EXPECT_EQ(changed, 1);
    // With short slices, yields are quick even beside other programs.
    for (int quick = 0; quick < 4; ++quick) {
      give_way_to(1us);
    }
    EXPECT_FALSE(beside.is_on());
    now += 900ms;
    give_way_to(1us);
    EXPECT_EQ(changed, 1) << "it may still be";
  }
  now += 100ms;
  give_way_to(1us);
  EXPECT_EQ(changed, 2);
  now += 10s;
  give_way_to(1us);
  EXPECT_EQ(changed, 2);
  give_way_to(3ms);
  beside.shorten_slice();
  EXPECT_EQ(changed, 3);
}

TEST(RunnableThreads, AreAtLeastTheOneThatAsks) {
  EXPECT_GE(runnable_threads(), 1);
}

}  // namespace
}  // namespace unisono::comm
