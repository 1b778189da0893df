#include "transport/shm/pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace unisono::shm {
namespace {

std::uint32_t take_and_give(Pool& pool) {
  const std::uint32_t slot = pool.take();
  pool.give(slot);
  return slot;
}

TEST(Pool, UsesEverySlotOfTheRoundBeforeOneAgain) {
  Pool pool(nullptr, 16, 4);
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t slot = 0; slot < 4; ++slot) {
      EXPECT_EQ(take_and_give(pool), slot);
    }
  }
}

TEST(Pool, KeepsTheOrderInWhichSlotsComeBack) {
  Pool pool(nullptr, 3, 3);
  for (std::uint32_t slot = 0; slot < 3; ++slot) {
    EXPECT_EQ(pool.take(), slot);
  }
  for (const std::uint32_t slot : {1U, 2U, 0U}) {
    pool.give(slot);
  }
  for (const std::uint32_t slot : {1U, 2U, 0U}) {
    EXPECT_EQ(pool.take(), slot);
  }
}

TEST(Pool, TakesFreshSlotsWhenTheRoundIsInUse) {
  Pool pool(nullptr, 3, 2);
  EXPECT_EQ(pool.take(), 0U);
  EXPECT_EQ(pool.take(), 1U);
  EXPECT_EQ(pool.take(), 2U);
  EXPECT_EQ(pool.take(), Pool::kNone);
  pool.give(1);
  EXPECT_EQ(pool.take(), 1U);
}

TEST(Pool, ShortMessagesGoRoundTheWholeSlot) {
  std::vector<std::byte> memory(2 * kSlotBytes);
  Pool pool(memory.data(), 2, 2);
  EXPECT_EQ(pool.offset_of(pool.room(1, 25'000)), kSlotBytes);
  EXPECT_EQ(pool.offset_of(pool.room(1, 35'000)), kSlotBytes + 25'088);
  EXPECT_EQ(pool.offset_of(pool.room(1, 25'000)), kSlotBytes);
  EXPECT_EQ(pool.offset_of(pool.room(0, kSlotBytes)), 0U);
  EXPECT_EQ(pool.offset_of(pool.room(0, kSlotBytes)), 0U);
}

TEST(Pool, GivesEachSlotToOneThread) {
  constexpr int kThreads = 4;
  constexpr int kTakes = 20000;
  Pool pool(nullptr, 6, 3);
  std::vector<std::atomic<int>> holders(6);
  std::atomic<int> clashes = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTakes; ++i) {
        const std::uint32_t slot = pool.take();
        if (slot == Pool::kNone) {
          continue;
        }
        clashes += holders[slot]++ != 0 ? 1 : 0;
        holders[slot]--;
        pool.give(slot);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(clashes, 0);
  std::vector<bool> seen(6);
  for (int i = 0; i < 6; ++i) {
    const std::uint32_t slot = pool.take();
    ASSERT_LT(slot, 6U);
    EXPECT_FALSE(seen[slot]);
    seen[slot] = true;
  }
  EXPECT_EQ(pool.take(), Pool::kNone);
}

}  // namespace
}  // namespace unisono::shm
