// The screen at the end of `make run`: its content, and its width.
#include "bench/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "bench/sweep.h"
#include "schedule/schedule.h"

namespace unisono::cli {
namespace {

constexpr int kRanks = 4;

// All rows of the main job, each at half of its limit and correct.
std::vector<Row> main_job_rows() {
  std::vector<Row> rows;
  for (const Case& what : main_job_cases(kRanks)) {
    rows.push_back({.what = what,
                    .algorithm = what.workload.send_recv  ? "-"
                                 : what.algorithm.empty() ? "reduce_scatter_gather"
                                                          : what.algorithm,
                    .ranks = kRanks,
                    .timing = {.time_us = 123'456, .p99_us = 200'000, .iterations = 3},
                    .limit_us = 61'728,
                    .checks = kRanks,
                    .bound = "exact"});
  }
  return rows;
}

PageFacts facts() {
  return {.ranks = kRanks,
          .cpus = 2,
          .cpu = std::string(90, 'x'),
          .cache_bytes = std::uint64_t{32} << 20U,
          .table = "build/bench.txt",
          .program = "build/release/tools/unisono/unisono"};
}

Console plain_console() {
  return Console::make("never", false, false, false);
}

TEST(Page, FitsOnAScreen) {
  PageFacts busy = facts();
  busy.others = 127.5;
  busy.cpus = 128;
  std::istringstream page(page_text(main_job_rows(), busy, plain_console()));
  int lines = 0;
  for (std::string line; std::getline(page, line); ++lines) {
    EXPECT_LE(display_width(line), 80) << line;
  }
  EXPECT_LE(lines, 24);
}

TEST(Page, HasALineForEachCollectiveAndABar) {
  const std::string page = page_text(main_job_rows(), facts(), plain_console());
  for (const BenchWorkload& workload : all_workloads(kRanks)) {
    if (workload.send_recv || !is_v_form(workload.collective)) {
      EXPECT_NE(page.find("\n" + std::string(workload.name()) + " "), std::string::npos)
          << workload.name();
    }
  }
  EXPECT_NE(page.find("  50% ███ "), std::string::npos) << page;
  PageFacts ascii = facts();
  ascii.unicode = false;
  const std::string plain = page_text(main_job_rows(), ascii, plain_console());
  EXPECT_NE(plain.find("  50% ### "), std::string::npos) << plain;
  EXPECT_TRUE(std::all_of(plain.begin(), plain.end(), [](char c) { return c >= 0; }));
}

TEST(Page, WarnsOfOtherProcesses) {
  PageFacts busy = facts();
  EXPECT_EQ(page_text(main_job_rows(), busy, plain_console()).find("Others used"),
            std::string::npos);
  busy.others = 1.26;
  EXPECT_NE(page_text(main_job_rows(), busy, plain_console()).find("Others used 1.3 of 2 cores: "),
            std::string::npos);
}

TEST(Page, SaysWhatIsWrong) {
  std::vector<Row> rows = main_job_rows();
  EXPECT_EQ(first_wrong(rows), nullptr);
  EXPECT_EQ(verdict_text(rows), "0 wrong of " + std::to_string(rows.size() * kRanks) + " checks");
  rows[5].wrong = 12;
  rows[5].failed = 2;
  EXPECT_EQ(first_wrong(rows), &rows[5]);
  EXPECT_NE(page_text(rows, facts(), plain_console()).find("\n2 wrong of "), std::string::npos);
}

TEST(Page, NoShareIsAboveTheWhole) {
  std::vector<Row> rows = main_job_rows();
  for (Row& row : rows) {
    row.limit_us = 1.004 * row.timing.time_us;
  }
  const std::string page = page_text(rows, facts(), plain_console());
  EXPECT_NE(page.find(" 100% "), std::string::npos);
  EXPECT_EQ(page.find(" 101% "), std::string::npos);
}

}  // namespace
}  // namespace unisono::cli
