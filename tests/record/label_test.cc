// Labels of operations: each operation keeps the label that was set when it began, its group's
// before the rank's, even if the ring wraps and other groups write in between.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "record/merge.h"
#include "trace/rank_record.h"
#include "trace/recorder.h"

namespace unisono::cli {
namespace {

class Labels : public testing::Test {
 protected:
  Labels() : path_(testing::TempDir() + "unisono-label-" + std::to_string(::getpid())) {}
  ~Labels() override { std::filesystem::remove(path_); }

  std::unique_ptr<trace::Recorder> recorder(std::uint64_t events) {
    auto made = trace::Recorder::open(path_, events);
    made->introduce(0, 2, "labels");
    return made;
  }
  std::vector<trace::RankRecord> read() const {
    std::ifstream file(path_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return trace::read_records(std::as_bytes(std::span(text)));
  }

  std::string path_;
};

TEST_F(Labels, AreThoseOfTheMomentAtWhichSomethingBegan) {
  constexpr int kTurns = 3000;
  std::map<std::pair<int, std::uint64_t>, std::string> wanted;
  std::vector<std::string> of_transfers;
  {
    const auto made = recorder(1024);  // the ring wraps several times
    const std::vector<int> world = {0, 1};
    const std::vector<int> alone = {0};
    std::vector<trace::TraceWriter> writers = {made->writer(0, world), made->writer(7, alone),
                                               made->writer(0, world)};
    const int name = made->name(Collective::all_reduce, "ring");
    std::mt19937 random(1);
    std::string now;
    std::string of_alone;
    for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
      if (random() % 3 == 0) {
        now = random() % 4 == 0 ? "" : "layer " + std::to_string(random() % 9);
        made->label(now);
      }
      if (random() % 5 == 0) {
        of_alone = random() % 2 == 0 ? "" : "apart " + std::to_string(random() % 9);
        made->label_group(7, alone, of_alone);
      }
      const int which = static_cast<int>(random() % 3);
      trace::TraceWriter& writer = writers[static_cast<std::size_t>(which)];
      if (which == 2) {
        writer.end_transfer(writer.begin_transfer(true, 1, 5, turn), 1, turn);
        of_transfers.push_back(now);
        continue;
      }
      writer.begin(name, turn, 8);
      writer.stamp();
      writer.pass(trace::recording::EventKind::send, false, 1, 0, 0, 8, writer.recent(), 0);
      writer.end();
      wanted[{which, turn}] = which == 1 && !of_alone.empty() ? of_alone : now;
    }
  }
  const auto records = read();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_GT(records[0].operations.size(), 100U);
  for (const trace::RecordedOperation& operation : records[0].operations) {
    EXPECT_EQ(operation.label, wanted.at({operation.group, operation.number})) << operation.number;
  }
  const auto& transfers = records[0].transfers;
  ASSERT_GT(transfers.size(), 50U);
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    EXPECT_EQ(transfers[i].label, of_transfers[of_transfers.size() - transfers.size() + i]) << i;
  }
}

TEST_F(Labels, BeyondTheRoomForNamesAreOther) {
  {
    const auto made = recorder(4096);
    trace::TraceWriter writer = made->writer(0, std::vector<int>{0, 1});
    const int name = made->name(Collective::barrier, "flat");
    for (std::uint64_t i = 0; i < 600; ++i) {
      made->label("label " + std::to_string(i));
      writer.begin(name, i, 0);
      writer.end();
    }
    made->label(std::string(500, 'x'));
  }
  const auto records = read();
  ASSERT_EQ(records.size(), 1U);
  ASSERT_EQ(records[0].operations.size(), 600U);
  EXPECT_EQ(records[0].operations[0].collective, "barrier");
  EXPECT_EQ(records[0].operations[0].label, "label 0");
  EXPECT_EQ(records[0].operations[599].label, "other");
}

TEST_F(Labels, AreAColumnOfTheRecording) {
  {
    const auto made = recorder(128);
    trace::TraceWriter writer = made->writer(0, std::vector<int>{0, 1});
    const int name = made->name(Collective::barrier, "flat");
    for (const char* label : {"", "step 1", ""}) {
      made->label(label);
      writer.begin(name, 1, 0);
      writer.end();
    }
  }
  const auto records = read();
  const auto document = merge_records(records, {});
  EXPECT_EQ(document["ops"]["label"], nlohmann::ordered_json::array({nullptr, "step 1", nullptr}));
  EXPECT_FALSE(document["transfers"].contains("label"));
}

}  // namespace
}  // namespace unisono::cli
