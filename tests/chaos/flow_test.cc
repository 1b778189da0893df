// The emulated link alone: the same seed gives the same bytes at the same times.
#include "chaos/flow.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace unisono::chaos {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Returns all output, and the time of its last byte.
std::pair<std::string, std::int64_t> drain(Flow& flow) {
  std::string text;
  std::int64_t now_us = 0;
  while (const auto next_us = flow.next_us()) {
    now_us = *next_us;
    const auto ready = flow.ready(now_us);
    text.append(reinterpret_cast<const char*>(ready.data()), ready.size());
    flow.leave(ready.size());
  }
  return {text, now_us};
}

std::string through(const Damage& damage, std::string_view text) {
  Flow flow({}, 1, damage);
  for (const char& one : text) {  // at any division of the stream
    flow.put(bytes_of({&one, 1}), 0);
  }
  return drain(flow).first;
}

TEST(ChaosFlow, DamagesAStreamAtAPlace) {
  using Kind = Damage::Kind;
  EXPECT_EQ(through({}, "abcdefgh"), "abcdefgh");
  EXPECT_EQ(through({Kind::cut, 2, 3}, "abcdefgh"), "abfgh");
  EXPECT_EQ(through({Kind::repeat, 2, 3}, "abcdefgh"), "abcdecdefgh");
  EXPECT_EQ(through({Kind::swap, 2, 2}, "abcdefgh"), "abefcdgh");
  const std::string flipped = through({Kind::flip, 3}, "abcdefgh");
  EXPECT_EQ(flipped.size(), 8U);
  EXPECT_NE(flipped[3], 'd');
}

TEST(ChaosFlow, DelaysAndKeepsTheOrder) {
  Flow flow({.delay_us = 1000, .jitter_us = 5000}, 3);
  std::int64_t last_us = 0;
  for (std::int64_t now_us = 0; now_us < 100; now_us += 10) {
    flow.put(bytes_of("x"), now_us);
  }
  int early = 0;
  while (const auto next_us = flow.next_us()) {
    EXPECT_GE(*next_us, std::max<std::int64_t>(last_us, 1000));
    EXPECT_LE(*next_us, 6100);
    early += *next_us < 3000 ? 1 : 0;
    last_us = *next_us;
    EXPECT_TRUE(flow.ready(*next_us - 1).empty());
    flow.leave(flow.ready(*next_us).size());
  }
  EXPECT_LT(early, 10) << "jitter is drawn";
}

TEST(ChaosFlow, TakesTheTimeOfItsRate) {
  Flow flow({.bytes_per_s = 1e6}, 1);
  const std::vector<std::byte> second(1'000'000);
  flow.put(second, 0);
  EXPECT_NEAR(static_cast<double>(drain(flow).second), 1e6, 1e3);
}

TEST(ChaosFlow, HoldsNoMoreThanARouterWould) {
  Flow flow({.delay_us = 1'000'000}, 1);
  const std::vector<std::byte> bytes(100'000);
  while (flow.room() >= bytes.size()) {
    flow.put(bytes, 0);
  }
  EXPECT_LE(flow.room(), bytes.size());
}

TEST(ChaosFlow, LosesByItsSeed) {
  const auto last_us = [](std::uint64_t seed) {
    Flow flow({.loss = 0.05}, seed);
    for (int i = 0; i < 20; ++i) {
      flow.put(bytes_of("x"), i * 1000);
    }
    return drain(flow).second;
  };
  EXPECT_EQ(last_us(1), last_us(1));
  int lossy = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    lossy += last_us(seed) > 100'000 ? 1 : 0;
  }
  EXPECT_GT(lossy, 40);  // 1 - 0.95^20 = 0.64
  EXPECT_LT(lossy, 85);
}

TEST(ChaosFlow, FlipsOneBitOfSomePackets) {
  Flow flow({.corrupt = 0.5}, 1);
  const std::vector<std::byte> packet(1000);
  int damaged = 0;
  for (int i = 0; i < 200; ++i) {
    flow.put(packet, 0);
    const std::string out = drain(flow).first;
    int bits = 0;
    for (const char byte : out) {
      bits += std::popcount(static_cast<unsigned char>(byte));
    }
    ASSERT_LE(bits, 1);
    damaged += bits;
  }
  EXPECT_GT(damaged, 70);
  EXPECT_LT(damaged, 130);
}

TEST(ChaosOptions, AreReadAndRefused) {
  const char* const text =
      "delay=5ms,jitter=100us,loss=1%,rate=100Mbit,corrupt=0.5%,kill=2@1500ms,"
      "stop=random+500ms,reset=0@2s,kill=random,seed=7";
  const Parsed<Plan> all = parse(text);
  ASSERT_TRUE(all) << all.message;
  const Options& link = all.value->link;
  EXPECT_EQ(link.delay_us, 5000);
  EXPECT_EQ(link.jitter_us, 100);
  EXPECT_DOUBLE_EQ(link.loss, 0.01);
  EXPECT_DOUBLE_EQ(link.bytes_per_s, 12.5e6);
  EXPECT_DOUBLE_EQ(link.corrupt, 0.005);
  EXPECT_EQ(link.seed, 7U);
  ASSERT_EQ(all.value->strikes.size(), 4U);
  EXPECT_EQ(all.value->strikes[0].rank, 2);
  EXPECT_EQ(all.value->strikes[0].at_ms, 1500);
  EXPECT_EQ(all.value->strikes[1].rank, FaultSpec::kAny);
  EXPECT_EQ(all.value->strikes[1].for_ms, 500);
  EXPECT_EQ(all.value->strikes[2].kind, FaultSpec::Kind::reset);
  EXPECT_EQ(all.value->strikes[3].at_ms, -1);
  EXPECT_TRUE(parse(""));
  for (const char* wrong : {"delay=5", "delay", "loss=100%", "loss=-1", "rate=5", "seed=x", "x=1",
                            "delay=nan", "delay=1e99s", "delay=1ms,,", "kill=1@2", "kill=-1",
                            "kill=1+2s", "kill=", "stop=1@1s+", "reset=all", "kill=1@2s@3s"}) {
    EXPECT_FALSE(parse(wrong)) << wrong;
  }
  EXPECT_EQ(parse("delay=1ms,loss=2").message, "'loss=2': expected is a part below 1 such as 1%");
  EXPECT_EQ(parse("delay=1ms,loss=2").position, "byte 10");
}

// The printed options reproduce the run.
TEST(ChaosOptions, AreDrawnFromTheSeedAndPrinted) {
  const Plan plan = *parse(
                         "delay=1500us,loss=0.1%,rate=1Gbit,kill=random,stop=random@1s+20ms,"
                         "seed=11")
                         .value;
  const Plan first = drawn(plan, 8);
  EXPECT_EQ(to_text(first), to_text(drawn(plan, 8)));
  EXPECT_EQ(to_text(*parse(to_text(first)).value), to_text(first));
  EXPECT_EQ(to_text(drawn(*parse(to_text(first)).value, 8)), to_text(first));
  for (const FaultSpec& strike : first.strikes) {
    EXPECT_GE(strike.rank, 0);
    EXPECT_LT(strike.rank, 8);
    EXPECT_GE(strike.at_ms, 0);
    EXPECT_LT(strike.at_ms, 5000);
  }
  EXPECT_EQ(first.strikes[1].at_ms, 1000);
  std::set<int> ranks;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Plan other = plan;
    other.link.seed = seed;
    ranks.insert(drawn(other, 8).strikes[0].rank);
  }
  EXPECT_EQ(ranks.size(), 8U);
  EXPECT_EQ(to_text({}), "seed=1");
}

}  // namespace
}  // namespace unisono::chaos
