// Recordings of other programs that no program would leave, or that are rare.
#include "imports/imports.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/failure.h"
#include "imports/pickle.h"

namespace unisono::cli {
namespace {

// A list of one text of `bytes` bytes, which it names `times` times.
std::string pickle_that_repeats(std::size_t bytes, int times) {
  std::string pickle("\x80\x04]X", 4);
  for (int shift = 0; shift < 32; shift += 8) {
    pickle += static_cast<char>(bytes >> shift);
  }
  pickle += std::string(bytes, 'a') +
            "\x94"  // MEMOIZE
            "0(";
  for (int i = 0; i < times; ++i) {
    pickle += std::string("j\0\0\0\0", 5);
  }
  return pickle + "e.";
}

TEST(TypesOfTorch, HaveTheirSizes) {
  EXPECT_EQ(type_named_by_torch("Short").bytes, 2);
  EXPECT_EQ(type_named_by_torch("ComplexFloat").bytes, 8);
  EXPECT_EQ(type_named_by_torch("ComplexDouble").bytes, 16);
  EXPECT_EQ(type_named_by_torch("c10::complex<double>").bytes, 16);
  EXPECT_EQ(type_named_by_torch("short unsigned int").bytes, 2);
  EXPECT_EQ(type_named_by_torch("Float8_e4m3fn").name, "f8e4m3");
  EXPECT_EQ(type_named_by_torch("Bool").name, "bool");
  EXPECT_EQ(type_named_by_torch("what is not known").bytes, 1);
}

TEST(Pickle, RepeatsTextAsADumpDoes) {
  const auto parsed = parse_pickle(pickle_that_repeats(150, 1000));
  ASSERT_TRUE(parsed) << parsed.message;
  EXPECT_EQ(parsed.value->size(), 1000U);
}

TEST(Pickle, DoesNotMakeMuchTextOfFewBytes) {
  const std::string pickle = pickle_that_repeats(40'000, 2'000);  // 80 MB of 50 kB
  const auto parsed = parse_pickle(pickle);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.message, "it has too much text");
}

nlohmann::json kineto(int rank, double start_us) {
  const auto annotation = [](const char* name, double at_us) {
    return nlohmann::json{
        {"ph", "X"}, {"cat", "user_annotation"}, {"name", name}, {"ts", at_us}, {"dur", 10}};
  };
  return {{"distributedInfo", {{"rank", rank}, {"world_size", 2}}},
          {"traceEvents", nlohmann::json::array({annotation("gloo:broadcast", start_us),
                                                 annotation("gloo:all_reduce", start_us + 100)})}};
}

TEST(ReadKineto, HasEndsBeforeTheTimeZero) {
  std::vector<ImportedRank> ranks = {read_kineto(kineto(0, -500), "a"),
                                     read_kineto(kineto(1, 5000), "b")};
  const auto recording = recording_of(ranks, align(ranks));
  EXPECT_EQ(recording["ops"]["end_us"], (std::vector<double>{10, 110, 10, 110}));
}

TEST(Read, RefusesRanksThatNobodyHas) {
  for (const double rank : {1e300, -1e300, -1.0, 1e6}) {
    EXPECT_THROW(read_kineto({{"distributedInfo", {{"rank", rank}}}}, "0"), UsageError) << rank;
    EXPECT_THROW(read_flight_recorder({{"rank", rank}}, "0"), UsageError) << rank;
  }
}

}  // namespace
}  // namespace unisono::cli
