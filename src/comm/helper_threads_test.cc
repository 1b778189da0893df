#include "comm/helper_threads.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

namespace unisono::comm {
namespace {

class HelperThreadsWaiting : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(ThatSpinOrSleep, HelperThreadsWaiting, ::testing::Bool());

TEST_P(HelperThreadsWaiting, EachPartIsMadeOnceInAThreadOfItsOwn) {
  HelperThreads threads(3, GetParam());
  for (int round = 0; round < 200; ++round) {
    const int parts = 1 + round % 4;
    std::array<std::atomic<int>, 4> made = {};
    std::mutex mutex;
    std::set<std::thread::id> makers;
    threads.run(parts, [&](int part) {
      made[static_cast<std::size_t>(part)].fetch_add(1);
      const std::lock_guard lock(mutex);
      makers.insert(std::this_thread::get_id());
    });
    for (int part = 0; part < 4; ++part) {
      ASSERT_EQ(made[static_cast<std::size_t>(part)].load(), part < parts ? 1 : 0) << part;
    }
    ASSERT_EQ(makers.size(), static_cast<std::size_t>(parts));
  }
}

TEST_P(HelperThreadsWaiting, WhoFindsThemTakenMakesAllPartsItself) {
  HelperThreads threads(1, GetParam());
  std::atomic<bool> taken = false;
  std::atomic<bool> over = false;
  std::thread other([&] {
    threads.run(2, [&](int) {
      taken = true;
      while (!over) {
        std::this_thread::yield();
      }
    });
  });
  while (!taken) {
    std::this_thread::yield();
  }
  std::array<int, 2> order = {-1, -1};
  int made = 0;
  threads.run(2, [&](int part) { order[static_cast<std::size_t>(made++)] = part; });
  EXPECT_EQ(order, (std::array<int, 2>{0, 1}));
  over = true;
  other.join();
}

}  // namespace
}  // namespace unisono::comm
