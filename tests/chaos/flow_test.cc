// The emulated link by itself: the same seed, the same bytes at the same times.
#include "chaos/flow.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace unisono::chaos {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// All that comes out, and when the last byte of it does.
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
  for (const char& one : text) {  // however the stream is cut
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

TEST(ChaosOptions, AreReadAndRefused) {
  const Parsed<Options> all = parse("delay=5ms,jitter=100us,loss=1%,rate=100Mbit,kill=2s,seed=7");
  ASSERT_TRUE(all) << all.message;
  EXPECT_EQ(all.value->delay_us, 5000);
  EXPECT_EQ(all.value->jitter_us, 100);
  EXPECT_DOUBLE_EQ(all.value->loss, 0.01);
  EXPECT_DOUBLE_EQ(all.value->bytes_per_s, 12.5e6);
  EXPECT_EQ(all.value->kill_ms, 2000);
  EXPECT_EQ(all.value->seed, 7U);
  EXPECT_TRUE(parse(""));
  for (const char* wrong : {"delay=5", "delay", "loss=100%", "loss=-1", "rate=5", "seed=x", "x=1",
                            "delay=nan", "delay=1e99s", "delay=1ms,,"}) {
    EXPECT_FALSE(parse(wrong)) << wrong;
  }
  EXPECT_EQ(parse("delay=1ms,loss=2").message, "'loss=2': wanted is a part below 1 such as 1%");
  EXPECT_EQ(parse("delay=1ms,loss=2").position, "byte 10");
}

}  // namespace
}  // namespace unisono::chaos
