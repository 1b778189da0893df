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

TEST(WithoutEscapes, KeepsWhatIsToBeRead) {
  EXPECT_EQ(without_escapes("\x1b[1;32mgreen\x1b[0m text\x1b[K\n"), "green text\n");
  EXPECT_EQ(without_escapes("\x1b[36mworker-0  | \x1b[0m# nThread"), "worker-0  | # nThread");
  EXPECT_EQ(without_escapes("cut \x1b[3"), "cut ");
  EXPECT_EQ(without_escapes("cut \x1b[3\nnext"), "cut \nnext");
  EXPECT_EQ(without_escapes("alone \x1b"), "alone ");
  EXPECT_EQ(without_escapes("none"), "none");
}

TEST(InQuotes, ShortensAndHidesControlCharacters) {
  EXPECT_EQ(in_quotes("a\nb\x7f"), "\"a?b?\"");
  EXPECT_EQ(in_quotes(std::string(41, 'x')), "\"" + std::string(40, 'x') + "...\"");
}

TEST(InQuotes, IsValidUtf8WhateverItQuotes) {
  EXPECT_EQ(in_quotes("全规约"), "\"全规约\"");
  EXPECT_EQ(in_quotes("\xff\xfe"
                      "0F0"),
            "\"??0F0\"");
  EXPECT_EQ(in_quotes("\xe5\x85"), "\"??\"");                 // truncated character
  EXPECT_EQ(in_quotes("\xc0\xaf\xed\xa0\x80"), "\"?????\"");  // overlong form; surrogate
  EXPECT_EQ(in_quotes("\xf4\x90\x80\x80"), "\"????\"");       // past U+10FFFF
  const std::string many = std::string(39, 'x') + "全规";     // shortening splits no character
  EXPECT_EQ(in_quotes(many), "\"" + std::string(39, 'x') + "全...\"");
}

}  // namespace
}  // namespace unisono
