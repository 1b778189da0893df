// Recordings of other programs that are rare, or that no program would write.
#include "imports/imports.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/failure.h"

namespace unisono::cli {
namespace {

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
    const nlohmann::json dump = {{"rank", rank}, {"entries", nlohmann::json::array()}};
    EXPECT_THROW(read_flight_recorder({.path = "0", .text = dump.dump()}), UsageError) << rank;
  }
}

nlohmann::json event(const char* category, const char* name, double at_us, double us,
                     nlohmann::json arguments = nlohmann::json::object()) {
  return {{"ph", "X"}, {"cat", category}, {"name", name}, {"pid", 9},
          {"tid", 9},  {"ts", at_us},     {"dur", us},    {"args", std::move(arguments)}};
}

nlohmann::json trace_of(int rank, std::vector<nlohmann::json> events, int ranks = 2) {
  return {{"distributedInfo", {{"rank", rank}, {"world_size", ranks}}},
          {"traceEvents", std::move(events)}};
}

ImportFile file_of(const nlohmann::json& document, const std::string& path) {
  return {.path = path, .text = document.dump()};
}

std::string left_out(const ImportedRank& rank) {
  std::string text;
  for (const Account::LeftOut& one : rank.account.left_out) {
    text += (text.empty() ? "" : "; ") + std::to_string(one.count) + " " + one.why;
  }
  return text;
}

constexpr const char* kKernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";

// An annotation of NCCL takes the time of the launch, its kernel that of the collective.
TEST(ReadKineto, TakesTheTimeOfTheKernelThatWasLaunched) {
  const auto launched = [](const nlohmann::json& launch, const nlohmann::json& of_kernel) {
    return read_kineto(
        trace_of(0, {event("user_annotation", "nccl:all_reduce", 100, 20, {{"External id", 1}}),
                     launch, event("kernel", kKernel, 150, 3000, of_kernel),
                     event("kernel", "ampere_sgemm_128x64_nn", 10, 50)}),
        "a");
  };
  const auto other = event("cpu_op", "aten::mm", 0, 1);
  for (const ImportedRank& rank :
       {launched(event("cuda_runtime", "cudaLaunchKernel", 105, 2, {{"correlation", 7}}),
                 {{"correlation", 7}}),
        launched(other, {{"External id", 1}}), launched(other, {{"External id", 70}})}) {
    ASSERT_EQ(rank.calls.size(), 1U);
    EXPECT_DOUBLE_EQ(rank.calls[0].start_us, 150);
    EXPECT_DOUBLE_EQ(rank.calls[0].end_us.value(), 3150);
    EXPECT_EQ(left_out(rank), "1 kernels that compute");
  }
}

TEST(ReadKineto, TakesTheAnnotationOfTheDevice) {
  const ImportedRank rank =
      read_kineto(trace_of(0, {event("user_annotation", "nccl:all_reduce", 100, 20,
                                     {{"Input Dims", {{1000}}}, {"Input type", {"float"}}}),
                               event("gpu_user_annotation", "nccl:all_reduce", 150, 3000),
                               event("kernel", kKernel, 150, 3000)}),
                  "a");
  ASSERT_EQ(rank.calls.size(), 1U);
  EXPECT_DOUBLE_EQ(rank.calls[0].end_us.value(), 3150);
  EXPECT_DOUBLE_EQ(rank.calls[0].bytes, 4000);
}

TEST(ReadKineto, DoesNotTakeALaunchForTheCollective) {
  const ImportedRank rank =
      read_kineto(trace_of(0, {event("user_annotation", "nccl:all_reduce", 100, 20),
                               event("kernel", "ncclDevKernel_AllGather_RING_LL", 150, 30)}),
                  "a");
  EXPECT_TRUE(rank.calls.empty());
  EXPECT_NE(left_out(rank).find("1 launches without a kernel"), std::string::npos)
      << left_out(rank);
  EXPECT_NE(left_out(rank).find("1 kernels of NCCL"), std::string::npos) << left_out(rank);
}

nlohmann::json kernel_of(const char* group, double at_us) {
  return event("kernel", kKernel, at_us, 90,
               {{"Collective name", "all_reduce"},
                {"In msg nelems", 1000},
                {"Out msg nelems", 1000},
                {"Group size", 2},
                {"dtype", "Float"},
                {"Process Group Name", group},
                {"Process Group Ranks", "[0, 1]"}});
}

TEST(ReadKineto, CountsComputingKernelsAsSuch) {
  const ImportedRank rank = read_kineto(
      trace_of(0, {event("kernel", "ampere_sgemm_128x64_nn", 10, 50),
                   event("kernel", "ncclDevKernel_Generic", 20, 50), kernel_of("0", 700)}),
      "a");
  EXPECT_EQ(rank.calls.size(), 1U);
  EXPECT_EQ(left_out(rank),
            "1 kernels that compute; 1 kernels of NCCL or a relative that the trace does not "
            "connect to a call: of a CUDA graph, or recorded without ProfilerActivity.CPU");
}

TEST(ReadKineto, CountsKernelsOfAscendAsCollectives) {
  const ImportedRank rank =
      read_kineto(trace_of(0, {event("kernel", "hcom_allReduce__950_0_1", 10, 50)}), "a");
  EXPECT_EQ(left_out(rank),
            "1 kernels of NCCL or a relative that the trace does not connect to a call: of a CUDA "
            "graph, or recorded without ProfilerActivity.CPU");
}

// A reduction within one kernel is not a collective.
TEST(ReadKineto, NamesKernelsOfOtherLibrariesThatCommunicate) {
  const ImportedRank rank =
      read_kineto(trace_of(0, {event("kernel", "multimem_all_reduce_kernel", 10, 50),
                               event("kernel", "vllm::cross_device_reduce_1stage<float>", 70, 50),
                               event("kernel", "LayerNormWarpAllReduce<float>", 130, 50)}),
                  "a");
  EXPECT_EQ(left_out(rank),
            "1 kernels that compute; 2 kernels of other libraries that communicate, whose sizes "
            "the trace does not know: \"multimem_all_reduce_kernel\"");
}

TEST(ReadKineto, CountsAnnotationsOfMessagesAsSuch) {
  const ImportedRank rank =
      read_kineto(trace_of(0, {event("user_annotation", "gloo:send 0->1", 100, 20),
                               event("user_annotation", "gloo:recv 0<-1", 130, 20)}),
                  "a");
  EXPECT_EQ(left_out(rank), "2 sends and receives");
}

TEST(ReadKineto, SaysThatTheRankIsOfTheName) {
  nlohmann::json document = trace_of(0, {kernel_of("0", 700)});
  document.erase("distributedInfo");
  const ImportedRank rank = read_kineto(document, "trace_7.json");
  EXPECT_EQ(rank.rank, 7);
  ASSERT_EQ(rank.account.assumed.size(), 1U);
  EXPECT_NE(rank.account.assumed[0].find("is from rank 7"), std::string::npos);
}

TEST(ReadKineto, LeavesOutEventsWithoutATime) {
  nlohmann::json timeless = kernel_of("0", 700);
  timeless.erase("dur");
  nlohmann::json worded = kernel_of("0", 800);
  worded["ts"] = "800";
  const ImportedRank rank = read_kineto(trace_of(0, {timeless, worded, kernel_of("0", 900)}), "a");
  EXPECT_EQ(rank.calls.size(), 1U);
  EXPECT_EQ(left_out(rank), "2 without a time or a duration");
}

TEST(ReadKineto, LeavesOutImpossibleSizesAndTimes) {
  const auto sized = [](const nlohmann::json& count) {
    nlohmann::json kernel = kernel_of("0", 700);
    kernel["args"]["In msg nelems"] = count;
    return kernel;
  };
  const ImportedRank rank = read_kineto(
      trace_of(0, {sized(-5), sized(1e30), kernel_of("0", 1e300), kernel_of("0", 900)}), "a");
  EXPECT_EQ(rank.calls.size(), 1U);
  EXPECT_EQ(left_out(rank), "3 with an impossible size or time");
}

TEST(ReadKineto, LeavesOutGroupsThatContradictTheFile) {
  nlohmann::json larger = kernel_of("", 700);
  larger["args"]["Group size"] = 4;
  const ImportedRank first = read_kineto(trace_of(0, {larger, kernel_of("", 900)}), "a");
  EXPECT_EQ(first.calls.size(), 1U);
  EXPECT_EQ(left_out(first), "1 whose group size contradicts the list of the group's members");
  const ImportedRank stranger = read_kineto(trace_of(5, {kernel_of("", 700)}), "a");
  EXPECT_TRUE(stranger.calls.empty());
  EXPECT_EQ(left_out(stranger), "1 of groups without rank 5, which wrote the file");
}

TEST(ReadKineto, SaysThatTheSizeOfAnUnknownTypeIsAssumed) {
  nlohmann::json kernel = kernel_of("", 700);
  kernel["args"]["dtype"] = "Float128";
  const ImportedRank rank = read_kineto(trace_of(0, {kernel}), "a");
  ASSERT_EQ(rank.account.assumed.size(), 1U);
  EXPECT_EQ(rank.account.assumed[0], "elements of \"Float128\" take 1 byte: the type is not known");
  kernel["args"]["dtype"] = "Float8_e8m0fnu";
  EXPECT_TRUE(read_kineto(trace_of(0, {kernel}), "a").account.assumed.empty());
}

// Kernels of one backend do not hide the calls of another.
TEST(ReadKineto, KeepsOtherBackendsBesideKernels) {
  const auto trace = [](int rank) {
    return trace_of(rank, {kernel_of("", 700), event("user_annotation", "gloo:broadcast", 100, 40),
                           event("user_annotation", "hpc:all_gather", 300, 40)});
  };
  const std::vector<ImportedRank> ranks =
      read_imports({file_of(trace(0), "a"), file_of(trace(1), "b")});
  ASSERT_EQ(ranks.size(), 2U);
  for (const ImportedRank& rank : ranks) {
    ASSERT_EQ(rank.calls.size(), 3U);
    EXPECT_EQ(rank.calls[0].group, "world (gloo)");
    EXPECT_EQ(rank.calls[1].group, "world (hpc)");
    EXPECT_EQ(rank.calls[2].group, "world");
    EXPECT_EQ(rank.groups.at("world (gloo)"), (std::vector<int>{0, 1}));
  }
}

TEST(ReadKineto, NamesBackendsThatItDoesNotKnow) {
  const ImportedRank rank =
      read_kineto(trace_of(0, {event("user_annotation", "hpc:all_gather", 300, 40),
                               event("user_annotation", "gloo:all_gather", 400, 40)}),
                  "a");
  EXPECT_EQ(rank.calls.size(), 2U);
  ASSERT_EQ(rank.account.assumed.size(), 1U);
  EXPECT_NE(rank.account.assumed[0].find("\"hpc\" is a CPU backend"), std::string::npos);
}

TEST(ReadKineto, SaysThatKernelsAreMissing) {
  const ImportedRank rank = read_kineto(
      trace_of(0, {event("cpu_op", "record_param_comms", 300, 40, {{"Collective name", "x"}})}),
      "a");
  EXPECT_NE(left_out(rank).find("1 launches without a kernel"), std::string::npos);
}

TEST(ReadKineto, LeavesOutWhatEndsBeforeItBegins) {
  const ImportedRank rank =
      read_kineto(trace_of(0, {event("user_annotation", "gloo:all_gather", 300, -40)}), "a");
  EXPECT_TRUE(rank.calls.empty());
  EXPECT_EQ(left_out(rank), "1 that end before they begin");
}

// Older profilers export a list, which does not contain its rank.
TEST(ReadKineto, ReadsAListOfEvents) {
  const std::string text =
      nlohmann::json::array({event("user_annotation", "gloo:all_gather", 300, 40)}).dump();
  const auto ranks = read_imports({{.path = "trace_1.json", .text = text}});
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_EQ(ranks[0].rank, 1);
  EXPECT_EQ(ranks[0].calls.size(), 1U);
}

std::string refusal(const std::string& text) {
  try {
    read_imports({{.path = "rank_0", .text = text}});
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(Read, SaysWhereJsonEnds) {
  const std::string whole =
      trace_of(0, {event("user_annotation", "gloo:all_gather", 300, 40)}).dump();
  EXPECT_EQ(refusal(whole), "");
  EXPECT_NE(refusal(whole.substr(0, 70)).find("truncated"), std::string::npos);
  std::string damaged = whole;
  damaged.replace(20, 1, "}");
  EXPECT_NE(refusal(damaged).find("not valid at byte"), std::string::npos) << refusal(damaged);
}

// A truncated trace is recognized by its beginning, and not taken for a file of another program.
TEST(Read, SaysThatAProfileIsTruncated) {
  const std::string trace =
      R"({"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "gloo:broadcast", )";
  EXPECT_NE(refusal(trace).find("truncated"), std::string::npos) << refusal(trace);
  EXPECT_NE(refusal(trace + R"("ts": NaN}]})").find("not valid at byte"), std::string::npos);
}

TEST(Read, RefusesAKeyThatComesTwice) {
  EXPECT_NE(refusal(R"({"traceEvents": [], "x": 1, "traceEvents": []})").find("comes twice"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"rank": 0, "entries": [], "rank": 1})").find("comes twice"),
            std::string::npos);
}

TEST(Read, SaysThatADumpHasTooLargeNumbers) {
  EXPECT_EQ(refusal(R"({"rank": 0, "entries": [{"pg_id": 18446744073709551615}]})"), "");
  EXPECT_NE(refusal(R"({"rank": 0, "entries": [{"pg_id": 18446744073709551616}]})")
                .find("an integer of more than 64 bits"),
            std::string::npos);
}

// The kinds of all files are compared before a damaged file is refused.
TEST(Read, RefusesFilesOfTwoKinds) {
  const std::vector<ImportFile> files = {
      {.path = "damaged", .text = "{"},
      {.path = "log", .text = "h:1:1 [0] NCCL INFO NCCL version 2.28.3\n"}};
  try {
    read_imports(files);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "damaged: it is not an NCCL log, but log is");
  }
}

TEST(Read, SaysWhatAnAnswerOfRasLacks) {
  EXPECT_NE(refusal("NCCL version 2.28.3\nJob summary\n=====\nCommunicators... (0.00s)\n=====\n")
                .find("its table of communicators is missing"),
            std::string::npos);
}

// Even if a file invents many names, the account is short, and quickly made.
TEST(Read, CountsManyUnknownNamesTogether) {
  constexpr int kNames = 2'000;
  std::vector<nlohmann::json> events;
  for (int i = 0; i < kNames; ++i) {
    events.push_back(event("user_annotation", ("gloo:call" + std::to_string(i)).c_str(), i, 1));
  }
  const ImportedRank rank = read_kineto(trace_of(0, std::move(events)), "a");
  EXPECT_EQ(rank.account.left_out_in_all(), kNames);
  EXPECT_LE(rank.account.left_out.size(), Account::kMostReasons + 1);
}

nlohmann::json dump_of(int rank, const std::string& members) {
  return {{"rank", rank},
          {"pg_config",
           {{"0", {{"name", "0"}, {"desc", "default_pg"}, {"ranks", "[0, 1, 2, 3]"}}},
            {"1", {{"name", "1"}, {"desc", "mesh_tp"}, {"ranks", members}}}}},
          {"entries",
           {{{"process_group", {"1", "mesh_tp"}},
             {"collective_seq_id", 1},
             {"profiling_name", "nccl:all_reduce"},
             {"time_created_ns", 1000},
             {"input_sizes", {{10 * (rank / 2 + 1)}}},
             {"input_dtypes", {"Float"}}}}}};
}

TEST(ReadFlightRecorder, TellsGroupsOfOneNameApart) {
  const std::vector<ImportedRank> ranks =
      read_imports({file_of(dump_of(0, "[0, 1]"), "a"), file_of(dump_of(1, "[0, 1]"), "b"),
                    file_of(dump_of(2, "[2, 3]"), "c"), file_of(dump_of(3, "[2, 3]"), "d")});
  ASSERT_EQ(ranks.size(), 4U);
  EXPECT_EQ(ranks[0].calls[0].group, ranks[1].calls[0].group);
  EXPECT_EQ(ranks[2].calls[0].group, ranks[3].calls[0].group);
  EXPECT_NE(ranks[1].calls[0].group, ranks[2].calls[0].group);
  EXPECT_EQ(ranks[2].groups.at(ranks[2].calls[0].group), (std::vector<int>{2, 3}));
  EXPECT_TRUE(who_is_behind(ranks).empty());
}

ImportedRank rank_of(const nlohmann::json& dump) {
  return read_flight_recorder({.path = "a", .text = dump.dump()}).value();
}

TEST(ReadFlightRecorder, BelievesTheStateOfACall) {
  nlohmann::json dump = dump_of(0, "[0, 1]");
  EXPECT_FALSE(rank_of(dump).calls.at(0).end_us);
  dump["entries"][0]["state"] = "completed";
  const ImportedRank rank = rank_of(dump);
  EXPECT_EQ(rank.calls.at(0).end_us, 1.0);
  EXPECT_EQ(rank.account.assumed.size(), 1U);
}

TEST(ReadFlightRecorder, LeavesOutImpossibleSizes) {
  for (const double size : {-1.0, 1e30}) {
    nlohmann::json dump = dump_of(0, "[0, 1]");
    dump["entries"][0]["input_sizes"] = {{size}};
    EXPECT_EQ(left_out(rank_of(dump)), "1 with an impossible size or time");
  }
}

TEST(ReadFlightRecorder, NamesStatesThatAreNotKnown) {
  nlohmann::json dump = dump_of(0, "[0, 1]");
  dump["entries"][0]["state"] = "paused";
  const ImportedRank rank = rank_of(dump);
  ASSERT_EQ(rank.account.assumed.size(), 1U);
  EXPECT_NE(rank.account.assumed.front().find("\"paused\""), std::string::npos);
}

TEST(ReadFlightRecorder, LeavesOutGroupsWithoutTheRank) {
  const ImportedRank rank = rank_of(dump_of(3, "[0, 1]"));
  EXPECT_TRUE(rank.calls.empty());
  EXPECT_EQ(left_out(rank), "1 of groups without rank 3, which wrote the file");
}

TEST(ReadFlightRecorder, NamesMessagesByTheRanksOfTheirGroup) {
  nlohmann::json dump = dump_of(2, "[2, 3]");
  for (const char* name : {"nccl:send 0->1", "nccl:recv 0<-1", "nccl:send 0->2", "nccl:send"}) {
    dump["entries"].push_back(dump["entries"][0]);
    dump["entries"].back()["profiling_name"] = name;
  }
  const ImportedRank rank = rank_of(dump);
  ASSERT_EQ(rank.messages.size(), 2U);
  EXPECT_EQ(rank.messages[0].group, "2->3 in 1");
  EXPECT_EQ(rank.messages[0].collective, "send");
  EXPECT_EQ(rank.messages[1].group, "3->2 in 1");
  EXPECT_EQ(left_out(rank), "2 sends and receives");
}

TEST(ReadFlightRecorder, PlacesACallAtItsInnermostLineOutsideOfTorch) {
  nlohmann::json dump = dump_of(0, "[0, 1]");
  const auto frame = [](const char* file, int line) {
    return nlohmann::json{{"filename", file}, {"line", line}, {"name", "f"}};
  };
  dump["entries"].push_back(dump["entries"][0]);
  dump["entries"][0]["frames"] = {frame("/torch/distributed.py", 7), frame("/job/step.py", 8),
                                  frame("/job/main.py", 9)};
  const ImportedRank rank = rank_of(dump);
  EXPECT_EQ(rank.calls.at(0).place, "step.py:8");
  EXPECT_EQ(rank.calls.at(1).place, "");
}

// A reader skips the stack of a call whose state it already knows to be completed, and nothing
// else.
TEST(ReadFlightRecorder, SkipsOnlyStacksOfCompletedCalls) {
  nlohmann::ordered_json dump = dump_of(0, "[0, 1]");
  const nlohmann::ordered_json call = dump["entries"][0];
  dump["entries"] = nlohmann::ordered_json::array();
  for (const char* state : {"completed", "scheduled", "completed", "started"}) {
    nlohmann::ordered_json entry = {{"state", state},
                                    {"frames", {{{"filename", "/job/step.py"}, {"line", 8}}}}};
    entry.update(call);
    dump["entries"].push_back(entry);
  }
  const ImportedRank rank = read_flight_recorder({.path = "a", .text = dump.dump()}).value();
  ASSERT_EQ(rank.calls.size(), 4U);
  for (std::size_t i = 0; i < rank.calls.size(); ++i) {
    EXPECT_EQ(rank.calls[i].place, i % 2 == 0 ? "" : "step.py:8") << i;
    EXPECT_EQ(rank.calls[i].collective, "all_reduce") << i;
    EXPECT_DOUBLE_EQ(rank.calls[i].bytes, 40) << i;
  }
}

TEST(ReadFlightRecorder, SortsCallsAndMessagesByTheirTimes) {
  nlohmann::json dump = dump_of(0, "[0, 1]");
  const nlohmann::json entry = dump["entries"][0];
  dump["entries"] = nlohmann::json::array();
  const auto add = [&](const char* name, int ns, int number) {
    dump["entries"].push_back(entry);
    dump["entries"].back().update(
        {{"profiling_name", name}, {"time_created_ns", ns}, {"collective_seq_id", number}});
  };
  add("nccl:all_reduce", 4000, 4);
  add("nccl:all_reduce", 1000, 1);
  add("nccl:send 0->1", 3000, 3);
  add("nccl:send 0->1", 2000, 2);
  add("nccl:all_gather", 4000, 5);
  std::vector<ImportedRank> ranks = {rank_of(dump)};
  const auto numbers = [](const std::vector<ImportedCall>& calls) {
    std::vector<std::int64_t> made;
    for (const ImportedCall& call : calls) {
      made.push_back(call.sequence);
    }
    return made;
  };
  EXPECT_EQ(numbers(ranks[0].calls), (std::vector<std::int64_t>{1, 4, 5}));
  EXPECT_EQ(numbers(ranks[0].messages), (std::vector<std::int64_t>{2, 3}));
  std::vector<double> times;
  const JobCalls job = job_calls_of(ranks);
  for (const JobCall& call : job.calls.at(0)) {
    times.push_back(call.issued_us);
  }
  EXPECT_EQ(times, (std::vector<double>{1, 2, 3, 4, 4}));
}

TEST(ReadFlightRecorder, CountsEntriesThatAreNoObjects) {
  nlohmann::json dump = dump_of(0, "[0, 1]");
  dump["entries"].push_back(7);
  dump["entries"].push_back({1, 2});
  EXPECT_EQ(left_out(rank_of(dump)), "2 of \"\", which is not a collective of unisono");
}

TEST(ReadFlightRecorder, LeavesTracesOfTheProfilerToTheirReader) {
  nlohmann::json dump = dump_of(0, "[0, 1]");
  dump["traceEvents"] = nlohmann::json::array();
  EXPECT_FALSE(read_flight_recorder({.path = "a", .text = dump.dump()}));
  EXPECT_FALSE(read_flight_recorder({.path = "a", .text = "[1]"}));
  EXPECT_FALSE(read_flight_recorder({.path = "a", .text = "{\"entries\": [{}"}));
}

TEST(ReadFlightRecorder, AddsTensorsOfSeveralTypes) {
  nlohmann::json dump = dump_of(0, "[0, 1]");
  dump["entries"][0]["input_sizes"] = {{10}, {10}};
  dump["entries"][0]["input_dtypes"] = {"Float", "Half"};
  EXPECT_DOUBLE_EQ(rank_of(dump).calls.at(0).bytes, 60);
}

// Containers: two processes with one host name and number, and one device each.
std::string nccl_rank(int rank, const char* address, const char* bus) {
  const std::string place = "gpuhost:7:4" + std::to_string(rank) + " [0] NCCL INFO ";
  return place + "ncclCommInitRank comm " + address + " rank " + std::to_string(rank) +
         " nranks 2 cudaDev 0 nvmlDev 0 busId " + bus + " commId 0x7a - Init COMPLETE\n";
}

std::string nccl_call(const char* address, int count, int ranks = 2) {
  return "gpuhost:7:7 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x7 recvbuff 0x7 count " +
         std::to_string(count) + " datatype 7 op 0 root 0 comm " + address +
         " [nranks=" + std::to_string(ranks) + "] stream 0x55\n";
}

TEST(ReadNcclLogs, MayBeginWithTheOutputOfOtherPrograms) {
  const std::string matrix = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-55\n";
  const std::vector<ImportedRank> ranks = read_imports(
      {{.path = "a", .text = matrix + nccl_rank(0, "0x1", "1b") + nccl_call("0x1", 8)}});
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_EQ(ranks[0].calls.size(), 1U);
}

TEST(ReadNcclLogs, TellsRanksInContainersApart) {
  const std::string first = nccl_rank(0, "0xa0", "3000") + nccl_call("0xa0", 10);
  const std::string second = nccl_rank(1, "0xb0", "13000") + nccl_call("0xb0", 10);
  const std::string same_address = nccl_rank(1, "0xa0", "13000") + nccl_call("0xa0", 10);
  const std::vector<std::vector<ImportFile>> logs = {
      {{.path = "a", .text = first + second}},
      {{.path = "a", .text = first}, {.path = "b", .text = second}},
      {{.path = "a", .text = first}, {.path = "b", .text = same_address}}};
  for (const std::vector<ImportFile>& files : logs) {
    const std::vector<ImportedRank> ranks = read_imports(files);
    ASSERT_EQ(ranks.size(), 2U);
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(ranks[static_cast<std::size_t>(rank)].rank, rank);
      EXPECT_EQ(ranks[static_cast<std::size_t>(rank)].calls.size(), 1U);
    }
    EXPECT_EQ(ranks[1].path, files.back().path);
  }
  EXPECT_THROW(read_imports({{.path = "a", .text = first + same_address}}), UsageError);
}

TEST(ReadNcclLogs, KnowsRanksInContainersByTheirParents) {
  const auto split = [](int rank, const char* address, const char* parent) {
    return "gpuhost:7:4" + std::to_string(rank) + " [0] NCCL INFO ncclCommSplit comm " + address +
           " rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1 parent " + parent +
           " splitCount 1 color 0 key 0 commId 0x2" + std::to_string(rank) + " - Init COMPLETE\n";
  };
  const std::vector<ImportedRank> ranks = read_imports(
      {{.path = "a",
        .text = nccl_rank(0, "0xa0", "1") + nccl_rank(1, "0xb0", "1") + split(0, "0xa1", "0xa0") +
                split(1, "0xb1", "0xb0") + nccl_call("0xa1", 10, 1) + nccl_call("0xb1", 20, 1)}});
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_DOUBLE_EQ(ranks[0].calls.at(0).bytes, 40);
  EXPECT_DOUBLE_EQ(ranks[1].calls.at(0).bytes, 80);
}

std::string nccl_begin(int rank, const std::string& comm, const std::string& rest) {
  const std::string place = std::to_string(rank);
  return "h:1" + place + ":50 [" + place + "] NCCL INFO " + comm + " cudaDev 0 nvmlDev 0 busId " +
         place + "000 " + rest + " - Init COMPLETE\n";
}
std::string nccl_call(int rank, const std::string& call, const std::string& comm, int ranks) {
  const std::string place = std::to_string(rank);
  return "h:1" + place + ":50 [" + place + "] NCCL INFO " + call +
         ": opCount 0 sendbuff 0x7 recvbuff 0x7 count 500 datatype 9 op 0 root 0 comm " + comm +
         " [nranks=" + std::to_string(ranks) + "] stream 0x5\n";
}
std::string nccl_world(int ranks) {
  std::string text;
  for (int rank = 0; rank < ranks; ++rank) {
    text += nccl_begin(rank,
                       "ncclCommInitRank comm 0xa" + std::to_string(rank) + " rank " +
                           std::to_string(rank) + " nranks " + std::to_string(ranks),
                       "commId 0x111");
  }
  return text;
}

// NCCL logs no commId for a split communicator: both of its groups have the same ranks.
TEST(ReadNcclLogs, KnowsSplitsByTheirParentAndColor) {
  for (const char* count : {"splitCount", "childCount"}) {
    std::string text = nccl_world(4);
    for (int rank = 0; rank < 4; ++rank) {
      const std::string place = std::to_string(rank);
      text += nccl_begin(
          rank,
          "ncclCommSplit comm 0xb" + place + " rank " + std::to_string(rank % 2) + " nranks 2",
          "parent 0xa" + place + " " + count + " 1 color " + std::to_string(rank / 2) + " key " +
              place);
    }
    for (int rank = 0; rank < 4; ++rank) {
      text += nccl_call(rank, "AllReduce", "0xb" + std::to_string(rank), 2);
    }
    const auto ranks = read_nccl_logs({{.path = "log", .text = text}});
    ASSERT_EQ(ranks.size(), 4U);
    EXPECT_EQ(ranks[0].groups.size(), 3U);
    EXPECT_EQ(ranks[0].calls.at(0).group, "comm 0x111, split 1 color 0");
    EXPECT_EQ(ranks[3].calls.at(0).group, "comm 0x111, split 1 color 1");
    EXPECT_EQ(ranks[3].groups.at(ranks[3].calls.at(0).group), (std::vector<int>{2, 3}));
  }
}

TEST(ReadNcclLogs, LeavesOutWhatItDoesNotKnow) {
  const std::string text =
      nccl_world(2) + nccl_call(0, "AllReduce", "0xa0", 2) + nccl_call(1, "AllReduce", "0xa1", 2) +
      nccl_call(0, "AllToAllv", "0xa0", 2) + nccl_call(1, "AllToAllv", "0xa1", 2) +
      nccl_call(0, "AllGather", "0xb0", 2) + nccl_call(0, "Reduce", "0xa0", 8) +
      nccl_call(0, "Send", "0xa0", 2) + "h:10:50 [0] NCCL INFO AllReduce: opCount 1 sendbuff 0x7";
  const auto ranks = read_nccl_logs({{.path = "log", .text = text}});
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].calls.size(), 1U);
  EXPECT_EQ(left_out(ranks[0]),
            "2 of \"AllToAllv\", which is not a collective of unisono; 1 on communicators whose "
            "creation is missing; 1 whose number of ranks differs from their communicator's; 1 "
            "sends and receives; 1 in truncated lines");
}

// Processes of another job, whose communicator is smaller.
TEST(ReadNcclLogs, LeavesOutProcessesOfOtherJobs) {
  const std::string other =
      nccl_begin(7, "ncclCommInitRank comm 0xc7 rank 0 nranks 1", "commId 0x777");
  const auto ranks = read_nccl_logs(
      {{.path = "log",
        .text = nccl_world(2) + other + nccl_call(0, "AllReduce", "0xa0", 2) +
                nccl_call(1, "AllReduce", "0xa1", 2) + nccl_call(7, "AllReduce", "0xc7", 1)}});
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(left_out(ranks[0]), "1 of processes that are not in the largest communicator");
}

// Otherwise each call would count twice.
TEST(ReadNcclLogs, RefusesTheSameLogTwice) {
  const std::string log = nccl_world(2) + nccl_call(0, "AllReduce", "0xa0", 2);
  EXPECT_THROW(read_imports({{.path = "a", .text = log}, {.path = "b", .text = log}}), UsageError);
}

TEST(ReadNcclLogs, ReadsTimestampsAndColours) {
  std::string text = nccl_world(1) + nccl_call(0, "AllReduce", "0xa0", 1);
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    text.insert(at, "\x1b[36mworker-0 |\x1b[0m [2026-01-26 10:00:00] ");
  }
  EXPECT_EQ(read_nccl_logs({{.path = "log", .text = text}}).at(0).calls.size(), 1U);
}

TEST(ReadNcclLogs, SaysWhyThereIsNothing) {
  try {
    read_imports({{.path = "log", .text = "NCCL version 2.27.5+cuda12.9\nh:1:1 NCCL WARN x\n"}});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("no collectives"), std::string::npos) << error.what();
  }
}

TEST(Read, RefusesWhatWouldFillTheMemory) {
  const std::string deep(100'000, '[');
  EXPECT_THROW(read_imports({{.path = "0", .text = deep}}), UsageError);
  const nlohmann::json ranks_too_deep = {
      {"rank", 0}, {"pg_config", {{"0", {{"ranks", deep}}}}}, {"entries", nlohmann::json::array()}};
  EXPECT_EQ(read_imports({file_of(ranks_too_deep, "0")})[0].groups.count("0"), 0U);
  const auto with = [](const std::string& value) {
    return refusal(R"({"rank": 0, "entries": [], "unused": )" + value + "}");
  };
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + "0" + std::string(depth, ']');
  };
  EXPECT_EQ(with(nested(127)), "");
  EXPECT_NE(with(nested(128)).find("nested more than 128 deep"), std::string::npos);
  std::string values = "[0";
  for (int i = 0; i < 20'000'000; ++i) {
    values += ",0";
  }
  EXPECT_NE(with(values + "]").find("more than 20000000 values"), std::string::npos);
}

}  // namespace
}  // namespace unisono::cli
