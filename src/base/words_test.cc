#include "base/words.h"

#include <gtest/gtest.h>

#include <array>

namespace unisono {
namespace {

TEST(NearestWord, TakesTheNearestOrNone) {
  constexpr std::array<std::string_view, 3> kWords = {"ring", "flat", "binomial"};
  EXPECT_EQ(nearest_word("rign", kWords), "ring");
  EXPECT_EQ(nearest_word("binominal", kWords), "binomial");
  EXPECT_EQ(nearest_word("bruck", kWords), "");
  EXPECT_EQ(nearest_word("", kWords), "");
  EXPECT_EQ(nearest_word("ring", {}), "");
}

TEST(Suggestion, IsTheEndOfASentenceOrNothing) {
  constexpr std::array<std::string_view, 2> kWords = {"ring", "flat"};
  EXPECT_EQ(suggestion("rign", kWords), ", did you mean \"ring\"?");
  EXPECT_EQ(suggestion("bruck", kWords), "");
}

TEST(InQuotes, ShortensAndHidesControlCharacters) {
  EXPECT_EQ(in_quotes("a\nb\x7f"), "\"a?b?\"");
  EXPECT_EQ(in_quotes(std::string(41, 'x')), "\"" + std::string(40, 'x') + "...\"");
}

}  // namespace
}  // namespace unisono
