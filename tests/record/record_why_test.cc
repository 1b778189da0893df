// A recording's description of how a job ended, and of groups that are not the whole world.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/failure.h"
#include "record/merge.h"
#include "record/views.h"
#include "trace/rank_record.h"
#include "trace/recorder.h"
#include "trace/worlds.h"

namespace unisono::cli {
namespace {

using trace::recording::EventKind;

constexpr const char* kSaid = "all_reduce #2 on rank 2: no data from rank 1\nlook at rank 1";

// Three ranks. All end the first operation, ranks 0 and 2 are in the second one.
class Why : public testing::Test {
 protected:
  Why() { std::filesystem::create_directories(folder_); }
  ~Why() override { std::filesystem::remove_all(folder_); }

  static void operation(trace::Recorder& recorder, trace::TraceWriter& writer, int number,
                        bool ends, int root = -1) {
    const int name =
        recorder.name(root < 0 ? Collective::all_reduce : Collective::broadcast, "ring");
    writer.begin(name, static_cast<std::uint64_t>(number), 64, root);
    const std::uint64_t begin = writer.stamp();
    const std::uint64_t ticks = writer.stamp() - begin;
    writer.pass(EventKind::send, false, 0, 0, 3, 64, begin, ticks);
    if (ends) {
      writer.end();
    }
  }
  template <typename Body>
  std::vector<trace::RankRecord> record(const Body& body) const {
    std::vector<trace::RankRecord> records;
    for (int rank = 0; rank < 3; ++rank) {
      const std::string path = folder_ + "/rank" + std::to_string(rank);
      {
        const auto recorder = trace::Recorder::open(path, 128);
        recorder->introduce(rank, 3, "job");
        body(rank, *recorder);
      }
      std::ifstream file(path, std::ios::binary);
      const std::string text((std::istreambuf_iterator<char>(file)), {});
      auto more = trace::read_records(std::as_bytes(std::span(text)));
      std::move(more.begin(), more.end(), std::back_inserter(records));
      std::filesystem::remove(path);
    }
    return records;
  }
  std::vector<trace::RankRecord> hang(ErrorCode code, bool is_said = true) const {
    return record([&](int rank, trace::Recorder& recorder) {
      const int members[] = {0, 1, 2};
      trace::TraceWriter writer = recorder.writer(0, members);
      operation(recorder, writer, 1, true);
      if (rank != 1) {
        operation(recorder, writer, 2, false);
      }
      if (is_said && rank != 1) {
        recorder.note_abort(code, 1, 2, kSaid);
        recorder.note_abort(ErrorCode::aborted, 0, 0, "what comes later is not a cause");
      }
    });
  }

 private:
  std::string folder_ = testing::TempDir() + "why-" + std::to_string(::getpid());
};

TEST_F(Why, WhatTheRanksSaidComesFirst) {
  const auto document =
      merge_records(hang(ErrorCode::timeout), {.ranks = 3, .gone = {{1, plain("look")}}});
  ASSERT_EQ(document["findings"].size(), 2U);
  const auto& finding = document["findings"][0];
  EXPECT_EQ(finding["kind"], "timeout");
  EXPECT_EQ(finding["text"], "timeout: all_reduce #2 on rank 2: no data from rank 1");
  EXPECT_EQ(finding["next"], "look at rank 1");
  EXPECT_EQ(finding["ranks"], std::vector<int>{1});
  EXPECT_EQ(finding["waiting"], (std::vector<int>{0, 2}));
  EXPECT_EQ(finding["details"],
            std::vector<std::string>{"ranks 0,2 were in all_reduce #2 of world"});
  EXPECT_EQ(finding["ops"], std::vector<std::string>{"world #2"});
  EXPECT_EQ(document["findings"][1]["kind"], "gone");
  ASSERT_EQ(document["aborts"].size(), 1U);
  const auto& abort = document["aborts"][0];
  EXPECT_EQ(abort["raised_by"], 2);
  EXPECT_EQ(abort["rank"], 1);
  EXPECT_EQ(abort["text"], std::string("timeout: ") + kSaid);
  // When rank 2 reported it: after it began the operation.
  EXPECT_GE(abort["at_us"], document["ops"]["start_us"].back());
}

TEST_F(Why, ThatARankIsGoneIsSaidOnce) {
  const auto document =
      merge_records(hang(ErrorCode::peer_lost), {.ranks = 3, .gone = {{1, plain("try this")}}});
  ASSERT_EQ(document["findings"].size(), 1U);
  EXPECT_EQ(document["findings"][0]["kind"], "peer_lost");
  EXPECT_EQ(document["findings"][0]["next"], "try this\nlook at rank 1");
}

TEST_F(Why, ThatStoppedRanksDieIsNoCause) {
  JobEnd end = {.ranks = 3, .stopped = {1}};
  EXPECT_TRUE(merge_records(hang(ErrorCode::peer_lost), end)["findings"].empty());
  end.stopped = {0};
  EXPECT_EQ(merge_records(hang(ErrorCode::peer_lost), end)["findings"].size(), 1U);
}

TEST_F(Why, WhoStoppedTheJobKnowsMore) {
  JobEnd end = {.ranks = 3};
  end.findings.push_back({.kind = "stopped",
                          .ranks = {1},
                          .waiting = {0, 2},
                          .text = say("rank {} is stopped", "rank {} 被暂停", 1)});
  const auto document = merge_records(hang(ErrorCode::timeout), end);
  EXPECT_EQ(document["findings"][0]["kind"], "stopped");
  EXPECT_EQ(document["findings"][0]["ops"], std::vector<std::string>{"world #2"});
  EXPECT_EQ(document["findings"][1]["kind"], "timeout");
  // In both languages, also after it is read again.
  EXPECT_EQ(document["findings"][0]["chinese"]["text"], "rank 1 被暂停");
  EXPECT_EQ(explain_recording(document)[0].text, end.findings[0].text);
  EXPECT_EQ(document["findings"][1]["chinese"]["details"][0],
            "rank 0,2 正在 all_reduce #2 of world 中");
}

TEST(FirstAbort, WhoSaidItHimselfThenWhoKnewItFirst) {
  const trace::RecordedAbort by_two{.reporter = 2};
  const trace::RecordedAbort by_five{.reporter = 5};
  const double unknown = std::nan("");
  EXPECT_EQ(trace::first_of({{.rank = 0, .what = &by_two, .at_ns = 1},
                             {.rank = 2, .what = &by_two, .at_ns = 9},
                             {.rank = 5, .what = &by_five, .at_ns = 12}})
                .at_ns,
            9);
  EXPECT_EQ(trace::first_of({{.rank = 2, .what = &by_two, .at_ns = unknown},
                             {.rank = 5, .what = &by_five, .at_ns = 12}})
                .rank,
            5);
}

TEST_F(Why, WithoutAFindingWhoDidNotComeToTheOperationThatDidNotEnd) {
  const auto document = merge_records(hang(ErrorCode::timeout, false), {.ranks = 3});
  EXPECT_TRUE(document["findings"].empty());
  const auto findings = explain_recording(document);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].text.english,
            "rank 1 never called all_reduce #2 of world, and ranks 0,2 wait for it");
  EXPECT_EQ(findings[0].kind, "never called");
  EXPECT_EQ(findings[0].ranks, std::vector<int>{1});
  EXPECT_EQ(findings[0].waiting, (std::vector<int>{0, 2}));
}

TEST_F(Why, OfARankThatDroppedItsEarlierEventsItIsNotSaidThatItNeverCame) {
  auto document = merge_records(hang(ErrorCode::timeout, false), {.ranks = 3});
  document["dropped_events"][1] = 5;
  // The recording has its first operation, so it has all later ones too.
  EXPECT_EQ(explain_recording(document).at(0).ranks, std::vector<int>{1});
  for (std::size_t row = 0; row < document["ops"]["rank"].size(); ++row) {
    if (document["ops"]["rank"][row] == 1) {
      document["ops"]["number"][row] = 3;
    }
  }
  const auto findings = explain_recording(document);
  EXPECT_EQ(findings.at(0).text.english,
            "all_reduce #2 of world did not end: ranks 0,2 were in it");
  EXPECT_TRUE(findings[0].ranks.empty());
}

TEST_F(Why, ThatAnOperationIsAbsentTellsOfEightGroups) {
  auto document = merge_records(hang(ErrorCode::timeout), {.ranks = 3});
  auto& ops = document["ops"];
  for (int group = 0; group < 9; ++group) {
    for (auto& [name, column] : ops.items()) {
      column.push_back(column[0]);
    }
    ops["group"].back() = "group " + std::to_string(group);
  }
  try {
    static_cast<void>(one_operation(document, "9"));
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(error.detail().find("group 7 has #1, ..."), std::string::npos) << error.detail();
  }
}

TEST_F(Why, OfARecordingThatIsNotWholeItIsSaid) {
  auto document = merge_records(hang(ErrorCode::timeout), {.ranks = 3});
  document["findings"][0]["text"] = 3;
  EXPECT_THROW(static_cast<void>(explain_recording(document)), UsageError);
  document = merge_records(hang(ErrorCode::timeout, false), {.ranks = 3});
  document["ops"]["end_us"] = nlohmann::ordered_json::array();
  EXPECT_THROW(static_cast<void>(explain_recording(document)), UsageError);
}

// The group of ranks 2 and 0, in this order; its root is rank 0 of the world.
TEST_F(Why, AGroupHasItsOrderAndItsRoot) {
  const auto records = record([](int rank, trace::Recorder& recorder) {
    const int world[] = {0, 1, 2};
    trace::TraceWriter all = recorder.writer(0, world);
    operation(recorder, all, 1, true);
    if (rank != 1) {
      const int members[] = {2, 0};
      trace::TraceWriter writer = recorder.writer(7, members);
      operation(recorder, writer, 1, true, 1);
      operation(recorder, writer, 2, true, 1);
    }
  });
  const auto document = merge_records(records, {.ranks = 3});
  EXPECT_EQ(document["groups"]["name"], (std::vector<std::string>{"world", "ranks 0,2"}));
  EXPECT_EQ(document["groups"]["ranks"][0], (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(document["groups"]["ranks"][1], (std::vector<int>{2, 0}));
  const auto one = one_operation(document, "ranks 0,2 #2");
  EXPECT_EQ(one["groups"]["name"], std::vector<std::string>{"ranks 0,2"});
  EXPECT_EQ(one["ops"]["rank"], (std::vector<int>{0, 2}));
  EXPECT_EQ(one["ops"]["root"], (std::vector<int>{0, 0}));
  // Its own events, each in the operation that they belong to.
  EXPECT_EQ(one["events"]["op"], (std::vector<int>{0, 1}));
  EXPECT_TRUE(one_operation(document, "1")["ops"]["root"][0].is_null());
}

TEST_F(Why, OneOperationHasTheFindingsThatAreAboutIt) {
  const auto document = merge_records(hang(ErrorCode::timeout), {.ranks = 3});
  EXPECT_EQ(one_operation(document, "2")["findings"].size(), 1U);
  EXPECT_TRUE(one_operation(document, "1")["findings"].empty());
}

}  // namespace
}  // namespace unisono::cli
