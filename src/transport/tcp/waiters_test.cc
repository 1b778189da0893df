#include "transport/tcp/waiters.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

namespace unisono::tcp {
namespace {

void in_another_thread(const std::function<void()>& what) {
  std::thread(what).join();
}

TEST(Waiters, EachThreadKnowsWhatItHasSeenItself) {
  Waiters waiters;
  EXPECT_EQ(waiters.seen(), std::nullopt);
  waiters.note_seen(3);
  in_another_thread([&] {
    EXPECT_EQ(waiters.seen(), std::nullopt);
    waiters.note_seen(4);
    EXPECT_EQ(waiters.seen(), 4U);
  });
  EXPECT_EQ(waiters.seen(), 3U);
  waiters.note_seen(5);
  EXPECT_EQ(waiters.seen(), 5U);
}

}  // namespace
}  // namespace unisono::tcp
