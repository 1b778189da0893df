// Merges recorded events into one document of all ranks.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <span>

#include "bootstrap/end_reason.h"
#include "record/merge.h"
#include "record/numbers.h"
#include "trace/rank_record.h"
#include "trace/recorder.h"
#include "trace/worlds.h"

namespace unisono::cli {
namespace {

using trace::recording::EventKind;

class Merge : public testing::Test {
 protected:
  Merge() { std::filesystem::create_directories(folder_); }
  ~Merge() override { std::filesystem::remove_all(folder_); }
  std::string path(int rank) const { return folder_ + "/rank" + std::to_string(rank); }
  std::vector<std::byte> bytes(int rank) const {
    std::ifstream file(path(rank), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
  }
  // Two ranks exchange data once in each operation; rank 1 does not finish the last one.
  void record(int operations, std::uint64_t events = 4096) {
    for (int rank = 0; rank < 2; ++rank) {
      const auto recorder = trace::Recorder::open(path(rank), events);
      recorder->introduce(rank, 2, "job");
      const int members[] = {0, 1};
      trace::TraceWriter writer = recorder->writer(0, members);
      const int name = recorder->name(Collective::all_reduce, "ring");
      for (int i = 1; i <= operations; ++i) {
        writer.begin(name, static_cast<std::uint64_t>(i), 64);
        const std::uint64_t begin = writer.stamp();
        const std::uint64_t ticks = writer.stamp() - begin;
        writer.pass(EventKind::send, false, 1 - rank, 0, 3, 64, begin, ticks);
        const std::uint64_t came = writer.stamp();
        writer.pass(EventKind::reduce, false, 1 - rank, 0, 3, 64, came, writer.stamp() - came);
        if (rank == 0 || i != operations) {
          writer.end();
        }
      }
    }
  }
  std::vector<trace::RankRecord> read(std::initializer_list<int> ranks) const {
    std::vector<trace::RankRecord> records;
    for (const int rank : ranks) {
      for (trace::RankRecord& record : trace::read_records(bytes(rank))) {
        records.push_back(std::move(record));
      }
    }
    return records;
  }

 private:
  std::string folder_ = testing::TempDir() + "record-" + std::to_string(::getpid());
};

TEST_F(Merge, OperationsAndMessagesOfAllRanks) {
  record(3);
  const auto document = merge_records(read({0, 1}), {});
  EXPECT_EQ(document["ranks"], 2);
  EXPECT_EQ(document["name"], "all_reduce/ring");
  EXPECT_EQ(document["ops"]["rank"], (std::vector<int>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(document["ops"]["number"], (std::vector<int>{1, 2, 3, 1, 2, 3}));
  EXPECT_TRUE(document["ops"]["end_us"].back().is_null());
  EXPECT_FALSE(document["ops"]["end_us"].front().is_null());
  EXPECT_EQ(document["messages"]["from"].size(), 6U);
  EXPECT_EQ(document["messages"]["step"].front(), 3);
  EXPECT_EQ(document["events"]["kind"].size(), 12U);
  EXPECT_TRUE(document["findings"].empty());
}

// Ranks 0, 2 and 3 continue as 0, 1 and 2 after rank 1 has died: rows and texts keep the first
// numbers.
TEST_F(Merge, RanksOfAShrunkenWorldKeepTheirFirstNumbers) {
  const int first_ranks[] = {0, 2, 3};
  for (int rank = 0; rank < 4; ++rank) {
    const auto recorder = trace::Recorder::open(path(rank), 64);
    recorder->introduce(rank, 4, "job");
    const int members[] = {0, 1, 2, 3};
    trace::TraceWriter writer = recorder->writer(0, members);
    writer.begin(recorder->name(Collective::barrier, "flat"), 1, 0);
    writer.end();
  }
  for (int rank = 0; rank < 3; ++rank) {
    const auto recorder = trace::Recorder::open(path(first_ranks[rank]), 64);
    recorder->introduce(rank, 3, "job's survivors", first_ranks, 1);
    const int members[] = {0, 1, 2};
    trace::TraceWriter writer = recorder->writer(0, members);
    writer.begin(recorder->name(Collective::broadcast, "flat"), 1, 64, 1);
    const std::uint64_t begin = writer.stamp();
    if (rank == 1) {
      writer.pass(EventKind::send, false, 2, 0, 0, 64, begin, 1);
    } else if (rank == 2) {
      writer.pass(EventKind::copy, false, 1, 0, 0, 64, begin, 1);
    }
    writer.end();
    const int pair[] = {1, 2};
    if (rank > 0) {
      trace::TraceWriter sub = recorder->writer(7, pair);
      sub.begin(recorder->name(Collective::barrier, "flat"), 1, 0);
      sub.end();
    }
    const std::string text =
        "rank 2 (pid 7) is gone, says rank 1; 3 ranks were in #12 of rank, frank 2; ";
    recorder->note_abort(ErrorCode::peer_lost, 2, 1,
                         text + comm::ended_after(1) + "exited with code 7");
  }
  const auto document = merge_records(read({0, 1, 2, 3}), {});
  EXPECT_EQ(document["ranks"], 4);
  std::map<std::string, std::vector<int>> ranks;
  for (std::size_t i = 0; i < document["ops"]["rank"].size(); ++i) {
    ranks[document["ops"]["group"][i]].push_back(document["ops"]["rank"][i]);
  }
  EXPECT_EQ(ranks["world"], (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(ranks["world (2)"], (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(ranks["ranks 2,3 (2)"], (std::vector<int>{2, 3}));
  EXPECT_EQ(document["groups"]["ranks"][1], (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(document["ops"]["root"][1], 2);  // of the broadcast of rank 0
  EXPECT_EQ(document["aborts"][0]["rank"], 3);
  EXPECT_EQ(document["aborts"][0]["text"],
            "peer_lost: rank 3 (pid 7) is gone, says rank 2; 3 ranks were in #12 of rank, frank 2; "
            "ended by the launcher after process 1 of the job exited with code 7");
}

// Rank 1 dies, the others shrink, and a new rank makes them four again: former rank 2 is rank 1.
TEST_F(Merge, AGrownWorldIsNoneOfThoseBefore) {
  constexpr int kNew = 4;  // the file of the new rank
  const auto run = [this](int file, int rank, int size, int world,
                          std::span<const int> first = {}) {
    const auto recorder = trace::Recorder::open(path(file), 64);
    recorder->introduce(rank, size, "job", first, world);
    std::vector<int> members(static_cast<std::size_t>(size));
    std::iota(members.begin(), members.end(), 0);
    trace::TraceWriter writer = recorder->writer(0, members);
    writer.begin(recorder->name(Collective::broadcast, "flat"), 1, 64);
    const std::uint64_t begin = writer.stamp();
    if (rank == 0) {
      writer.pass(EventKind::send, false, 1, 0, 0, 64, begin, 1);
    } else if (rank == 1) {
      writer.pass(EventKind::receive, false, 0, 0, 0, 64, begin, 1);
    }
    writer.end();
  };
  const int first_ranks[] = {0, 2, 3};
  for (int rank = 0; rank < 4; ++rank) {
    run(rank, rank, 4, 0);
  }
  for (int rank = 0; rank < 3; ++rank) {
    run(first_ranks[rank], rank, 3, 1, first_ranks);
  }
  for (int rank = 0; rank < 4; ++rank) {
    run(rank == 3 ? kNew : first_ranks[rank], rank, 4, 2);
  }
  // In any order of the files.
  for (const auto& records : {read({0, 1, 2, 3, kNew}), read({kNew, 3, 2, 1, 0})}) {
    const auto document = merge_records(records, {.ranks = 4});
    std::map<std::string, std::vector<int>> ranks;
    for (std::size_t i = 0; i < document["ops"]["rank"].size(); ++i) {
      ranks[document["ops"]["group"][i]].push_back(document["ops"]["rank"][i]);
    }
    EXPECT_EQ(ranks["world"], (std::vector<int>{0, 1, 2, 3}));
    EXPECT_EQ(ranks["world (2)"], (std::vector<int>{0, 2, 3}));
    EXPECT_EQ(ranks["world (3)"], (std::vector<int>{0, 1, 2, 3}));
    std::map<std::string, int> receivers;
    for (std::size_t i = 0; i < document["messages"]["to"].size(); ++i) {
      receivers[document["messages"]["op"][i]] = document["messages"]["to"][i];
    }
    EXPECT_EQ(receivers, (std::map<std::string, int>{
                             {"world #1", 1}, {"world (2) #1", 2}, {"world (3) #1", 1}}));
  }
}

// Each program counts its worlds separately.
TEST_F(Merge, TheWorldsOfASecondProgramAreBehindThoseOfTheFirst) {
  for (int program = 0; program < 2; ++program) {
    for (int world = 0; world < 2; ++world) {
      for (int rank = 0; rank < 2 - world; ++rank) {
        const auto recorder = trace::Recorder::open(path(rank), 64);
        const int first_ranks[] = {0, 1};
        recorder->introduce(rank, 2 - world, "job",
                            std::span(first_ranks).first(static_cast<std::size_t>(2 - world)),
                            world);
      }
    }
  }
  const auto records = read({0, 1});
  EXPECT_EQ(trace::worlds_of(records), (std::vector<int>{0, 1, 2, 3, 0, 2}));
}

TEST_F(Merge, OfMoreThanTheRingHoldsTheNewestAreKept) {
  record(1000, 128);
  const auto records = read({0});
  ASSERT_EQ(records.size(), 1U);
  EXPECT_GE(records[0].dropped, 3000U - 128U - 64U);
  EXPECT_EQ(records[0].operations.back().number, 1000U);
  EXPECT_LE(records[0].passes.size() + records[0].operations.size(), 128U);
  for (const trace::RecordedPass& pass : records[0].passes) {
    EXPECT_LT(pass.operation, records[0].operations.size());
  }
}

// The ring wraps, and the last block is not full: the rest of it contains old data.
TEST_F(Merge, TheRestOfABlockIsNotRead) {
  for (int operations = 40; operations < 48; ++operations) {
    record(operations, 128);
    const auto records = read({0});
    ASSERT_EQ(records.size(), 1U);
    std::uint64_t number = records[0].operations.front().number;
    for (const trace::RecordedOperation& operation : records[0].operations) {
      EXPECT_EQ(operation.number, number++);
    }
    EXPECT_EQ(records[0].operations.back().number, static_cast<std::uint64_t>(operations));
    std::filesystem::remove(path(0));
    std::filesystem::remove(path(1));
  }
}

TEST_F(Merge, ADocumentHasAtMostSoManyRows) {
  record(100);
  const auto document = merge_records(read({0, 1}), {}, 60);
  EXPECT_LE(document["ops"]["rank"].size() + document["events"]["op"].size(), 60U);
  EXPECT_EQ(document["ops"]["number"].back(), 100);
  EXPECT_EQ(document["findings"][0]["kind"], "dropped");
  EXPECT_EQ(document["findings"][0]["next"], "record a shorter run");  // more events would not help
}

TEST_F(Merge, ADocumentHasAtMostSoManyTransfers) {
  const auto recorder = trace::Recorder::open(path(0), 4096);
  recorder->introduce(0, 2, "job");
  const int members[] = {0, 1};
  trace::TraceWriter writer = recorder->writer(0, members);
  for (int i = 0; i < 100; ++i) {
    writer.end_transfer(writer.begin_transfer(true, 1, i, 64), 1, 64);
  }
  const auto document = merge_records(read({0}), {}, 60);
  EXPECT_LE(document["transfers"]["rank"].size(), 60U);
  EXPECT_EQ(document["transfers"]["tag"].back(), 99);
  EXPECT_EQ(document["dropped_events"][0], 40);
}

TEST_F(Merge, WhatWasDroppedIsCountedWithWhatKeepsIt) {
  record(1000, 128);
  const auto records = read({0, 1});
  const auto document = merge_records(records, {});
  const std::uint64_t dropped = records[0].dropped + records[1].dropped;
  EXPECT_EQ(document["findings"][0]["text"], "the beginning is not here: ranks 0,1 dropped " +
                                                 std::to_string(dropped) +
                                                 " events, and kept the newest 128 each");
  EXPECT_EQ(document["findings"][0]["next"],
            "unisono run --record-events 4096 keeps all of such a run");
}

// Rank 1 does not finish its last operation.
TEST_F(Merge, AWaitThatNeverEndsLastsUntilTheLastEvent) {
  record(3);
  const auto document = merge_records(read({0, 1}), {});
  double last = 0;
  for (const char* column : {"start_us", "end_us"}) {
    for (const auto& value : document["ops"][column]) {
      last = std::max(last, value.is_null() ? 0 : value.get<double>());
    }
    for (const auto& value : document["events"][column]) {
      last = std::max(last, value.get<double>());
    }
  }
  const double begin = document["ops"]["start_us"].back();
  const double waiting = document["ops"]["waiting_us"].back();
  EXPECT_TRUE(document["ops"]["end_us"].back().is_null());
  EXPECT_GT(waiting, 0);
  EXPECT_LE(waiting, last - begin + 0.001);
  EXPECT_FALSE(document.contains("until_us"));
}

TEST_F(Merge, AWaitThatNeverEndsLastsUntilItsProcessEnded) {
  record(3);
  const auto records = read({0, 1});
  const std::int64_t later = records[1].base_ns + 5'000'000'000;
  JobEnd end = {.ranks = 2,
                .ends = {plain("done"), plain("killed by SIGKILL")},
                .gone = {{0, plain("look")}}};
  end.processes = {.clock = records[0].clock, .ns = {later, later}};
  const auto document = merge_records(records, end);
  EXPECT_NEAR(document["until_us"][1].get<double>(), 5e6, 1e6);
  EXPECT_NEAR(document["ops"]["waiting_us"].back().get<double>(), 5e6, 1e6);
  EXPECT_NEAR(document["findings"][0]["waited_s"].get<double>(), 5, 1);
  // If the clock of a process is unknown, its end is unknown too.
  end.processes.clock += 1;
  EXPECT_FALSE(merge_records(records, end).contains("until_us"));
}

TEST_F(Merge, WholeNumbersAreWrittenAsSuch) {
  EXPECT_EQ(us_of_ns(1372000).dump(), "1372");
  EXPECT_EQ(us_of_ns(1372001).dump(), "1372.001");
  EXPECT_EQ(us_of_ns(0).dump(), "0");
  EXPECT_EQ(us_of_ns(-1000).dump(), "-1");
}

TEST(Span, AnOperationOfAnHourIsOne) {
  constexpr std::uint64_t kHour = std::uint64_t{3600} * 4'000'000'000;  // ticks of 4 GHz
  const trace::recording::Event event = {.span =
                                             trace::recording::Event::pack_span(kHour, kHour / 4)};
  EXPECT_EQ(event.duration(), kHour);
  EXPECT_TRUE(event.ended());
  EXPECT_NEAR(event.busy(), 0.25, 1e-4);
}

TEST_F(Merge, AMissingRankIsNamed) {
  record(2);
  const auto document =
      merge_records(read({0}), {.ranks = 2, .ends = {plain("done"), plain("killed by SIGKILL")}});
  EXPECT_EQ(document["findings"][0]["text"], "rank 1 left no recording: killed by SIGKILL");
  EXPECT_TRUE(document["clock_uncertainty_us"][1].is_null());  // no information about it
  EXPECT_TRUE(document["messages"]["from"].empty());
}

TEST_F(Merge, AFileThatIsCutIsReadAsFarAsItGoes) {
  record(2);
  auto whole = bytes(0);
  const auto once = whole;
  whole.insert(whole.end(), once.begin(), once.end());
  EXPECT_EQ(trace::read_records(whole).size(), 2U);
  whole.pop_back();
  EXPECT_EQ(trace::read_records(whole).size(), 1U);
  EXPECT_TRUE(trace::read_records({}).empty());
}

TEST_F(Merge, WhateverIsInAFileItIsReadOrRefused) {
  record(20, 128);
  const auto whole = bytes(0);
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    auto damaged = whole;
    for (int i = 0; i < 20; ++i) {
      // Damages the first bytes of the header, the fields about its end, and the ring.
      using trace::recording::kRing;
      const std::size_t ended = offsetof(trace::recording::RecordingHeader, abort);
      const std::size_t places[] = {random() % 600, ended + random() % 64,
                                    kRing + random() % (damaged.size() - kRing)};
      damaged[places[i % 3]] = static_cast<std::byte>(random());
    }
    const auto document = merge_records(trace::read_records(damaged), {.ranks = 2});
    EXPECT_EQ(document["ranks"], 2);
  }
}

}  // namespace
}  // namespace unisono::cli
