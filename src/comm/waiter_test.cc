// Tests waiting without a world.
#include "comm/waiter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace unisono::comm {
namespace {

int slices_changed = 0;  // by the running test

class Alone final : public WaitEnvironment {
 public:
  const WaitPolicy& wait_policy() const noexcept override { return policy; }
  CoreContention& contention() noexcept override { return others; }
  bool aborted() const noexcept override { return ended; }
  void look_for_deaths() noexcept override { ++looks_for_deaths; }
  void ask_whether_to_go_on() noexcept override {}
  void raise(const std::exception&) noexcept override { ended = true; }
  int longest_sleep_us() const noexcept override { return 100; }
  bool sleep(const std::function<bool()>& look, int timeout_us) override {
    ++sleeps;
    longest_us = std::max(longest_us, timeout_us);
    if (look()) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(timeout_us));
    return false;
  }

  WaitPolicy policy = {.spin = 3, .yield_us = 0};
  CoreContention others{0, runnable_threads, [](int, std::uint64_t) noexcept {
                          ++slices_changed;
                          return std::uint64_t{0};
                        }};
  bool ended = false;
  int looks_for_deaths = 0;
  int sleeps = 0;
  int longest_us = 0;
};

TEST(Waiter, FinishesWithoutASleepWhatIsDoneAtOnce) {
  Alone alone;
  EXPECT_EQ(Waiter(alone, 0).wait([] { return Polled::finished; }, [] {}),
            Waiter::Verdict::finished);
  EXPECT_EQ(alone.sleeps, 0);
}

// Returns the two clock readings of each poll in a wait that advances once and then yields. Returns
// nothing if the waiter slept, as it does when a yield takes long.
std::vector<WaitClock::Clock::time_point> times_of_polls() {
  Alone alone;
  alone.policy = {.spin = 0, .yield_us = 1'000'000'000};
  Waiter waiter(alone, 0);
  std::vector<WaitClock::Clock::time_point> times;
  const auto poll = [&] {
    times.push_back(waiter.polled_at());
    times.push_back(waiter.polled_at());
    if (times.size() == 2) {
      return Polled::advanced;
    }
    return times.size() >= 8 ? Polled::finished : Polled::idle;
  };
  EXPECT_EQ(waiter.wait(poll, [] {}), Waiter::Verdict::finished);
  return alone.sleeps == 0 ? times : std::vector<WaitClock::Clock::time_point>();
}

// Reading the clock takes as long as a poll, so a poll that asks twice gets the same reading. The
// next poll sees the time that has passed.
TEST(Waiter, ReadsTheClockOnceForAPoll) {
  std::vector<WaitClock::Clock::time_point> times;
  for (int attempt = 0; attempt < 1000 && times.empty(); ++attempt) {
    times = times_of_polls();
  }
  if (times.empty()) {
    GTEST_SKIP()
        << "giving way takes long here each time: run it where other programs leave a core free";
  }
  ASSERT_EQ(times.size(), 8U);
  for (std::size_t i = 0; i < times.size(); i += 2) {
    EXPECT_EQ(times[i], times[i + 1]);
    EXPECT_TRUE(i == 0 || times[i] > times[i - 1]) << i;
  }
}

TEST(Waiter, SpinsBeforeItSleepsAndStartsOverWhenSomethingAdvanced) {
  Alone alone;
  slices_changed = 0;
  int polls = 0;
  const auto poll = [&] {
    ++polls;
    return polls == 3 ? Polled::advanced : polls >= 10 ? Polled::finished : Polled::idle;
  };
  EXPECT_EQ(Waiter(alone, 0).wait(poll, [] {}), Waiter::Verdict::finished);
  // The waiter spins after polls 1 and 2; poll 3 advances; it spins again after polls 4 to 6. After
  // polls 7 and 9 it sleeps, and polls once more before each sleep. Poll 10 is finished, and poll
  // 11 reports it.
  EXPECT_EQ(polls, 11);
  EXPECT_EQ(alone.sleeps, 2);
  EXPECT_EQ(slices_changed, 0);
}

TEST(Waiter, SleepsAtOnceWhereOthersCompute) {
  Alone alone;
  slices_changed = 0;
  alone.policy = {.spin = 1000, .yield_us = 1'000'000};
  const auto now = CoreContention::Clock::now();
  alone.others.gave_way(now - std::chrono::milliseconds(3), now);
  int polls = 0;
  EXPECT_EQ(
      Waiter(alone, 0).wait([&] { return ++polls < 3 ? Polled::idle : Polled::finished; }, [] {}),
      Waiter::Verdict::finished);
  EXPECT_EQ(polls, 3);
  EXPECT_EQ(alone.sleeps, 1);
  EXPECT_EQ(slices_changed, 1);
}

TEST(Waiter, TimesOutAfterNoProgressAtAll) {
  Alone alone;
  Waiter waiter(alone, 20);
  int checks = 0;
  EXPECT_EQ(waiter.wait([] { return Polled::idle; }, [&] { ++checks; }),
            Waiter::Verdict::timed_out);
  EXPECT_GE(waiter.waited_s(), 0.02);
  EXPECT_GE(checks, 1);
  EXPECT_EQ(checks, alone.looks_for_deaths);
  EXPECT_LE(alone.longest_us, 100);
}

TEST(Waiter, EndsWithTheWorld) {
  Alone alone;
  int checks = 0;
  const auto end_the_world = [&] {
    ++checks;
    alone.raise(std::runtime_error("a peer died"));
  };
  EXPECT_EQ(Waiter(alone, 0).wait([] { return Polled::idle; }, end_the_world),
            Waiter::Verdict::aborted);
  EXPECT_EQ(checks, 1);
}

TEST(Waiter, LetsWhatIsThrownOut) {
  Alone alone;
  EXPECT_THROW(Waiter(alone, 0).wait([]() -> Polled { throw std::runtime_error("broken"); }, [] {}),
               std::runtime_error);
}

}  // namespace
}  // namespace unisono::comm
