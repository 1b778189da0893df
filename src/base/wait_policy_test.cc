#include "base/wait_policy.h"

#include <gtest/gtest.h>

#include "unisono/error.hpp"

namespace unisono {
namespace {

constexpr WaitPolicy kUsual{.spin = 7, .yield_us = 8};

TEST(WaitPolicy, IsReadBackAsWritten) {
  for (const WaitPolicy policy : {kUsual, built_in_wait(false), built_in_wait(true)}) {
    EXPECT_EQ(parse_wait_policy(to_text(policy), {}), policy);
  }
}

TEST(WaitPolicy, KeepsWhatIsNotNamed) {
  EXPECT_EQ(parse_wait_policy("", kUsual), kUsual);
  EXPECT_EQ(parse_wait_policy("spin=0", kUsual), (WaitPolicy{.spin = 0, .yield_us = 8}));
  EXPECT_EQ(parse_wait_policy("yield_us=1", kUsual), (WaitPolicy{.spin = 7, .yield_us = 1}));
}

TEST(WaitPolicy, RefusesWhatItIsNot) {
  for (const char* text : {"spin", "spin=", "spin=-1", "spin=1x", "spin=99999999999", "sleep=1",
                           "spin=1;yield_us=2", "=1", ",", "spin=1,,"}) {
    EXPECT_THROW(parse_wait_policy(text, {}), Error) << text;
  }
}

}  // namespace
}  // namespace unisono
