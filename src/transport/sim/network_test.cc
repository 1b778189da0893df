// The simulated network produces all its variations, and the seed alone determines them.
#include "transport/sim/network.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace unisono::sim {
namespace {

// Returns when rank 2 sees each of some messages from two writers, and which messages overtake
// others.
std::string story(std::uint64_t seed) {
  SimNetwork network({.ranks = 3, .delay = 20, .seed = seed});
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(network.transport(0).send(2, &i, sizeof(i), i));
    EXPECT_TRUE(network.transport(1).send(2, &i, sizeof(i), 100 + i));
  }
  std::string text;
  do {
    for (const int lane : {0, 1}) {
      transport::Incoming message;
      while (network.transport(2).peek(lane, message)) {
        text += std::to_string(message.signature) + " ";
        network.transport(2).release(lane);
      }
    }
    text += "| ";
  } while (network.pass_to_next_change());
  return text;
}

TEST(SimNetwork, DoesTheSameForTheSameSeed) {
  EXPECT_EQ(story(1), story(1));
  EXPECT_NE(story(1), story(2));
}

TEST(SimNetwork, LetsLanesOvertakeEachOther) {
  bool first = false;
  bool second = false;
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const std::string text = story(seed);
    (text.find("0 ") < text.find("100 ") ? first : second) = true;
  }
  EXPECT_TRUE(first && second);
}

TEST(SimNetwork, TellsTheWriterLate) {
  SimNetwork network({.lane_bytes = 1, .told_late = 1000, .seed = 7});
  const std::uint64_t value = 5;
  ASSERT_TRUE(network.transport(0).send(1, &value, 8, 1));
  network.transport(1).release(0);
  EXPECT_FALSE(network.transport(0).send(1, &value, 8, 1));
  EXPECT_TRUE(network.pass_to_next_change());
  EXPECT_TRUE(network.transport(0).send(1, &value, 8, 1));
}

TEST(SimNetwork, ForgetsWhatIsReleased) {
  SimNetwork network({});
  const std::uint64_t value = 5;
  ASSERT_TRUE(network.transport(0).send(1, &value, 8, 1));
  transport::Incoming message;
  ASSERT_TRUE(network.transport(1).peek(0, message));
  network.transport(1).release(0);
  EXPECT_NE(std::memcmp(message.data, &value, 8), 0);
}

TEST(SimNetwork, NoticesThatSharedMemoryChanges) {
  SimNetwork network({.sharing = 1});
  std::vector<std::byte> memory(100);
  ASSERT_TRUE(network.transport(0).share(1, memory.data(), 100, 1));
  transport::Incoming message;
  ASSERT_TRUE(network.transport(1).peek(0, message));
  EXPECT_EQ(network.violation(), "");
  memory[50] = std::byte{1};
  network.transport(1).release(0);
  EXPECT_EQ(network.violation(), "rank 1 finds that memory shared with it has changed");
}

TEST(SimNetwork, NoticesWhatTheSeamForbids) {
  const auto violation = [](auto act) {
    SimNetwork network({.inline_bytes = 8, .slot_bytes = 16});
    const std::byte data[32] = {};
    act(network.transport(0), data);
    return network.violation();
  };
  using transport::Transport;
  EXPECT_EQ(violation([](Transport& t, const std::byte* data) { t.send(1, data, 9, 1); }),
            "rank 0 sent more than inline_bytes at once");
  EXPECT_EQ(violation([](Transport& t, const std::byte*) { t.reserve(1, 17); }),
            "rank 0 reserved more than slot_bytes");
  EXPECT_EQ(violation([](Transport& t, const std::byte*) { t.commit(1, 1, 1); }),
            "rank 0 committed what it had not reserved");
  EXPECT_EQ(violation([](Transport& t, const std::byte*) { t.release(1); }),
            "rank 0 released a message that has not come");
}

// Returns the length and signature of each of three 4-byte messages as rank 1 receives them.
std::string received(InjectedFault fault) {
  SimNetwork network({.fault = fault});
  for (std::uint64_t i = 0; i < 3; ++i) {
    network.transport(0).send(1, "abc", 4, i);
  }
  std::string text;
  transport::Incoming message;
  while (network.transport(1).peek(0, message)) {
    text += message.bytes > 4 ? "longer" : std::to_string(message.bytes);
    text += message.signature > 2 ? ":other " : ":" + std::to_string(message.signature) + " ";
    network.transport(1).release(0);
  }
  return text + (network.struck() ? "struck" : "") + (network.stopped(0) ? ", stopped" : "");
}

TEST(SimNetwork, DamagesOneMessage) {
  EXPECT_EQ(received({}), "4:0 4:1 4:2 ");
  EXPECT_EQ(received({.kind = InjectedFault::Kind::signature, .at = 1}), "4:0 4:other 4:2 struck");
  EXPECT_EQ(received({.kind = InjectedFault::Kind::shorter, .at = 0}), "2:0 4:1 4:2 struck");
  EXPECT_EQ(received({.kind = InjectedFault::Kind::longer, .at = 2}), "4:0 4:1 longer:2 struck");
  EXPECT_EQ(received({.kind = InjectedFault::Kind::longer, .at = 3}), "4:0 4:1 4:2 ");
  EXPECT_EQ(received({.kind = InjectedFault::Kind::longer, .rank = 1, .at = 0}), "4:0 4:1 4:2 ");
}

TEST(SimNetwork, StopsARank) {
  EXPECT_EQ(received({.kind = InjectedFault::Kind::stops, .at = 2}), "4:0 4:1 struck, stopped");
}

}  // namespace
}  // namespace unisono::sim
