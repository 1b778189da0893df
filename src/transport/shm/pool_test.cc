#include "transport/shm/pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
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

TEST(Pool, HasMoreThanTheRound) {
  Pool pool(nullptr, 3, 2);
  EXPECT_EQ(pool.take(), 0U);
  EXPECT_EQ(pool.take(), 1U);
  EXPECT_EQ(pool.take(), Pool::kNone);
  EXPECT_EQ(pool.take_spare(), 2U);
  EXPECT_EQ(pool.take_spare(), Pool::kNone);
  pool.give(1);
  EXPECT_EQ(pool.take(), 1U);
}

TEST(Pool, ABurstDoesNotMakeTheRoundLonger) {
  Pool pool(nullptr, 9, 2);
  std::vector<std::uint32_t> burst = {pool.take(), pool.take(), pool.take_spare(),
                                      pool.take_spare()};
  for (const std::uint32_t slot : burst) {
    pool.give(slot);
  }
  for (int i = 0; i < 6; ++i) {
    EXPECT_LT(take_and_give(pool), 2U);
  }
  EXPECT_EQ(pool.take(), 0U);
  EXPECT_EQ(pool.take(), 1U);
  EXPECT_GE(pool.take_spare(), 2U);
  EXPECT_LT(pool.take_spare(), 4U) << "touched before";
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

std::uint32_t take_any(Pool& pool) {
  const std::uint32_t slot = pool.take();
  return slot == Pool::kNone ? pool.take_spare() : slot;
}

TEST(Pool, ManyThreadsNeverHoldOneSlotTwice) {
  constexpr std::uint32_t kSlots = 24;  // enough for all that the threads hold at once
  Pool pool(nullptr, kSlots, 3);
  std::vector<std::atomic<int>> holders(kSlots);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5'000; ++i) {
        std::vector<std::uint32_t> mine;
        for (int k = 0; k <= (i + t) % 5; ++k) {
          const std::uint32_t slot = take_any(pool);
          if (slot != Pool::kNone) {  // others may be between taking a round and freeing it
            mine.push_back(slot);
            wrong += holders[slot].fetch_add(1) == 0 ? 0 : 1;
          }
        }
        for (const std::uint32_t slot : mine) {
          holders[slot].fetch_sub(1);
          pool.give(slot);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
  std::set<std::uint32_t> slots;
  for (std::uint32_t slot = take_any(pool); slot != Pool::kNone; slot = take_any(pool)) {
    slots.insert(slot);
  }
  EXPECT_EQ(slots.size(), kSlots);
}

}  // namespace
}  // namespace unisono::shm
