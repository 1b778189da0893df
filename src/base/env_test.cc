#include "base/env.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/bytes_text.h"

namespace unisono {
namespace {

TEST(Env, TableHasEachNameOnceWithThePrefixAndHelp) {
  std::set<std::string_view> names;
  for (const EnvVariable& row : env_variables()) {
    EXPECT_EQ(row.name.substr(0, 8), "UNISONO_") << row.name;
    EXPECT_FALSE(row.help.empty()) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
  EXPECT_TRUE(names.contains("UNISONO_RANK"));
}

TEST(Env, UnsetAndEmptyDiffer) {
  setenv("UNISONO_TEST_EMPTY", "", 1);
  EXPECT_EQ(read_env("UNISONO_TEST_EMPTY"), std::optional<std::string>(""));
  unsetenv("UNISONO_TEST_EMPTY");
  EXPECT_EQ(read_env("UNISONO_TEST_EMPTY"), std::nullopt);
}

TEST(Env, WarnsOfUnknownNamesOnly) {
  setenv("UNISONO_RNAK", "1", 1);
  setenv("UNISONO_QQQQQQQQ", "1", 1);
  setenv("UNISONO_SIZE", "1", 1);
  const auto warnings = unknown_env_warnings();
  unsetenv("UNISONO_RNAK");
  unsetenv("UNISONO_QQQQQQQQ");
  unsetenv("UNISONO_SIZE");
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_EQ(warnings[0], "UNISONO_QQQQQQQQ is set, but unisono has no such variable");
  EXPECT_EQ(warnings[1],
            "UNISONO_RNAK is set, but unisono has no such variable; did you mean UNISONO_RANK?");
}

TEST(Env, KnowsANameWithoutItsUnit) {
  setenv("UNISONO_TIMEOUT", "3", 1);
  const auto warnings = unknown_env_warnings();
  unsetenv("UNISONO_TIMEOUT");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0],
            "UNISONO_TIMEOUT is set, but unisono has no such variable; did you mean "
            "UNISONO_TIMEOUT_MS?");
}

TEST(FormatBytes, PicksTheUnit) {
  constexpr std::uint64_t kKiB = 1024;
  EXPECT_EQ(format_bytes(0.0), "0 B");
  EXPECT_EQ(format_bytes(8.0), "8 B");
  EXPECT_EQ(format_bytes(1023.0), "1023 B");
  EXPECT_EQ(format_bytes(64 * kKiB), "64 KiB");
  EXPECT_EQ(format_bytes(1000 * kKiB), "1000 KiB");
  EXPECT_EQ(format_bytes(1536 * kKiB), "1.5 MiB");
  EXPECT_EQ(format_bytes(1280.0), "1.25 KiB");
  EXPECT_EQ(format_bytes(12.34 * 1024), "12.3 KiB");
  EXPECT_EQ(format_bytes(1000.3 * 1024), "1000 KiB");
  EXPECT_EQ(format_bytes(kKiB * kKiB + 1), "1 MiB");
  EXPECT_EQ(format_bytes(kKiB * kKiB - 1), "1 MiB");
  EXPECT_EQ(format_bytes(~std::uint64_t{0}), "16 EiB");
  EXPECT_EQ(format_bytes(1e30), "867361737988 EiB");
}

TEST(ParseBytes, TakesWhatPeopleWrite) {
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("1024"), 1024U);
  EXPECT_EQ(parse_bytes("8B"), 8U);
  EXPECT_EQ(parse_bytes("1K"), 1024U);
  EXPECT_EQ(parse_bytes("64M"), 64U << 20);
  EXPECT_EQ(parse_bytes("64MB"), 64U << 20);
  EXPECT_EQ(parse_bytes("64mib"), 64U << 20);
  EXPECT_EQ(parse_bytes("1.5MiB"), 3U << 19);
  EXPECT_EQ(parse_bytes("64 MiB"), 64U << 20);
  EXPECT_EQ(parse_bytes("15E"), std::uint64_t{15} << 60);
  EXPECT_EQ(parse_bytes("18446744073709551615"), ~std::uint64_t{0});
}

TEST(ParseBytes, RefusesTheRest) {
  for (const char* text : {"",     "K",    "-1",
                           "+1",   " 1",   "1 ",
                           "1  K", "1KK",  "1iB",
                           "1BB",  "1.5",  "1.",
                           "1.K",  "1. K", ".",
                           "0.3K", "16E",  "18446744073709551616",
                           "1e3",  "0x10", "99999999999999999999999999999999999999999999"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(ParseBytes, ReadsBackWhatFormatWrites) {
  for (int shift = 0; shift < 64; ++shift) {
    const std::uint64_t bytes = std::uint64_t{1} << shift;
    EXPECT_EQ(parse_bytes(format_bytes(bytes)), bytes) << shift;
  }
}

}  // namespace
}  // namespace unisono
