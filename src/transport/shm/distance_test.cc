#include "transport/shm/distance.h"

#include <gtest/gtest.h>

namespace unisono::shm {
namespace {

using std::chrono::nanoseconds;

// Returns the number of copies up to and including the next measurement.
int copies_until_look(Distance& distance) {
  int copies = 1;
  while (!distance.is_look_due()) {
    ++copies;
  }
  return copies;
}

TEST(Distance, IsFarUntilACopyWasFast) {
  Distance distance;
  EXPECT_TRUE(distance.far());
  EXPECT_GT(copies_until_look(distance), 32) << "the slots of the first round are fresh";
  distance.learn(16384, nanoseconds(600));
  EXPECT_FALSE(distance.far());
}

TEST(Distance, StaysFarWhileCopiesAreSlow) {
  Distance distance;
  copies_until_look(distance);
  distance.learn(16384, nanoseconds(7000));
  EXPECT_TRUE(distance.far());
  EXPECT_GE(copies_until_look(distance), 64) << "looks cost much";
}

TEST(Distance, MessagesWithoutACopyCountAsWell) {
  Distance distance;
  int messages = 0;
  while (!distance.is_next_look()) {
    distance.count();
    ++messages;
  }
  EXPECT_GE(messages, 32);
  distance.count();  // a message that is sent without a copy all the same
  EXPECT_TRUE(distance.is_look_due()) << "the look is not missed";
}

TEST(Distance, OneSlowCopyIsLookedAtAgain) {
  Distance distance;
  copies_until_look(distance);
  distance.learn(16384, nanoseconds(600));
  copies_until_look(distance);
  distance.learn(16384, nanoseconds(2'000'000));
  EXPECT_FALSE(distance.far()) << "an interruption";
  EXPECT_EQ(copies_until_look(distance), 1);
  distance.learn(16384, nanoseconds(600));
  EXPECT_FALSE(distance.far());
}

TEST(Distance, TwoSlowCopiesAreFar) {
  Distance distance;
  copies_until_look(distance);
  distance.learn(8192, nanoseconds(300));
  copies_until_look(distance);
  distance.learn(8192, nanoseconds(3400));
  copies_until_look(distance);
  distance.learn(8192, nanoseconds(3400));
  EXPECT_TRUE(distance.far());
}

TEST(Distance, ACopyThatTookNoTimeIsFast) {
  Distance distance;
  copies_until_look(distance);
  distance.learn(8192, nanoseconds(0));
  EXPECT_FALSE(distance.far());
}

}  // namespace
}  // namespace unisono::shm
