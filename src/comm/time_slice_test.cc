// Tests short slices with a fake kernel and with the real one.
#include "comm/time_slice.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <utility>
#include <vector>

#include "base/deadline.h"

namespace unisono::comm {
namespace {

using Asked = std::vector<std::pair<int, std::uint64_t>>;
constexpr std::uint64_t kUsual = 3'000'000;
Asked asked;  // by the running test

std::uint64_t knows_slices(int thread, std::uint64_t ns) noexcept {
  asked.emplace_back(thread, ns);
  return kUsual;
}

std::uint64_t is_old(int thread, std::uint64_t ns) noexcept {
  asked.emplace_back(thread, ns);
  return 0;
}

class ShortSlicesTest : public ::testing::Test {
 protected:
  void SetUp() override { asked.clear(); }
};

TEST_F(ShortSlicesTest, AreAskedForOnceForEachThreadAndGivenBackToAll) {
  ShortSlices slices(knows_slices);
  slices.give_back();
  EXPECT_TRUE(asked.empty());
  for (const int thread : {7, 8, 7, 8}) {
    slices.take(thread);
  }
  EXPECT_EQ(asked, (Asked{{7, ShortSlices::kNs}, {8, ShortSlices::kNs}}));
  asked.clear();
  slices.give_back();
  slices.give_back();
  EXPECT_EQ(asked, (Asked{{8, kUsual}, {7, kUsual}}));
  asked.clear();
  slices.take(7);
  EXPECT_EQ(asked, (Asked{{7, ShortSlices::kNs}}));
}

TEST_F(ShortSlicesTest, AreGivenBackAtTheEnd) {
  {
    ShortSlices(knows_slices).take(7);
  }
  EXPECT_EQ(asked, (Asked{{7, ShortSlices::kNs}, {7, kUsual}}));
}

TEST_F(ShortSlicesTest, AreNotGivenBackToAKernelThatHasNone) {
  {
    ShortSlices slices(is_old);
    slices.take(7);
    slices.take(7);
  }
  EXPECT_EQ(asked, (Asked{{7, ShortSlices::kNs}}));
}

TEST_F(ShortSlicesTest, LeaveThreadsAloneForWhichThereIsNoRoom) {
  ShortSlices slices(knows_slices);
  for (int thread = 1; thread <= 100; ++thread) {
    slices.take(thread);
  }
  const std::size_t room = asked.size();
  EXPECT_LT(room, 100U);
  slices.give_back();
  EXPECT_EQ(asked.size(), 2 * room);
}

TEST(ChangeTimeSlice, GivesBackWhatAThreadHadAndLeavesOthersAlone) {
  int thread = 0;
  std::uint64_t before = 0;
  std::uint64_t again = 0;
  std::uint64_t after = 0;
  std::thread([&] {
    thread = ::gettid();
    before = change_time_slice(thread, ShortSlices::kNs);
    again = change_time_slice(thread, ShortSlices::kNs);
    after = before == 0 ? 0 : change_time_slice(thread, before);
  }).join();
  EXPECT_EQ(again, 0U);
  EXPECT_EQ(after, before == 0 ? 0 : ShortSlices::kNs);
  // A thread's end is visible a moment before the kernel has removed it.
  const Deadline forgotten = Deadline::after_ms(10'000);
  while (change_time_slice(thread, ShortSlices::kNs) != 0 && !forgotten.passed()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(change_time_slice(thread, ShortSlices::kNs), 0U) << "it has ended";
  EXPECT_EQ(change_time_slice(::getppid(), ShortSlices::kNs), 0U) << "another process";
  if (before == 0) {
    GTEST_SKIP() << "this kernel has no time slices of threads: Linux 6.12 and newer run it";
  }
}

}  // namespace
}  // namespace unisono::comm
