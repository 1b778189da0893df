// Tests the slots of a reshard's messages.
#include "parallel/reshard_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace unisono::parallel {
namespace {

std::size_t most_of_a_rank(const std::vector<UnorderedMessage>& messages) {
  std::map<std::pair<bool, int>, std::size_t> counts;
  std::size_t most = 0;
  for (const UnorderedMessage& message : messages) {
    most = std::max({most, ++counts[{false, message.from}], ++counts[{true, message.to}]});
  }
  return most;
}

// Checks that each rank sends and receives one message at a time, and only when it is ready.
// Returns the number of slots.
std::size_t checked(const std::vector<UnorderedMessage>& messages, std::size_t ranks) {
  const std::vector<std::size_t> slots = slots_of(messages, ranks);
  EXPECT_EQ(slots.size(), messages.size());
  std::set<std::tuple<bool, int, std::size_t>> busy;
  std::size_t count = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].within) {
      EXPECT_TRUE(busy.emplace(false, messages[i].from, slots[i]).second);
      EXPECT_TRUE(busy.emplace(true, messages[i].to, slots[i]).second);
    }
    for (const std::size_t before : messages[i].after) {
      EXPECT_GE(slots[i], slots[before] + kLead);
    }
    count = std::max(count, slots[i] + 1);
  }
  return count;
}

TEST(ReshardOrder, HasNoSlotWithoutMessages) {
  EXPECT_EQ(checked({}, 1), 0U);
  EXPECT_EQ(checked({{.from = 0, .to = 1, .bytes = 1}}, 2), 1U);
  EXPECT_EQ(checked({{.from = 0, .to = 1, .bytes = 0}, {.from = 0, .to = 1, .bytes = 0}}, 2), 2U);
}

TEST(ReshardOrder, GivesEveryRankOneMessageAtATime) {
  std::vector<UnorderedMessage> all;
  for (int from = 0; from < 8; ++from) {
    for (int to = 0; to < 8; ++to) {
      for (int i = 0; i < 3 && from != to; ++i) {
        all.push_back({.from = from, .to = to, .bytes = 100});
      }
    }
  }
  EXPECT_LE(checked(all, 8), 24U);  // the minimum is 21
}

// Two receivers have most of the work, and the senders have unequal shares of it.
TEST(ReshardOrder, KeepsTheBusiestReceiversBusy) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::mt19937 random(seed);
    std::vector<UnorderedMessage> messages;
    for (int i = 0; i < 2000; ++i) {
      const int from = 2 + static_cast<int>(random() % 14);
      messages.push_back({.from = from, .to = i % 2, .bytes = 100});
      if (i % 4 == 0) {
        const int to = 2 + static_cast<int>(random() % 14);
        if (to != from) {
          messages.push_back({.from = from, .to = to, .bytes = 100});
        }
      }
    }
    EXPECT_LE(checked(messages, 16), most_of_a_rank(messages) * 102 / 100) << seed;
  }
}

TEST(ReshardOrder, WaitsForElements) {
  EXPECT_EQ(slots_of({{.from = 0, .to = 1, .bytes = 10},
                      {.from = 1, .to = 2, .bytes = 10, .after = {0}},
                      {.from = 2, .to = 3, .bytes = 10, .after = {1}}},
                     4),
            (std::vector<std::size_t>{0, kLead, 2 * kLead}));
}

// Elements that travel along a chain of ranks go first, so that no rank waits for them at the end.
TEST(ReshardOrder, PassesOnEarly) {
  constexpr int kChain = 4;
  std::vector<UnorderedMessage> messages;
  for (int i = 0; i < 100; ++i) {
    for (int to = 0; to < kChain; ++to) {
      messages.push_back({.from = kChain + to, .to = to, .bytes = 100});
    }
  }
  for (int i = 0; i < 20; ++i) {
    messages.push_back({.from = kChain, .to = 0, .bytes = 100});
    for (int to = 1; to < kChain; ++to) {
      messages.push_back({.from = to - 1, .to = to, .bytes = 100, .after = {messages.size() - 1}});
    }
  }
  EXPECT_LE(checked(messages, 2 * kChain), 125U);  // the minimum is 120
}

// Each message from another host has two messages within the host.
TEST(ReshardOrder, EndsWithinAHostWhenMessagesFromOthersEnd) {
  std::vector<UnorderedMessage> messages;
  for (int i = 0; i < 100; ++i) {
    messages.push_back({.from = 2, .to = 0, .bytes = 100});
    messages.push_back(
        {.from = 0, .to = 1, .within = true, .bytes = 50, .after = {messages.size() - 1}});
    messages.push_back(
        {.from = 0, .to = 1, .within = true, .bytes = 50, .after = {messages.size() - 2}});
  }
  EXPECT_LE(checked(messages, 3), 100 + kLead);
}

}  // namespace
}  // namespace unisono::parallel
