#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "network_model/simulator/shared_state.h"

namespace unisono::network_model {
namespace {

TEST(EventQueue, OfEqualTimesTheFirstMadeComesFirst) {
  EventQueue queue;
  for (int actor = 0; actor < 20; ++actor) {
    queue.push(actor % 2, EventQueue::Kind::entry, actor);
  }
  std::vector<int> order;
  while (!queue.empty()) {
    order.push_back(queue.pop().subject);
  }
  EXPECT_EQ(order, (std::vector<int>{0, 2, 4, 6, 8, 10, 12, 14, 16, 18,  //
                                     1, 3, 5, 7, 9, 11, 13, 15, 17, 19}));
}

// The end of a flight that moves occurs once, at its last time, and after earlier events of that
// time.
TEST(EventQueue, AFlightHasOneEnd) {
  EventQueue queue;
  queue.move_end(3, 10);
  queue.push(5, EventQueue::Kind::entry, 1);
  queue.move_end(3, 5);
  queue.move_end(4, 4);
  queue.move_end(4, 6);
  EXPECT_EQ(queue.pop().subject, 1);
  EXPECT_EQ(queue.pop().subject, 3);
  EXPECT_EQ(queue.next_us(), 6);
  EXPECT_EQ(queue.pop().subject, 4);
  EXPECT_TRUE(queue.empty());
  queue.move_end(3, 1);  // the slot of an ended flight is used again
  EXPECT_EQ(queue.pop().subject, 3);
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, ComesInTheOrderOfTimeWhateverMoves) {
  std::mt19937 random(5);
  EventQueue queue;
  std::vector<double> ends(50, -1);
  double now = 0;
  for (int turn = 0; turn < 5000; ++turn) {
    const auto transfer = static_cast<std::size_t>(random() % ends.size());
    ends[transfer] = now + static_cast<double>(random() % 100);
    queue.move_end(static_cast<int>(transfer), ends[transfer]);
    if (random() % 2 == 0) {
      double least = -1;
      for (const double end : ends) {
        least = end >= 0 && (least < 0 || end < least) ? end : least;
      }
      const EventQueue::Event event = queue.pop();
      double& end = ends[static_cast<std::size_t>(event.subject)];
      ASSERT_EQ(event.time_us, least);
      ASSERT_EQ(event.time_us, end);
      now = least;
      end = -1;
    }
  }
  EXPECT_EQ(queue.empty(),
            std::all_of(ends.begin(), ends.end(), [](double end) { return end < 0; }));
}

}  // namespace
}  // namespace unisono::network_model
