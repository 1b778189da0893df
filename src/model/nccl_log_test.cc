#include "model/nccl_log.h"

#include <gtest/gtest.h>

#include <string>

namespace unisono::model {
namespace {

std::string log_of(const std::string& name, const std::string& rows) {
  return name +
         "# nThread 1 nGpus 2 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20\n"
         "#\n"
         "# Using devices\n"
         "#  Rank  0 Group  0 Pid   7231 on    host-1 device  0 [0x1b] NVIDIA H100 80GB HBM3\n"
         "#  Rank  1 Group  0 Pid   7231 on    host-1 device  1 [0x43] NVIDIA H100 80GB HBM3\n"
         "#\n"
         "#                                        out-of-place                       in-place\n"
         "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
         "time   algbw   busbw #wrong\n"
         "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
         "(us)  (GB/s)  (GB/s)\n" +
         rows +
         "# Out of bounds values : 0 OK\n"
         "# Avg bus bandwidth    : 20.1\n";
}

constexpr const char* kReduce = "# Collective test starting: all_reduce_perf\n";
constexpr const char* kRows =
    "           8             2     float     sum      -1    13.67    0.00    0.00      0    13.1  "
    " "
    " 0.00    0.00      0\n"
    "host-1:7231:7240 [0] NCCL INFO comm 0x55 is up\n"
    "     1048576        262144     float     sum      -1    44.20   23.72   23.72      0    41.9  "
    " "
    "25.03   25.03      0\n";

TEST(NcclLog, ReadsWhatNcclTestsPrints) {
  const std::string text = log_of(kReduce, kRows);
  ASSERT_TRUE(is_nccl_log(text));
  const Parsed<Table> table = parse_nccl_log(text, std::nullopt);
  ASSERT_TRUE(table) << table.message;
  ASSERT_EQ(table.value->rows.size(), 2U);
  const Table::Row& row = table.value->rows[1];
  EXPECT_EQ(row.machine, "NVIDIA H100 80GB HBM3 x 2");
  EXPECT_EQ(row.point.collective, Collective::all_reduce);
  EXPECT_EQ(row.point.ranks, 2);
  EXPECT_DOUBLE_EQ(row.point.bytes, 1048576);
  EXPECT_NEAR(row.point.time_s, 44.2e-6, 1e-12);
}

TEST(NcclLog, ReadsSeveralAndTheInPlaceTime) {
  const std::string in_place =
      "           8             2     float     sum      -1      N/A     N/A     N/A    N/A    "
      "13.1   "
      " 0.00    0.00      0\n";
  const std::string text =
      log_of(kReduce, kRows) + log_of("# Collective test starting: alltoall_perf\n", in_place);
  const Parsed<Table> table = parse_nccl_log(text, std::nullopt);
  ASSERT_TRUE(table) << table.message;
  ASSERT_EQ(table.value->rows.size(), 3U);
  EXPECT_EQ(table.value->rows[2].point.collective, Collective::all_to_all);
  EXPECT_EQ(table.value->rows[2].point.ranks, 2);
  EXPECT_NEAR(table.value->rows[2].point.time_s, 13.1e-6, 1e-12);
}

TEST(NcclLog, SaysWhatIsMissing) {
  const std::string old = log_of("", kRows);
  const Parsed<Table> nameless = parse_nccl_log(old, std::nullopt);
  EXPECT_FALSE(nameless);
  EXPECT_NE(nameless.message.find("which collective"), std::string::npos);
  EXPECT_EQ(nameless.position, "line 10");
  EXPECT_TRUE(parse_nccl_log(old, Collective::all_gather));

  const std::string cut = old.substr(old.find("#                                        out"));
  EXPECT_NE(parse_nccl_log(cut, Collective::all_reduce).message.find("beginning"),
            std::string::npos);
  EXPECT_FALSE(parse_nccl_log(log_of(kReduce, ""), std::nullopt));
  EXPECT_FALSE(is_nccl_log("machine,collective,ranks,bytes,time_us\n"));
}

}  // namespace
}  // namespace unisono::model
