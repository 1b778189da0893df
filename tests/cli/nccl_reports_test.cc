// Files of NCCL Inspector and answers of NCCL's RAS.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/failure.h"
#include "imports/imports.h"
#include "record/verdict.h"

namespace unisono::cli {
namespace {

using nlohmann::json;

constexpr double kDump = 1748030377000000;

std::string all_left_out(const ImportedRank& rank) {
  std::string text;
  for (const Account::LeftOut& one : rank.account.left_out) {
    text += std::to_string(one.count) + " " + one.why + "\n";
  }
  return text;
}

std::string refusal_of(const std::vector<ImportFile>& files) {
  try {
    read_imports(files);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

json inspected(int rank, int sequence, double dump_us, int took_us, const std::string& coll) {
  return {{"header", {{"id", "0xab"}, {"rank", rank}, {"n_ranks", 2}, {"nnodes", 1}}},
          {"metadata",
           {{"inspector_output_format_version", "v4.0"},
            {"dump_timestamp_us", dump_us},
            {"hostname", "node0"},
            {"pid", 100 + rank}}},
          {"coll_perf",
           {{"coll", coll},
            {"coll_sn", sequence},
            {"coll_msg_size_bytes", 4096},
            {"coll_exec_time_us", took_us},
            {"coll_timing_source", "kernel_gpu"}}}};
}

std::string lines(const std::vector<json>& records) {
  std::string text;
  for (const json& record : records) {
    text += record.dump() + "\n";
  }
  return text;
}

TEST(NcclInspector, KeepsTheCallsThatAllRanksHave) {
  const auto ranks =
      read_imports({{.path = "a",
                     .text = lines({inspected(0, 3, kDump, 60, "AllReduce"),
                                    inspected(0, 4, kDump + 500, 60, "AllReduce"),
                                    inspected(0, 1, kDump + 900, 20, "AllGather")})},
                    {.path = "b",
                     .text = lines({inspected(1, 3, kDump, 50, "AllReduce"),
                                    inspected(1, 1, kDump + 901, 30, "AllGather")})}});
  ASSERT_EQ(ranks.size(), 2U);
  ASSERT_EQ(ranks[0].calls.size(), 2U);
  EXPECT_EQ(ranks[0].calls[0].collective, "all_reduce");
  EXPECT_DOUBLE_EQ(ranks[0].calls[0].end_us.value(), kDump);
  EXPECT_DOUBLE_EQ(ranks[0].calls[0].took_us, 60);
  EXPECT_EQ(ranks[1].calls[1].collective, "all_gather");
  EXPECT_DOUBLE_EQ(ranks[1].calls[1].bytes, 8192);  // the bytes of both ranks
  EXPECT_EQ(all_left_out(ranks[0]),
            "1 that not all ranks with a file have: NCCL Inspector may keep only the last one "
            "between two dumps\n");
}

// The calls of one dump have one time, although they ended one after the other.
TEST(NcclInspector, OrdersTheCallsOfOneDump) {
  const auto ranks = read_imports({{.path = "a",
                                    .text = lines({inspected(0, 1, kDump, 500, "AllReduce"),
                                                   inspected(0, 2, kDump, 10, "AllReduce")})}});
  ASSERT_EQ(ranks.at(0).calls.size(), 2U);
  EXPECT_DOUBLE_EQ(ranks[0].calls[0].end_us.value(), kDump - 10);
  EXPECT_DOUBLE_EQ(ranks[0].calls[1].end_us.value(), kDump);
}

TEST(NcclInspector, TakesTheTimesOfKernels) {
  json record = inspected(0, 1, kDump, 40, "AllReduce");
  record["coll_perf"]["event_trace_ts"] = {
      {"coll_start_ts", kDump - 100},
      {"kernel_events",
       json::array({{{"kernel_start_ts", kDump - 80}, {"kernel_stop_ts", kDump - 30}},
                    {{"kernel_start_ts", kDump - 79}, {"kernel_stop_ts", kDump - 20}}})}};
  const ImportedRank rank = read_imports({{.path = "a", .text = lines({record})}}).at(0);
  EXPECT_DOUBLE_EQ(rank.calls.at(0).start_us, kDump - 80);
  EXPECT_DOUBLE_EQ(rank.calls.at(0).end_us.value(), kDump - 20);
  EXPECT_DOUBLE_EQ(rank.calls.at(0).issued_us, kDump - 100);
  EXPECT_FALSE(rank.has_seen_ends);
}

TEST(NcclInspector, GivesTheHeaderOfADumpToItsRecords) {
  json stats = inspected(0, 1, kDump, 1, "AllReduce");
  stats["metadata"]["inspector_output_format_version"] = "v4.3";
  stats.erase("coll_perf");
  stats["dump_stats"] = {{"coll_records", 1}, {"coll_dropped_since_last_dump", 5}};
  const json record = {{"coll_perf", inspected(0, 1, kDump, 1, "AllReduce")["coll_perf"]}};
  const auto ranks = read_imports({{.path = "a", .text = lines({stats, record})}});
  EXPECT_EQ(ranks.at(0).calls.size(), 1U);
  EXPECT_NE(refusal_of({{.path = "a", .text = lines({stats, record, record})}})
                .find("line 3: its dump_stats counts fewer collectives"),
            std::string::npos);
  EXPECT_NE(refusal_of({{.path = "a", .text = lines({inspected(0, 1, 1, 1, "Reduce"), record})}}),
            "");
}

TEST(NcclInspector, RefusesContradictions) {
  const json good = inspected(0, 1, kDump, 1, "AllReduce");
  const auto with = [&good](const char* pointer, const json& value) {
    json changed = good;
    changed[json::json_pointer(pointer)] = value;
    return refusal_of({{.path = "a", .text = lines({good, changed})}});
  };
  EXPECT_NE(with("/header/rank", 2).find("rank 2 of 2 ranks"), std::string::npos);
  EXPECT_NE(with("/header/n_ranks", 4).find("has 4 ranks here and 2 before"), std::string::npos);
  EXPECT_NE(with("/metadata/pid", 7).find("rank 0 of communicator 0xab is also node0:100"),
            std::string::npos);
  EXPECT_NE(with("/coll_perf/coll_sn", 1).find("all_reduce #1 of rank 0 is there twice"),
            std::string::npos);
  EXPECT_NE(with("/coll_perf/coll_exec_time_us", -1).find("\"coll_exec_time_us\" is missing"),
            std::string::npos);
  EXPECT_NE(with("/metadata/inspector_output_format_version", "v5.0").find("v5.0"),
            std::string::npos);
}

json ras_rank(int rank, int all_reduces, int all_gathers) {
  return {{"rank", rank},
          {"host", "10.0.0.1"},
          {"pid", 1000 + rank},
          {"nvml_dev", rank},
          {"status", {{"init_state", 0}, {"async_error", 0}}},
          {"collective_counts", {{"AllReduce", all_reduces}, {"AllGather", all_gathers}}}};
}

json ras_communicator(const std::vector<json>& ranks, const std::vector<json>& missing, int size,
                      const std::string& hash = "0x1") {
  return {{"hash", hash},
          {"size", size},
          {"ranks_count", ranks.size()},
          {"missing_ranks_count", missing.size()},
          {"ranks", ranks},
          {"missing_ranks", missing}};
}

ImportFile ras_file(const std::vector<json>& communicators) {
  return {
      .path = "ras",
      .text = json{{"communicators_count", communicators.size()}, {"communicators", communicators}}
                  .dump()};
}

Finding first_finding(const ImportFile& file) {
  std::vector<ImportedRank> ranks = read_imports({file});
  const std::vector<Finding> findings = verdict_of(job_calls_of(ranks));
  return findings.empty() ? Finding{} : findings.front();
}

TEST(NcclRas, NamesTheRankThatIsBehind) {
  const Finding behind = first_finding(ras_file(
      {ras_communicator({ras_rank(0, 64, 3), ras_rank(1, 64, 3), ras_rank(2, 60, 3)}, {}, 3)}));
  EXPECT_EQ(behind.kind, "never called");
  EXPECT_EQ(behind.ranks, std::vector<int>{2});
  EXPECT_NE(behind.text.english.find("all_reduce #61 of world"), std::string::npos)
      << behind.text.english;
}

// A rank may be behind in one collective because it waits in another.
TEST(NcclRas, FindsNoOtherCallWhereOneOrderExplainsTheCounts) {
  const Finding behind = first_finding(ras_file(
      {ras_communicator({ras_rank(0, 64, 4), ras_rank(1, 63, 4), ras_rank(2, 63, 3)}, {}, 3)}));
  EXPECT_EQ(behind.kind, "never called");
  EXPECT_EQ(behind.ranks, std::vector<int>{2});
}

TEST(NcclRas, NamesTheRankThatDoesNotAnswer) {
  const json missing = {{"rank", 1}, {"host", "10.0.0.1"}, {"pid", 1001}, {"nvml_dev", 1}};
  const Finding gone = first_finding(
      ras_file({ras_communicator({ras_rank(0, 5, 0), ras_rank(2, 5, 0)}, {missing}, 3)}));
  EXPECT_EQ(gone.kind, "gone");
  EXPECT_EQ(gone.ranks, std::vector<int>{1});
}

TEST(NcclRas, SaysNothingOfEqualCounts) {
  EXPECT_EQ(
      first_finding(ras_file({ras_communicator({ras_rank(0, 5, 2), ras_rank(1, 5, 2)}, {}, 2)}))
          .kind,
      "");
}

TEST(NcclRas, ConnectsSmallerCommunicatorsByProcess) {
  json other = ras_rank(3, 9, 0);
  other["rank"] = 1;
  json behind = ras_rank(2, 8, 0);
  behind["rank"] = 0;
  const Finding finding = first_finding(ras_file(
      {ras_communicator({behind, other}, {}, 2, "0x2"),
       ras_communicator(
           {ras_rank(0, 5, 0), ras_rank(1, 5, 0), ras_rank(2, 5, 0), ras_rank(3, 5, 0)}, {}, 4)}));
  EXPECT_EQ(finding.ranks, std::vector<int>{2});
}

constexpr const char* kRasHead =
    "NCCL version 2.29.1 compiled with CUDA 13.0\n\nJob summary\n===========\n\n"
    "Communicators... (0.00s)\n=============\n\n"
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
    "    #  in group  per comm  per node  per comm  in group\n"
    "    0         1         2         4         8         8   RUNNING  MISMATCH\n\n";

TEST(NcclRas, ReadsText) {
  const std::string mismatch =
      "Warnings\n========\n\n#0-0 (78db921d1c117b4a) MISMATCH\n"
      "  Communicator ranks have different AllReduce operation counts\n"
      "  7 ranks have launched up to operation 64\n"
      "  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 1650386 on node n1\n\n";
  const Finding behind = first_finding({.path = "ras", .text = kRasHead + mismatch});
  EXPECT_EQ(behind.kind, "never called");
  EXPECT_EQ(behind.ranks, std::vector<int>{7});
  const Finding gone = first_finding(
      {.path = "ras",
       .text =
           kRasHead + std::string("Errors\n======\n\n#0-0 (cf264af53edbe986) INCOMPLETE\n"
                                  "  Missing communicator data from 1 rank\n"
                                  "  Rank 5 -- GPU 5 managed by process 3487984 on node n1\n\n")});
  EXPECT_EQ(gone.kind, "gone");
  EXPECT_EQ(gone.ranks, std::vector<int>{5});
}

// NCCL 2.28.9 omits a comma there.
TEST(NcclRas, ReadsMissingRanksWithoutAComma) {
  const std::string text =
      "OK\n{\"communicators_count\": 1, \"communicators\": [{\"hash\": \"0x1\", \"size\": 2, "
      "\"ranks_count\": 1, \"missing_ranks_count\": 1, \"ranks\": [" +
      ras_rank(0, 5, 0).dump() +
      "], \"missing_ranks\": [{\"rank\": 1, \"host\": \"a, \\\"b\", \"pid\": 7,\n\"nvml_dev\": 1\n "
      "\"status\": {}}]}]}";
  EXPECT_EQ(first_finding({.path = "ras", .text = text}).kind, "gone");
}

TEST(NcclRas, RefusesContradictions) {
  EXPECT_NE(refusal_of({ras_file({ras_communicator({ras_rank(0, 1, 1)}, {}, 0)})}), "");
  EXPECT_NE(
      refusal_of({ras_file({ras_communicator({ras_rank(0, 1, 1), ras_rank(0, 1, 1)}, {}, 2)})}),
      "");
  json wrong = ras_communicator({ras_rank(0, 1, 1)}, {}, 1);
  wrong["ranks_count"] = 2;
  EXPECT_NE(refusal_of({ras_file({wrong})}).find("\"ranks_count\" is not the number of its"),
            std::string::npos);
  const std::string sum =
      "#0-0 (78db921d1c117b4a) MISMATCH\n"
      "  Communicator ranks have different AllReduce operation counts\n"
      "  5 ranks have launched up to operation 64\n"
      "  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 1 on node n1\n\n";
  EXPECT_NE(refusal_of({{.path = "ras", .text = kRasHead + sum}})
                .find("it counts AllReduce of 6 ranks, and the communicator has 8"),
            std::string::npos);
  EXPECT_NE(refusal_of({ras_file({}), ras_file({})}).find("pass only the latest file"),
            std::string::npos);
}

TEST(Read, NamesExecutionTracesOfPyTorch) {
  EXPECT_NE(refusal_of({{.path = "et.json",
                         .text = R"({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": []})"}})
                .find("an execution trace of PyTorch"),
            std::string::npos);
}

}  // namespace
}  // namespace unisono::cli
