#include "network_model/logs/benchmark_log.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace unisono::network_model {
namespace {

constexpr const char* kArguments =
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20\n"
    "#\n"
    "# Using devices\n";
constexpr const char* kColumns =
    "#\n"
    "#                                        out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
    "time   algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
    "(us)  (GB/s)  (GB/s)\n";
constexpr const char* kEnd =
    "# Out of bounds values : 0 OK\n"
    "# Avg bus bandwidth    : 20.1\n";

std::string rank_line(int rank, int group = 0) {
  return "#  Rank  " + std::to_string(rank) + " Group  " + std::to_string(group) +
         " Pid   7231 on    host-1 device  0 [0x1b] NVIDIA H100 80GB HBM3\n";
}

std::string ranks_list(int count) {
  std::string text;
  for (int rank = 0; rank < count; ++rank) {
    text += rank_line(rank);
  }
  return text;
}

std::string log_of(const std::string& name, const std::string& rows, int ranks = 2) {
  return name + kArguments + ranks_list(ranks) + kColumns + rows + kEnd;
}

constexpr const char* kReduce = "# Collective test starting: all_reduce_perf\n";
constexpr const char* kRow =
    "     1048576        262144     float     sum      -1    44.20   23.72   23.72      0    41.90 "
    "  "
    "25.03   25.03      0\n";
constexpr const char* kRows =
    "           8             2     float     sum      -1    13.67    0.00    0.00      0    13.10 "
    " "
    " 0.00    0.00      0\n"
    "host-1:7231:7240 [0] NCCL INFO comm 0x55 is up\n"
    "     1048576        262144     float     sum      -1    44.20   23.72   23.72      0    41.90 "
    " "
    "25.03   25.03      0\n";

Parsed<BenchmarkLog> parse(const std::string& text, const LogQuestion& question = {}) {
  EXPECT_TRUE(is_benchmark_log(text));
  return parse_benchmark_log(text, question);
}

// Returns the rows left out, such as "5 of sendrecv_perf, ...; 1 of 0 bytes, ...".
std::string left_out(const BenchmarkLog& log) {
  std::string text;
  for (const Account::LeftOut& one : log.account.left_out) {
    text += (text.empty() ? "" : "; ") + std::to_string(one.count) + " " + one.why;
  }
  return text;
}

TEST(BenchmarkLog, ReadsWhatNcclTestsPrints) {
  const auto log = parse(log_of(kReduce, kRows));
  ASSERT_TRUE(log) << log.message;
  ASSERT_EQ(log.value->table.rows.size(), 2U);
  const Table::Row& row = log.value->table.rows[1];
  EXPECT_EQ(row.machine, "NVIDIA H100 80GB HBM3 x 2");
  EXPECT_EQ(row.point.collective, Collective::all_reduce);
  EXPECT_EQ(row.point.ranks, 2);
  EXPECT_DOUBLE_EQ(row.point.bytes, 1048576);
  EXPECT_NEAR(row.point.time_s, 44.2e-6, 1e-12);
  EXPECT_EQ(log.value->account.read(), 2);
  EXPECT_EQ(log.value->account.used, 2);
  EXPECT_TRUE(log.value->account.assumed.empty());
  EXPECT_FALSE(is_benchmark_log("machine,collective,ranks,bytes,time_us\n"));
}

TEST(BenchmarkLog, ReadsSeveralTestsAndTheInPlaceTime) {
  const std::string in_place =
      "         128             2     float    none      -1      N/A     N/A     N/A    N/A    "
      "13.1    0.01    0.00      0\n";
  const auto log = parse(log_of(kReduce, kRows) +
                         log_of("# Collective test starting: alltoall_perf\n", in_place));
  ASSERT_TRUE(log) << log.message;
  ASSERT_EQ(log.value->table.rows.size(), 3U);
  EXPECT_EQ(log.value->table.rows[2].point.collective, Collective::all_to_all);
  EXPECT_EQ(log.value->table.rows[2].point.ranks, 2);
  EXPECT_NEAR(log.value->table.rows[2].point.time_s, 13.1e-6, 1e-12);
}

// The rows of an unknown test do not belong to the previous test.
TEST(BenchmarkLog, LeavesOutTestsThatAreNotKnown) {
  for (const char* heading : {"# Collective test starting: sendrecv_perf\n",
                              "# Collective test starting: hypercube_perf_mpi\n",
                              "+ mpirun -np 2 ./build/sendrecv_perf -b 8\n"}) {
    const auto log = parse(log_of(kReduce, kRow) + log_of(heading, std::string(kRow) + kRow));
    ASSERT_TRUE(log) << log.message;
    EXPECT_EQ(log.value->table.rows.size(), 1U) << heading;
    EXPECT_NE(left_out(*log.value).find("2 of "), std::string::npos) << left_out(*log.value);
  }
  const auto nameless = parse(log_of(kReduce, kRow) + log_of("", kRow));
  EXPECT_FALSE(nameless);
  EXPECT_NE(nameless.message.find("which collective"), std::string::npos);
}

TEST(BenchmarkLog, TakesTheNameFromTheCommandLine) {
  const auto log = parse(log_of("$ ./build/all_reduce_perf -b 8 -e 64\n", kRow) +
                         log_of("srun ./alltoall_perf -b 8\n",
                                "     1048576        131072     float    none      -1    44.20   "
                                "23.72   11.86      0    41.90   25.03   12.51    N/A\n"));
  ASSERT_TRUE(log) << log.message;
  ASSERT_EQ(log.value->table.rows.size(), 2U);
  EXPECT_EQ(log.value->table.rows[1].point.collective, Collective::all_to_all);
}

TEST(BenchmarkLog, TakesOnlyTheCollectiveThatIsAskedFor) {
  const std::string text = log_of(kReduce, kRow);
  EXPECT_TRUE(parse(text, {.collective = Collective::all_reduce}));
  const auto other = parse(text, {.collective = Collective::all_gather});
  EXPECT_FALSE(other);
  EXPECT_NE(other.message.find("only all_gather was requested"), std::string::npos)
      << other.message;
}

TEST(BenchmarkLog, SaysWhatIsMissing) {
  const std::string old = log_of("", kRows);
  const auto nameless = parse(old);
  EXPECT_FALSE(nameless);
  EXPECT_NE(nameless.message.find("which collective"), std::string::npos);
  EXPECT_EQ(nameless.position, "line 10");
  EXPECT_TRUE(parse(old, {.collective = Collective::all_reduce}));
  EXPECT_FALSE(parse(log_of(kReduce, "")));
  // No rank is listed, and a broadcast has the same bandwidths for any rank count.
  const std::string bare = std::string(kReduce) + kColumns + kRow;
  const std::string broadcast = "# Collective test starting: broadcast_perf\n" + bare.substr(44);
  const auto unknown = parse(broadcast);
  EXPECT_FALSE(unknown);
  EXPECT_NE(unknown.message.find("how many ranks"), std::string::npos) << unknown.message;
  const auto said = parse(broadcast, {.ranks = 4});
  ASSERT_TRUE(said) << said.message;
  EXPECT_EQ(said.value->table.rows[0].point.ranks, 4);
}

TEST(BenchmarkLog, DropsWhatLaunchersWriteBeforeLines) {
  const std::string text = log_of(kReduce, kRows);
  const std::vector<std::function<std::string(int)>> launchers = {
      [](int) { return "[1,0]<stdout>:"; },
      [](int) { return "[1,0]<stdout>: "; },
      [](int) { return "[prterun-node7-2211@1,0]<stdout>: "; },
      [](int) { return "0: "; },
      [](int) { return "  0: "; },
      [](int) { return "[default0]:"; },
      [](int) { return "worker-0  | "; },
      [](int) { return "[pod/nccl-launcher-x7k2p/main] "; },
      [](int line) { return "2026-01-26T10:00:" + std::to_string(10 + line) + ".123456789Z "; },
      [](int line) { return "Jan 26 10:00:" + std::to_string(10 + line) + " node7: "; },
      [](int line) {
        return "[2026-01-26 10:00:" + std::to_string(10 + line) + ",5" + std::to_string(line) +
               "] [rank0] ";
      },
      [](int line) { return "node7:0: " + std::to_string(1700000000 + line) + ".25 "; }};
  for (const auto& launcher : launchers) {
    std::string labelled = "[1,0]<stderr>:Authorization required\n";
    int number = 0;
    for (std::size_t at = 0; at < text.size(); ++number) {
      const std::size_t end = text.find('\n', at) + 1;
      labelled += launcher(number) + text.substr(at, end - at);
      at = end;
    }
    const auto log = parse(labelled);
    ASSERT_TRUE(log) << launcher(0) << log.message;
    EXPECT_EQ(log.value->table.rows.size(), 2U) << launcher(0);
    EXPECT_EQ(log.value->table.rows[0].point.ranks, 2) << launcher(0);
  }
}

// mpirun --xml, and the files in which Docker stores the output of containers.
TEST(BenchmarkLog, DropsWhatLaunchersWriteAroundLines) {
  const std::pair<const char*, const char*> around[] = {
      {"<stdout rank=\"0\">", "&#010;</stdout>"},
      {R"({"log":")", R"(\n","stream":"stdout","time":"2026-01-26T10:00:00.1Z"})"}};
  const std::string text = log_of(kReduce, kRows);
  for (const auto& [before, behind] : around) {
    std::string wrapped;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      wrapped += before + text.substr(at, end - at) + behind + "\n";
      at = end + 1;
    }
    const auto log = parse(wrapped);
    ASSERT_TRUE(log) << before << log.message;
    EXPECT_EQ(log.value->table.rows.size(), 2U) << before;
    EXPECT_EQ(log.value->table.rows[0].machine, "NVIDIA H100 80GB HBM3 x 2") << before;
  }
}

constexpr const char* kAloneRow =
    "     1048576        262144     float     sum      -1     4.20  249.66    0.00      0     0.28 "
    "3744.91    0.00      0\n";

// Without MPI each process is a job of one rank, however many processes there are.
TEST(BenchmarkLog, DoesNotTakeProcessesAloneForRanks) {
  std::string labelled;
  for (const char* label : {"0: ", "1: "}) {
    const std::string text = log_of(kReduce, kAloneRow, 1);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at) + 1;
      labelled += label + text.substr(at, end - at);
      at = end;
    }
  }
  const std::string mixed = std::string(kReduce) + kReduce + kArguments + kArguments +
                            rank_line(0) + rank_line(0) + kColumns + kColumns + kAloneRow +
                            kAloneRow + kEnd + kEnd;
  for (const std::string& text : {labelled, mixed}) {
    const auto log = parse(text);
    EXPECT_FALSE(log);
    EXPECT_NE(log.message.find("2 rows of 1 rank"), std::string::npos) << log.message;
  }
  EXPECT_NE(parse(mixed).message.find("without MPI"), std::string::npos) << parse(mixed).message;
  const std::string alone = log_of(kReduce, kAloneRow, 1);
  EXPECT_NE(parse(alone + alone).message.find("without MPI"), std::string::npos);
}

TEST(BenchmarkLog, TakesTheSizeOfSplitGroups) {
  std::string ranks;
  for (int rank = 0; rank < 16; ++rank) {
    ranks += rank_line(rank, rank % 8);
  }
  const auto log = parse(std::string(kReduce) + kArguments + ranks + kColumns + kRow + kEnd);
  ASSERT_TRUE(log) << log.message;
  EXPECT_EQ(log.value->table.rows[0].point.ranks, 2);
  EXPECT_EQ(log.value->table.rows[0].machine, "NVIDIA H100 80GB HBM3 x 2");
  ASSERT_EQ(log.value->account.assumed.size(), 1U);
  EXPECT_EQ(log.value->account.assumed[0], "2 ranks, the size of each of 8 groups; 16 are listed");
}

TEST(BenchmarkLog, RefusesRanksThatContradictTheBandwidths) {
  const auto log = parse(log_of(kReduce, kRow, 8));
  EXPECT_FALSE(log);
  EXPECT_NE(log.message.find("lists 8 ranks, but busbw / algbw is 1, which means 2 ranks"),
            std::string::npos)
      << log.message;
}

// The bandwidths determine the rank count if the beginning of the log is missing.
TEST(BenchmarkLog, CountsRanksByTheBandwidths) {
  const std::string row =
      "    67108864      16777216     float     sum      -1    400.0  167.77  293.60      0    "
      "401.0  "
      "167.35  292.86      0\n";
  const LogQuestion question{.collective = Collective::all_reduce};
  for (const std::string& text : {row, kColumns + row}) {
    const auto log = parse(text, question);
    ASSERT_TRUE(log) << log.message;
    EXPECT_EQ(log.value->table.rows[0].point.ranks, 8);
    EXPECT_FALSE(log.value->account.assumed.empty());
  }
}

TEST(BenchmarkLog, LeavesOutRowsThatSayNothing) {
  const std::string zero =
      "           0             0     float     sum      -1     5.10    0.00    0.00      0     "
      "5.00 "
      "  0.00    0.00      0\n";
  const std::string cut = "     2097152        524288     float     sum      -1\n";
  const std::string other_time =
      "     1048576        262144     float     sum      -1     4.42   23.72   23.72      0    "
      "41.90 "
      "  25.03   25.03      0\n";
  const auto log = parse(log_of(kReduce, zero + kRow + cut + other_time));
  ASSERT_TRUE(log) << log.message;
  EXPECT_EQ(log.value->table.rows.size(), 1U);
  EXPECT_EQ(left_out(*log.value),
            "1 of 0 bytes, which move nothing; 1 that are cut off, or mixed with other output; 1 "
            "whose size, time and algbw contradict each other");
}

TEST(BenchmarkLog, LeavesOutWrongResults) {
  const auto row = [](const char* out_of_place, const char* in_place) {
    return std::string(
               "     1048576        262144     float     sum      -1    44.20   23.72   "
               "23.72  ") +
           out_of_place + "    41.90   25.03   25.03  " + in_place + "\n";
  };
  const auto log = parse(
      log_of(kReduce, row("0", "0") + row("262144", "0") + row("0", "1e+06") + row("N/A", "N/A")));
  ASSERT_TRUE(log) << log.message;
  EXPECT_EQ(log.value->table.rows.size(), 2U);
  EXPECT_EQ(left_out(*log.value), "2 with wrong results (#wrong)");
  const auto all = parse(log_of(kReduce, row("1", "1")));
  EXPECT_FALSE(all);
  EXPECT_NE(all.message.find("1 row with wrong results"), std::string::npos) << all.message;
  // Results were checked, but the columns do not show which failed.
  std::string failed = log_of(kReduce, row("N/A", "N/A"));
  failed.replace(failed.find("0 OK"), 4, "8 FAILED");
  EXPECT_FALSE(parse(failed));
}

// A log with more processes is refused, because each process takes memory.
TEST(BenchmarkLog, RefusesLinesOfTooManyProcesses) {
  std::string text;
  for (int process = 0; process < 10'002; ++process) {
    text += std::to_string(process) + ": # nThread 1 nGpus 1\n";
  }
  const auto log = parse(text);
  EXPECT_FALSE(log);
  EXPECT_NE(log.message.find("more than 10000 processes"), std::string::npos) << log.message;
}

// Other versions and related programs have other columns.
TEST(BenchmarkLog, FindsColumnsByTheirNames) {
  const std::string blank_operation =
      "     1048576        262144     float              -1    44.20   23.72   11.86      0    "
      "41.90 "
      "  25.03   12.51      0\n";
  const auto old = parse(log_of("# Collective test starting: all_gather_perf\n", blank_operation));
  ASSERT_TRUE(old) << old.message;
  EXPECT_NEAR(old.value->table.rows[0].point.time_s, 44.2e-6, 1e-12);
  const auto relative =
      parse("# Collective test starting: allreduce_test_perf\n" + std::string(kArguments) +
            ranks_list(2) +
            "#                                        in-place                       out-of-place\n"
            "#       size         count     time   algbw   busbw  #wrong     time   algbw   busbw  "
            "#wrong\n"
            "     1048576        262144    41.90   25.03   25.03       0\n"
            "     1048576        262144    41.90   25.03   25.03       0    44.20   23.72   23.72  "
            "     0\n");
  ASSERT_TRUE(relative) << relative.message;
  ASSERT_EQ(relative.value->table.rows.size(), 2U);
  EXPECT_NEAR(relative.value->table.rows[0].point.time_s, 41.9e-6, 1e-12);  // in place only
  EXPECT_NEAR(relative.value->table.rows[1].point.time_s, 44.2e-6, 1e-12);
}

// One half of a row is blank, or a row is cut off.
TEST(BenchmarkLog, ReadsTheHalfThatIsThere) {
  const std::string first = "     1048576        262144     float     sum      -1";
  const std::string half = "    44.20   23.72   23.72      0";
  const std::string blank(half.size(), ' ');
  for (const std::string& row : {first + half, first + half + blank, first + blank + half}) {
    const auto log = parse(log_of(kReduce, row + "\n"));
    ASSERT_TRUE(log) << log.message << row;
    EXPECT_NEAR(log.value->table.rows[0].point.time_s, 44.2e-6, 1e-12);
    EXPECT_EQ(log.value->table.rows[0].point.ranks, 2);
  }
  const std::string wrong = first + blank + "    44.20   23.72   23.72      7";
  EXPECT_NE(parse(log_of(kReduce, wrong + "\n")).message.find("wrong results"), std::string::npos);
  const std::string cut = first + "    44.20   23.72\n";
  EXPECT_EQ(left_out(*parse(log_of(kReduce, kRow + cut)).value),
            "1 that are cut off, or mixed with other output");
  for (const std::string other : {"host-1:7231:7260 [0] NCCL WARN slow", "host-1:"}) {
    EXPECT_EQ(left_out(*parse(log_of(kReduce, kRow + other + " " + kRow)).value),
              "1 that are cut off, or mixed with other output");
  }
}

// Output with nccl-tests -T and -C 1.
TEST(BenchmarkLog, KnowsColumnsThatOptionsAdd) {
  const auto with = [](const std::string& from, const std::string& to, std::string text) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
    return text;
  };
  const std::string plain = log_of(kReduce, kRow);
  const std::string heading = "busbw #wrong\n";
  std::string stamped = with(heading, "busbw #wrong           timestamp\n", plain);
  stamped = with("25.03      0\n", "25.03      0  2026-01-26 10:00:11\n", stamped);
  const auto log = parse(stamped);
  ASSERT_TRUE(log) << log.message;
  EXPECT_NEAR(log.value->table.rows[0].point.time_s, 44.2e-6, 1e-12);
  const auto of_cpu = parse(with("   time ", "cputime ", plain));
  EXPECT_FALSE(of_cpu);
  EXPECT_NE(of_cpu.message.find("-C 1"), std::string::npos) << of_cpu.message;
}

TEST(BenchmarkLog, NamesPiecesOfRows) {
  const std::string pieces =
      "     1048576  host-1:7231:7240 [0] NCCL INFO comm 0x55 is up\n"
      "      262144     float     sum      -1    44.20   23.72   23.72      0\n";
  const auto log = parse(log_of(kReduce, kRow + pieces));
  ASSERT_TRUE(log) << log.message;
  EXPECT_EQ(log.value->table.rows.size(), 1U);
  EXPECT_EQ(left_out(*log.value), "2 that are cut off, or mixed with other output");
}

// Sizes that were abbreviated by hand, or that exceed every number.
TEST(BenchmarkLog, NamesRowsWhoseSizeIsNoNumber) {
  std::string shortened = kRow;
  shortened.replace(shortened.find("1048576"), 7, "1M");
  std::string beyond = kRow;
  beyond.replace(beyond.find("1048576"), 7, std::string(400, '9'));
  const auto log = parse(log_of(kReduce, kRow + shortened + beyond));
  ASSERT_TRUE(log) << log.message;
  EXPECT_EQ(log.value->table.rows.size(), 1U);
  EXPECT_EQ(left_out(*log.value),
            "1 that are cut off, or mixed with other output; 1 with an impossible size");
}

TEST(BenchmarkLog, TakesNoTimesInOtherUnits) {
  std::string nccl = log_of(kReduce, kRow);
  for (std::size_t at = nccl.find("(us)"); at != std::string::npos; at = nccl.find("(us)")) {
    nccl.replace(at, 4, "(ms)");
  }
  const std::string osu =
      "mpirun -n 4 osu_allreduce\n"
      "# OSU MPI Allreduce Latency Test v7.2\n"
      "# Size       Avg Latency(ms)\n"
      "1048576                 0.51\n";
  const std::string intel =
      "# Benchmarking Allreduce\n"
      "# #processes = 4\n"
      "       #bytes #repetitions  t_min[msec]  t_max[msec]  t_avg[msec]\n"
      "      1048576           40         0.50         0.52         0.51\n";
  for (const std::string& text : {nccl, osu, intel}) {
    const auto log = parse(log_of(kReduce, kRow) + text);
    ASSERT_TRUE(log) << log.message;
    EXPECT_EQ(log.value->table.rows.size(), 1U) << text;
    EXPECT_EQ(log.value->account.left_out.size(), 1U) << text;
  }
}

TEST(BenchmarkLog, ReadsColouredLogs) {
  std::string coloured;
  const std::string text = log_of(kReduce, kRow);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    coloured += "\x1b[36mworker-0  |\x1b[0m \x1b[1m" + text.substr(at, end - at) + "\x1b[0m\r\n";
    at = end + 1;
  }
  const auto log = parse(coloured);
  ASSERT_TRUE(log) << log.message;
  EXPECT_EQ(log.value->table.rows[0].machine, "NVIDIA H100 80GB HBM3 x 2");
}

// Each of several runs in one file has its own ranks. A test of other types or operations is in the
// same table.
TEST(BenchmarkLog, ReadsRunsOfOtherRankCounts) {
  const std::string of_four =
      "    67108864      16777216     float     sum      -1    400.0  167.77  251.66      0    "
      "401.0  167.35  251.03      0\n";
  const std::string of_half =
      "    67108864      33554432      half    prod      -1    400.0  167.77  251.66    N/A    "
      "401.0  167.35  251.03    N/A\n";
  const auto log = parse(log_of(kReduce, kRow) + log_of(kReduce, of_four + of_half, 4));
  ASSERT_TRUE(log) << log.message;
  ASSERT_EQ(log.value->table.rows.size(), 3U);
  EXPECT_EQ(log.value->table.rows[0].point.ranks, 2);
  EXPECT_EQ(log.value->table.rows[1].point.ranks, 4);
  EXPECT_EQ(log.value->table.rows[2].point.ranks, 4);
}

std::string json_log(const std::string& bounds) {
  return R"({"version":1,"args":["./build/all_reduce_perf","-g","8"],"env":["HOME=/root"],)"
         R"("config":{"nthreads":1,"ngpus":8},)"
         R"("devices":[{"rank":0,"group":0,"device_info":"NVIDIA H100"},)"
         R"({"rank":1,"group":0,"device_info":"NVIDIA H100"}],)"
         R"("results":[{"size":1048576,"count":262144,"type":"float","root":"    -1",)"
         R"("out_of_place":{"time":44.2,"alg_bw":23.72,"bus_bw":41.52,"nwrong":0.0},)"
         R"("in_place":{"time":44.1,"alg_bw":23.78,"bus_bw":41.61,"nwrong":"N/A"},)"
         R"("experiment_name":"AllReduce"},)"
         R"({"size":2097152,"count":524288,"type":"float","root":"    -1",)"
         R"("out_of_place":{"time":88.4,"alg_bw":23.72,"bus_bw":41.52,"nwrong":3.0},)"
         R"("in_place":{"time":88.2,"alg_bw":23.78,"bus_bw":41.61,"nwrong":0.0}}],)"
         R"("out_of_bounds":{"count":0,"okay":")" +
         bounds + "\"}}";
}

TEST(BenchmarkLog, ReadsTheJsonOfNcclTests) {
  const auto log = parse(json_log("true"));
  ASSERT_TRUE(log) << log.message;
  ASSERT_EQ(log.value->table.rows.size(), 1U);
  EXPECT_EQ(log.value->table.rows[0].point.collective, Collective::all_reduce);
  EXPECT_EQ(log.value->table.rows[0].point.ranks, 8);  // the list is incomplete, as with -g 8
  EXPECT_NEAR(log.value->table.rows[0].point.time_s, 44.2e-6, 1e-12);
  EXPECT_EQ(left_out(*log.value), "1 with wrong results (#wrong)");
  EXPECT_EQ(log.value->account.assumed.size(), 1U);
  EXPECT_FALSE(parse(R"({"results": 3, "x": {"out_of_place": 1}})"));
}

// Its first version wrote the devices into the configuration; other tools write true and false.
TEST(BenchmarkLog, ReadsOtherVersionsOfTheJsonOfNcclTests) {
  std::string older = json_log("true");
  const std::string inside = R"("ngpus":8},"devices":)";
  older.replace(older.find(inside), inside.size(), R"("ngpus":8,"devices":)");
  const std::string results = R"(],"results")";
  older.replace(older.find(results), results.size(), R"(]},"results")");
  const auto log = parse(older);
  ASSERT_TRUE(log) << log.message;
  EXPECT_EQ(log.value->table.rows[0].machine, "NVIDIA H100 x 8");

  std::string failed = json_log("false");
  failed.replace(failed.find("\"false\""), 7, "false");
  failed.replace(failed.find("3.0"), 3, "0.0");
  EXPECT_FALSE(parse(failed));
  std::string strange = json_log("true");
  strange.replace(strange.find("3.0"), 3, "\"nan\"");
  const auto wrong = parse(strange);
  ASSERT_TRUE(wrong) << wrong.message;
  EXPECT_EQ(left_out(*wrong.value), "1 with wrong results (#wrong)");
  EXPECT_FALSE(parse(R"({"nccl_version":22902,"results":[]})"));
}

TEST(BenchmarkLog, ReadsTablesOfOsu) {
  const std::string allreduce =
      "# OSU MPI Allreduce Latency Test v7.2\n"
      "# Datatype: MPI_FLOAT.\n"
      "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
      "4                       1.87              1.80              1.95        1000\n"
      "1048576               512.33            500.00            520.00         100\n";
  const std::string others =
      "\n# OSU MPI-CUDA Allgather Latency Test v5.6\n"
      "# Size       Avg Latency(us)\n"
      "1024                    4.21\n"
      "# OSU MPI Bi-Directional Bandwidth Test v7.2\n"
      "# Size      Bandwidth (MB/s)\n"
      "1                       3.10\n"
      "# OSU MPI Barrier Latency Test v7.2\n"
      "# Avg Latency(us)\n"
      "             2.91\n";
  const auto log = parse(allreduce + others, {.ranks = 4});
  ASSERT_TRUE(log) << log.message;
  ASSERT_EQ(log.value->table.rows.size(), 3U);
  EXPECT_EQ(log.value->table.rows[1].point.ranks, 4);
  EXPECT_NEAR(log.value->table.rows[1].point.time_s, 512.33e-6, 1e-9);
  EXPECT_EQ(log.value->table.rows[2].point.collective, Collective::all_gather);
  EXPECT_DOUBLE_EQ(log.value->table.rows[2].point.bytes, 4096);  // all four parts together
  EXPECT_EQ(log.value->account.left_out_in_all(), 2) << left_out(*log.value);
  const auto unsaid = parse(allreduce);
  EXPECT_FALSE(unsaid);
  EXPECT_NE(unsaid.message.find("OSU"), std::string::npos);
  EXPECT_NE(unsaid.message.find("add -n RANKS"), std::string::npos);
}

TEST(BenchmarkLog, ReadsTheNameThatOsuGivesToAllToAll) {
  const auto log = parse(
      "# OSU MPI All-to-All Personalized Exchange Latency Test v7.5\n"
      "# Datatype: MPI_CHAR.\n"
      "# Size       Avg Latency(us)\n"
      "1024                   10.29\n",
      {.ranks = 4});
  ASSERT_TRUE(log) << log.message;
  EXPECT_EQ(log.value->table.rows[0].point.collective, Collective::all_to_all);
  EXPECT_DOUBLE_EQ(log.value->table.rows[0].point.bytes, 4096);
}

TEST(BenchmarkLog, CountsNoRanksByInfiniteBandwidths) {
  const auto log = parse(log_of(kReduce,
                                "     1048576        262144     float     sum      -1    44.20   "
                                "23.72   23.72      0    41.90 "
                                "  25.03   25.03      0\n"
                                "     2097152        524288     float     sum      -1     0.00     "
                                "inf     inf      0     0.00 "
                                "    inf     inf      0\n"));
  ASSERT_TRUE(log) << log.message;
  EXPECT_EQ(log.value->table.rows.size(), 1U);
  ASSERT_EQ(log.value->account.left_out.size(), 1U);
  EXPECT_EQ(log.value->account.left_out[0].why, "without a time");
}

TEST(BenchmarkLog, SaysThatDataTypesAndOperationsAreMixed) {
  const auto assumed = [](const std::string& text) {
    const auto log = parse(text, {.ranks = 2});
    EXPECT_TRUE(log) << log.message;
    return log && !log.value->account.assumed.empty() ? log.value->account.assumed.back()
                                                      : std::string();
  };
  const auto row = [](const char* kind) {
    return std::string("     1048576        262144     ") + kind +
           "      -1    44.20   23.72   23.72      0    41.90   25.03   25.03      0\n";
  };
  EXPECT_EQ(assumed(log_of(kReduce, row("float     sum") + row("float     sum"))), "");
  EXPECT_EQ(assumed(log_of(kReduce, row("float     sum") + row(" half     sum"))),
            "all_reduce of float sum and half sum takes the same time");
  EXPECT_EQ(assumed(log_of("# Collective test starting: broadcast_perf\n",
                           row("float    none") + row(" int8    none") + row("uint8    none"))),
            "broadcast of float, int8 and uint8 takes the same time");
  std::string root_0 = row("float    none");
  std::string root_1 = root_0;
  root_0.replace(root_0.find("-1"), 2, " 0");
  root_1.replace(root_1.find("-1"), 2, " 1");
  EXPECT_EQ(assumed(log_of("# Collective test starting: broadcast_perf\n", root_0 + root_0)), "");
  EXPECT_EQ(assumed(log_of("# Collective test starting: broadcast_perf\n", root_0 + root_1)),
            "broadcast of float root 0 and float root 1 takes the same time");
  const std::string osu =
      "# OSU MPI Allreduce Latency Test v7.5\n# Datatype: MPI_FLOAT.\n# Size  Avg Latency(us)\n"
      "1024 4.21\n";
  std::string other = osu;
  other.replace(other.find("MPI_FLOAT"), 9, "MPI_INT");
  EXPECT_EQ(assumed(osu + other), "all_reduce of MPI_FLOAT and MPI_INT takes the same time");
  const std::string intel =
      "datatype: float32\nreduction: sum\n# Benchmarking: allreduce\n# #processes: 2\n"
      "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec] stddev[%]\n4 16 4.20 4.40 4.30 "
      "1.0\n";
  other = intel;
  other.replace(other.find("sum"), 3, "max");
  EXPECT_EQ(assumed(intel + other),
            "all_reduce of float32 max and float32 sum takes the same time");
}

TEST(BenchmarkLog, ReadsTheRanksOfOsuFromItsCommand) {
  const std::string table =
      "# OSU NCCL-CUDA Allreduce Latency Test v7.2\n"
      "# Size       Avg Latency(us)\n"
      "1024                    4.21\n";
  for (const char* command : {"$ mpirun -np 16 --map-by ppr:8:node ./osu_xccl_allreduce -d cuda\n",
                              "+ srun -N 2 -c 8 --ntasks=16 /opt/omb/osu_xccl_allreduce\n",
                              "mpiexec -n 16 osu_xccl_allreduce -i 100 -n 3\n"}) {
    const auto log = parse(command + table);
    ASSERT_TRUE(log) << log.message << command;
    EXPECT_EQ(log.value->table.rows[0].point.ranks, 16) << command;
  }
  // The command does not apply to the next table.
  EXPECT_FALSE(parse("mpirun -np 16 osu_xccl_allreduce\n" + table + table));
}

TEST(BenchmarkLog, ReadsTablesOfUcc) {
  const auto text = [](const char* collective, const char* bandwidth) {
    return std::string("Collective:             ") + collective +
           "\nMemory type:            host\n"
           "       Count        Size                Time, us                     Bandwidth, GB/s\n"
           "                                 avg         min         max         avg         min\n"
           "       65536      262144       76.46       72.62       82.30       " +
           bandwidth + "        6.32        5.57\n";
  };
  const auto reduce = parse(text("Allreduce", "6.00"));
  ASSERT_TRUE(reduce) << reduce.message;
  EXPECT_EQ(reduce.value->table.rows[0].point.ranks, 8);
  EXPECT_DOUBLE_EQ(reduce.value->table.rows[0].point.bytes, 262144);
  const auto gather = parse(text("Allgather", "24.00"));
  ASSERT_TRUE(gather) << gather.message;
  EXPECT_EQ(gather.value->table.rows[0].point.ranks, 8);
  EXPECT_DOUBLE_EQ(gather.value->table.rows[0].point.bytes, 8.0 * 262144);
  // Some versions count one part, which goes to each other rank: 7 times the size among 8 ranks.
  const auto of_part = parse(text("Allreduce", "24.00"));
  ASSERT_TRUE(of_part) << of_part.message;
  EXPECT_EQ(of_part.value->table.rows[0].point.ranks, 8);
  EXPECT_DOUBLE_EQ(of_part.value->table.rows[0].point.bytes, 262144);
  std::string millis = text("Allreduce", "6.00");
  millis.replace(millis.find("Time, us"), 8, "Time, ms");
  EXPECT_NE(parse(millis).message.find("another unit than microseconds"), std::string::npos);
  EXPECT_FALSE(parse(text("Allreduce", "25.90")));
  EXPECT_TRUE(parse(text("Allreduce", "25.90"), {.ranks = 8}));
  const auto barrier = parse(
      "Collective:             Barrier\n"
      "         N/A         N/A        3.10        3.00        3.20         N/A         N/A  "
      "N/A\n");
  EXPECT_NE(barrier.message.find("1 row of a barrier"), std::string::npos) << barrier.message;
}

TEST(BenchmarkLog, ReadsTablesOfOneCclAndIntelMpi) {
  const std::string oneccl =
      "# Benchmarking: allreduce\n"
      "# #processes: 2\n"
      "        #bytes  #elem_count #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]  stddev[%]\n"
      "             4            1           16         4.20         4.40         4.30       "
      "1.00\n";
  const std::string intel =
      "# Benchmarking Allgather \n"
      "# #processes = 4 \n"
      "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
      "            0         1000         0.10         0.10         0.10\n"
      "         1024         1000         4.20         4.40         4.30\n";
  const auto log = parse(oneccl + intel);
  ASSERT_TRUE(log) << log.message;
  ASSERT_EQ(log.value->table.rows.size(), 2U);
  EXPECT_EQ(log.value->table.rows[0].point.ranks, 2);
  EXPECT_NEAR(log.value->table.rows[0].point.time_s, 4.3e-6, 1e-12);
  EXPECT_EQ(log.value->table.rows[1].point.ranks, 4);
  EXPECT_DOUBLE_EQ(log.value->table.rows[1].point.bytes, 4096);
}

// A run of all Intel MPI benchmarks begins with messages between two ranks.
TEST(BenchmarkLog, NamesOtherTestsOfIntelMpi) {
  const auto log = parse(
      "# Benchmarking PingPong\n"
      "# #processes = 2\n"
      "       #bytes #repetitions      t[usec]   Mbytes/sec\n"
      "      1048576           40       100.00     10000.00\n"
      "# Benchmarking Allreduce\n"
      "# #processes = 4\n"
      "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
      "      1048576           40       500.00       520.00       510.00\n");
  ASSERT_TRUE(log) << log.message;
  EXPECT_EQ(log.value->table.rows.size(), 1U);
  EXPECT_EQ(left_out(*log.value), "1 of PingPong, which tests no collective of unisono");
}

}  // namespace
}  // namespace unisono::network_model
