// AlgorithmParameters in the names of algorithms: read, written and refused.
#include "algorithms/parameters.h"

#include <gtest/gtest.h>

#include "algorithms/catalog.h"
#include "unisono/error.hpp"

namespace unisono {
namespace {

constexpr AlgorithmParameters kAll = {.radix = 4, .segments = 8, .aggregate = 4, .local = {8}};

std::string refusal(std::string_view name, const AlgorithmParameters& taken = kAll) {
  try {
    parse_parameters(name, taken);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Parameters, AreReadFromTheName) {
  EXPECT_EQ(parse_parameters("ring", kAll), AlgorithmParameters{});
  EXPECT_EQ(parse_parameters("knomial:radix=3", kAll), AlgorithmParameters{.radix = 3});
  EXPECT_EQ(parse_parameters("x:segments=7:aggregate=2", kAll),
            (AlgorithmParameters{.segments = 7, .aggregate = 2}));
  EXPECT_EQ(parse_parameters("x:local=8", kAll), AlgorithmParameters{.local = {8}});
  EXPECT_EQ(parse_parameters("x:local=8x4x2x1", kAll),
            (AlgorithmParameters{.local = {8, 4, 2, 1}}));
  EXPECT_EQ(base_name("knomial:radix=3"), "knomial");
  EXPECT_EQ(base_name("ring"), "ring");
}

TEST(Parameters, AreWrittenAsTheyAreRead) {
  EXPECT_EQ(to_text(AlgorithmParameters{}), "");
  for (const char* text : {":radix=2", ":segments=1", ":radix=3:segments=12:aggregate=1:local=8x4",
                           ":local=1x2x3x4"}) {
    EXPECT_EQ(to_text(parse_parameters("x" + std::string(text), kAll)), text);
  }
}

TEST(Parameters, AreRefusedWithAHint) {
  EXPECT_EQ(refusal("knomial:radix=1"),
            "usage: \"knomial:radix=1\": radix cannot be \"1\"\n"
            "write radix=N, with N from 2 to 1048576");
  EXPECT_EQ(refusal("x:local=8x"),
            "usage: \"x:local=8x\": local cannot be \"8x\"\n"
            "write for example local=8 or local=8x4, of at most 4 sizes");
  EXPECT_EQ(refusal("x:rdix=4", {.radix = 4, .segments = 1}),
            "usage: \"x:rdix=4\": there is no parameter \"rdix\"\nthere are: radix, segments");
  EXPECT_EQ(refusal("ring:radix=4", {}),
            "usage: \"ring:radix=4\": there is no parameter \"radix\"\nring takes none");
  EXPECT_EQ(refusal("x:radix=4:radix=4"),
            "usage: \"x:radix=4:radix=4\": radix is given twice\ngive it once");
  for (const char* name :
       {"x:", "x:radix", "x:radix=", "x:radix=4x4", "x:radix=-2", "x:radix=4.5", "x:radix= 4",
        "x:radix=99999999999999999999", "x:radix=1048577", "x::radix=4", "x:radix=4:", "x:local=0",
        "x:local=", "x:local=1x2x3x4x5", "x:local=8y4", "x:local=x8", "x:=4"}) {
    EXPECT_NE(refusal(name), "") << name;
  }
}

TEST(Parameters, OfAnAlgorithmAreLeftOutOfItsNameWhereTheyAreDefaults) {
  const AlgorithmParameters defaults{.radix = 4, .segments = 8};
  EXPECT_EQ(or_defaults({.radix = 2}, defaults), (AlgorithmParameters{.radix = 2, .segments = 8}));
  EXPECT_EQ(without_defaults({.radix = 2, .segments = 8}, defaults),
            AlgorithmParameters{.radix = 2});
  EXPECT_EQ(without_defaults(defaults, defaults), AlgorithmParameters{});
}

}  // namespace
}  // namespace unisono
