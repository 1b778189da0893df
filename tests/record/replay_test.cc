// Real runs, recorded and replayed: the same order of events on each rank, and the same bits. With
// UNISONO_TEST_FULL, more runs; a seed determines each.
#include "record/replay.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>

#include "algorithms/catalog.h"
#include "bootstrap/testing.h"
#include "cli/failure.h"
#include "record/files.h"
#include "record/merge.h"
#include "transport/sim/random.h"
#include "unisono/communicator.hpp"

namespace unisono::cli {
namespace {

using nlohmann::ordered_json;
using sim::Random;

constexpr std::size_t kMostBytes = 600'000;

// A drawn call, the same on all ranks.
struct Drawn {
  Collective collective = Collective::all_reduce;
  std::string algorithm = {};  // empty: the library's choice
  Dtype dtype = Dtype::f32;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 0;
  int root = 0;
  bool in_place = false;
};

std::string draw_algorithm(Random& random, Collective collective, int ranks, int root) {
  std::vector<std::string> names{""};
  for (const Algorithm* algorithm : catalog()) {
    const Shape shape = complete(*algorithm, {.ranks = ranks, .root = root});
    if (find_algorithm(collective, algorithm->name) == algorithm && can_serve(*algorithm, shape)) {
      names.emplace_back(algorithm->name);
    }
  }
  return names[random.below(names.size())];
}

Drawn draw(Random& random, int ranks) {
  constexpr Dtype kTypes[] = {Dtype::f32, Dtype::bf16, Dtype::f64, Dtype::u8, Dtype::i32};
  constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::max, ReduceOp::avg};  // scans have no avg
  Drawn one;
  do {
    one.collective = static_cast<Collective>(random.below(kCollectiveCount));
  } while (is_v_form(one.collective));
  one.dtype = kTypes[random.below(std::size(kTypes))];
  one.op = kOps[random.below(std::size(kOps) - (is_scan(one.collective) ? 1 : 0))];
  one.root = static_cast<int>(random.below(static_cast<std::uint64_t>(ranks)));
  one.algorithm = draw_algorithm(random, one.collective, ranks, one.root);
  const std::size_t most = kMostBytes / size_of(one.dtype) / static_cast<std::size_t>(ranks);
  one.count = random.below(random.one_in(2) ? 200 : most);
  one.in_place = random.one_in(3);
  return one;
}

// One rank's buffers for a call.
class Buffers {
 public:
  Buffers(const Drawn& one, int rank, int ranks) {
    const auto n = static_cast<std::size_t>(ranks);
    const auto me = static_cast<std::size_t>(rank);
    const bool root = rank == one.root;
    const std::size_t part = one.count * size_of(one.dtype);
    std::size_t in_offset = 0;
    std::size_t out_offset = 0;
    switch (one.collective) {
      case Collective::broadcast:
        in_bytes_ = root ? part : 0;
        out_bytes_ = part;
        break;
      case Collective::reduce:
        in_bytes_ = part;
        out_bytes_ = root ? part : 0;
        break;
      case Collective::scatter:
        in_bytes_ = root ? n * part : 0;
        out_bytes_ = part;
        out_offset = root ? me * part : 0;
        break;
      case Collective::gather:
        in_bytes_ = part;
        out_bytes_ = root ? n * part : 0;
        in_offset = root ? me * part : 0;
        break;
      case Collective::all_gather:
        in_bytes_ = part;
        out_bytes_ = n * part;
        in_offset = me * part;
        break;
      case Collective::reduce_scatter:
        in_bytes_ = n * part;
        out_bytes_ = part;
        out_offset = me * part;
        break;
      case Collective::all_to_all:
        in_bytes_ = out_bytes_ = n * part;
        break;
      case Collective::barrier:
        break;
      default:
        in_bytes_ = out_bytes_ = part;
        break;
    }
    const bool both = in_bytes_ != 0 && out_bytes_ != 0;
    in_ = one.in_place && both ? in_offset : 0;
    out_ = one.in_place && both ? out_offset : in_bytes_;
    memory_.resize(std::max(in_ + in_bytes_, out_ + out_bytes_) + 1);
  }
  std::span<std::byte> in() { return {memory_.data() + in_, in_bytes_}; }
  std::span<std::byte> out() { return {memory_.data() + out_, out_bytes_}; }

 private:
  std::vector<std::byte> memory_;
  std::size_t in_ = 0, out_ = 0, in_bytes_ = 0, out_bytes_ = 0;
};

class ReplayTest : public ::testing::Test {
 protected:
  ReplayTest() {
    std::filesystem::create_directories(folder_);
    ::setenv("UNISONO_RECORD", folder_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  ~ReplayTest() override {
    ::unsetenv("UNISONO_RECORD");  // NOLINT(concurrency-mt-unsafe)
    std::filesystem::remove_all(folder_);
  }

  // All ranks make these calls, and leave a recording. Returns the hashes of their results, as
  // replay() computes them.
  std::uint64_t record(
      int ranks, const std::vector<Drawn>& calls,
      const std::function<void(Communicator&)>& then = [](Communicator&) {}) {
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      std::filesystem::remove(file);
    }
    std::atomic<std::uint64_t> results = 0;
    const std::string job = comm::testing::unique_name("replay");
    const auto said = comm::testing::as_threads(ranks, [&](int rank) {
      Communicator communicator =
          Communicator::connect(comm::testing::options_for(rank, ranks, job));
      std::uint64_t number = 0;
      for (const Drawn& one : calls) {
        Buffers buffers(one, communicator.rank(), ranks);
        fill_input(buffers.in(), size_of(one.dtype), communicator.rank(), ++number);
        communicator.run({.collective = one.collective,
                          .in = buffers.in().data(),
                          .out = buffers.out().data(),
                          .count = one.collective == Collective::barrier ? 0 : one.count,
                          .dtype = one.dtype,
                          .reduction = one.op,
                          .root = one.root,
                          .algorithm = one.algorithm});
        results += digest(buffers.out(), communicator.rank(), number);
      }
      then(communicator);
      return std::string();
    });
    for (const std::string& wrong : said) {
      EXPECT_EQ(wrong, "");
    }
    std::vector<trace::RankRecord> records;
    for (const auto& file : read_recordings(folder_)) {
      for (trace::RankRecord& one : trace::read_records(file)) {
        records.push_back(std::move(one));
      }
    }
    trace_ = merge_records(records, {});
    return results;
  }
  // An all_reduce around a ring: each rank receives before it passes data on.
  void record_ring() { record(3, {{.algorithm = "ring", .count = 3000}}); }
  // Two ranks, two messages that are received in another order, the second from any rank, then a
  // barrier, then an answer.
  void record_transfers() {
    record(2, {}, [](Communicator& communicator) {
      std::vector<std::byte> one(8);
      if (communicator.rank() == 0) {
        communicator.send(one.data(), one.size(), 1, 1);
        communicator.send(one.data(), one.size(), 1, 2);
      } else {
        communicator.recv(one.data(), one.size(), kAnySource, 2);
        communicator.recv(one.data(), one.size(), 0, 1);
      }
      communicator.barrier();
      if (communicator.rank() == 1) {
        communicator.send(one.data(), one.size(), 0, 3);
      } else {
        communicator.recv(one.data(), one.size(), 1, 3);
      }
    });
  }
  std::size_t find_transfer(int rank, const char* kind, int tag) const {
    const ordered_json& all = trace_["transfers"];
    for (std::size_t i = 0; i < all["rank"].size(); ++i) {
      if (all["rank"][i] == rank && all["kind"][i] == kind && all["tag"][i] == tag) {
        return i;
      }
    }
    ADD_FAILURE() << "no such transfer";
    return 0;
  }
  // Expects the result of the only call.
  void expect_left_out(const std::string& why) {
    const Replay again = replay(trace_);
    EXPECT_EQ(again.wrong, "");
    EXPECT_TRUE(again.is_nothing);
    EXPECT_EQ(again.left_out, (std::map<std::string, int>{{why, 1}}));
    EXPECT_EQ(again.operations + again.passes, 0U);
  }
  // Returns the first event of rank 0 with this kind.
  std::size_t find(const char* kind, int step) const {
    const ordered_json& events = trace_["events"];
    for (std::size_t i = 0; i < events["op"].size(); ++i) {
      if (trace_["ops"]["rank"][events["op"][i].get<std::size_t>()] == 0 &&
          events["kind"][i] == kind && events["step"][i] == step) {
        return i;
      }
    }
    ADD_FAILURE() << "no such event: " << kind << " at step " << step;
    return 0;
  }

  ordered_json trace_;

 private:
  std::string folder_ = ::testing::TempDir() + "replay-" + std::to_string(::getpid());
};

TEST_F(ReplayTest, HasTheOrderAndTheBitsOfTheRun) {
  const bool full = std::getenv("UNISONO_TEST_FULL") != nullptr;  // NOLINT(concurrency-mt-unsafe)
  for (std::uint64_t seed = 1; seed <= (full ? 1000U : 15U); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const int ranks = 2 + static_cast<int>(random.below(5));
    std::vector<Drawn> calls(6);
    std::generate(calls.begin(), calls.end(), [&] { return draw(random, ranks); });
    const std::uint64_t results = record(ranks, calls);
    const Replay again = replay(trace_);
    ASSERT_EQ(again.wrong, "");
    EXPECT_TRUE(again.left_out.empty()) << again.left_out.begin()->first;
    EXPECT_TRUE(again.waits.empty()) << again.waits.front();
    EXPECT_EQ(again.operations, calls.size());
    EXPECT_EQ(again.passes, trace_["events"]["op"].size());
    EXPECT_EQ(again.unrecorded, 0U);
    ASSERT_EQ(again.results, results);
  }
}

TEST_F(ReplayTest, HoldsAnotherOrderForImpossible) {
  record_ring();
  trace_["events"]["end_us"][find("send", 1)] = 0;
  EXPECT_EQ(replay(trace_).wrong,
            "rank 0 sends 4000 bytes to rank 1 at step 2 of world #1 all_reduce, and what that "
            "needs nobody recorded");
}

TEST_F(ReplayTest, NoticesWhatIsMissing) {
  record_ring();
  const std::size_t gone = find("receive", 3);
  for (auto& [name, column] : trace_["events"].items()) {
    column.erase(gone);
  }
  EXPECT_EQ(replay(trace_).wrong, "rank 0 ends world #1 all_reduce before all of it was done");
}

TEST_F(ReplayTest, NoticesWhatTheScheduleDoesNotHave) {
  record_ring();
  trace_["events"]["bytes"][find("send", 1)] = 4004;
  EXPECT_EQ(replay(trace_).wrong,
            "rank 0 sends 4004 bytes to rank 1 at step 2 of world #1 all_reduce, which its "
            "schedule does not have");
}

// Rank 0 was killed after its first send.
TEST_F(ReplayTest, EndsWhereTheRunEnded) {
  record_ring();
  ordered_json& events = trace_["events"];
  const std::size_t first = find("send", 0);
  for (std::size_t i = events["op"].size(); i-- > 0;) {
    const std::size_t row = events["op"][i].get<std::size_t>();
    const bool is_killed = trace_["ops"]["rank"][row] == 0;
    const bool is_left = is_killed ? i == first : events["step"][i] == 0;
    for (auto& [name, column] : events.items()) {
      if (!is_left) {
        column.erase(i);
      }
    }
  }
  for (ordered_json& end : trace_["ops"]["end_us"]) {
    end = nullptr;
  }
  const Replay again = replay(trace_);
  EXPECT_EQ(again.wrong, "");
  EXPECT_EQ(again.operations, 0U);
  const auto waits = [&again](const std::string& one) {
    return std::count(again.waits.begin(), again.waits.end(), one + " of world #1 all_reduce");
  };
  EXPECT_EQ(waits("rank 1 waits for rank 0 at step 2"), 1);
}

// Rank 0 was killed between the message and the event. If the message was part of a reduction, it
// was killed before the event of the data that it received and reduced.
TEST_F(ReplayTest, SendsWhatADeadRankDidNotWriteDown) {
  for (int last = 0; last < 4; ++last) {
    SCOPED_TRACE("step " + std::to_string(last));
    record_ring();
    ordered_json& events = trace_["events"];
    for (std::size_t i = events["op"].size(); i-- > 0;) {
      const bool is_killed = trace_["ops"]["rank"][events["op"][i].get<std::size_t>()] == 0;
      const int lost = is_killed ? 1 : 0;
      if (events["step"][i].get<int>() > last - lost - (events["kind"][i] == "send" ? 0 : lost)) {
        for (auto& [name, column] : events.items()) {
          column.erase(i);
        }
      }
    }
    for (ordered_json& end : trace_["ops"]["end_us"]) {
      end = nullptr;
    }
    const Replay again = replay(trace_);
    EXPECT_EQ(again.wrong, "");
    EXPECT_EQ(again.unrecorded, 1U);
    EXPECT_EQ(again.waits.empty(), last == 3);
  }
}

// Ranks 0 and 1 were killed at the same time, and their recordings contain only that they began:
// rank 1's last message used the message of rank 0.
TEST_F(ReplayTest, SendsWhatTwoDeadRanksDidNotWriteDown) {
  record_ring();
  ordered_json& events = trace_["events"];
  for (std::size_t i = events["op"].size(); i-- > 0;) {
    const bool is_left = trace_["ops"]["rank"][events["op"][i].get<std::size_t>()] == 2 &&
                         events["step"][i].get<int>() < 2;
    for (auto& [name, column] : events.items()) {
      if (!is_left) {
        column.erase(i);
      }
    }
  }
  for (ordered_json& end : trace_["ops"]["end_us"]) {
    end = nullptr;
  }
  const Replay again = replay(trace_);
  EXPECT_EQ(again.wrong, "");
  // Two messages from rank 1 to rank 2, and one from rank 0 to rank 1 before the second.
  EXPECT_EQ(again.unrecorded, 3U);
}

TEST_F(ReplayTest, SaysWhatItLeavesOut) {
  record_ring();
  trace_["ops"]["dtype"][0] = nullptr;
  expect_left_out("whose ranks do not have the same dtype");
}

TEST_F(ReplayTest, LeavesOutFactors) {
  record(2, {{.op = ReduceOp::premul_sum, .count = 100}});
  expect_left_out("with a factor, which is not recorded");
}

TEST_F(ReplayTest, TrustsNoRankOfADamagedRecording) {
  const std::string not_ranks = "of a group whose members are not ranks of the recording";
  record_ring();
  const ordered_json whole = trace_;
  for (const std::vector<int>& members : {std::vector{0, 1, 99}, {0, 1, -1}, {0, 1, 1}}) {
    trace_ = whole;
    trace_["groups"]["ranks"][0] = members;
    trace_["events"]["peer"][find("send", 0)] = members.back();
    expect_left_out(not_ranks);
  }
  trace_ = whole;
  trace_["ranks"] = 2;
  expect_left_out(not_ranks);
  trace_ = whole;
  trace_["groups"]["ranks"][0] = {1, 2};
  expect_left_out("of a rank that its group does not have");
  trace_ = whole;
  trace_["events"]["peer"][find("send", 0)] = 99;
  expect_left_out("of a rank that its group does not have");
}

// Values too large for their type: their conversion is undefined.
TEST_F(ReplayTest, TakesNoNumberThatDoesNotFit) {
  record_ring();
  const ordered_json whole = trace_;
  const std::pair<const char*, const char*> kColumns[] = {
      {"ops", "rank"},    {"ops", "number"},  {"ops", "bytes"},   {"events", "op"},
      {"events", "peer"}, {"events", "step"}, {"events", "bytes"}};
  for (const auto& [table, column] : kColumns) {
    SCOPED_TRACE(std::string(table) + " " + column);
    for (const ordered_json& number : {ordered_json(1e300), ordered_json(-1e300), ordered_json(0.5),
                                       ordered_json(std::uint64_t{1} << 63)}) {
      trace_ = whole;
      trace_[table][column][1] = number;
      try {
        replay(trace_);
        ADD_FAILURE() << "took " << number;
      } catch (const UsageError& error) {
        const std::string place = std::string("/") + table + "/" + column + "/1 is not in ";
        EXPECT_TRUE(std::string(error.what()).find(place) != std::string::npos) << error.what();
      }
    }
  }
  trace_ = whole;
  trace_["ranks"] = 1e300;
  EXPECT_THROW(replay(trace_), UsageError);
  trace_ = whole;
  trace_["groups"]["ranks"][0][1] = 1e300;
  EXPECT_THROW(replay(trace_), UsageError);
}

// Rank 1 receives the first message of rank 0 last, and one rank receives from any rank.
TEST_F(ReplayTest, PlaysWhatWasSentInOrder) {
  record_transfers();
  const Replay again = replay(trace_);
  EXPECT_EQ(again.wrong, "");
  EXPECT_FALSE(again.is_nothing);
  EXPECT_EQ(again.transfers, 6U);
  EXPECT_EQ(again.operations, 1U);
  EXPECT_TRUE(again.waits.empty());
}

TEST_F(ReplayTest, HoldsItForImpossibleToReceiveFirst) {
  record_transfers();
  // Rank 0 sends after it was told of the arrival.
  trace_["transfers"]["start_us"][find_transfer(0, "send", 1)] = 1e9;
  trace_["transfers"]["end_us"][find_transfer(0, "send", 1)] = 1e9;
  EXPECT_EQ(replay(trace_).wrong,
            "rank 1 receives from rank 0, tag 1 in world, and what that needs nobody recorded");
}

TEST_F(ReplayTest, SaysWhoWaitsForWhatIsNotSent) {
  record_transfers();
  // Rank 0 died before it sent, and rank 1 before it received.
  const std::size_t sent = find_transfer(0, "send", 1);
  for (auto& [name, column] : trace_["transfers"].items()) {
    column.erase(sent);
  }
  trace_["transfers"]["end_us"][find_transfer(1, "receive", 1)] = nullptr;
  const std::size_t received = find_transfer(0, "receive", 3);
  for (auto& [name, column] : trace_["transfers"].items()) {
    column.erase(received);
  }
  trace_["transfers"]["end_us"][find_transfer(1, "send", 3)] = nullptr;
  const Replay again = replay(trace_);
  EXPECT_EQ(again.wrong, "");
  EXPECT_EQ(again.waits,
            (std::vector<std::string>{"rank 1 waits for rank 0 to send, tag 1 in world",
                                      "rank 1 waits for rank 0 to receive, tag 3 in world"}));
}

TEST_F(ReplayTest, LeavesOutTransfersOfARankThatDroppedEvents) {
  record_transfers();
  trace_["dropped_events"][0] = 5;
  const Replay again = replay(trace_);
  EXPECT_EQ(again.wrong, "");
  EXPECT_EQ(again.transfers, 0U);
  EXPECT_EQ(again.transfers_left_out, 6);
}

TEST_F(ReplayTest, MakesNoBuffersThatTheHostCannotHold) {
  record_ring();
  for (ordered_json& bytes : trace_["ops"]["bytes"]) {
    bytes = std::uint64_t{1} << 62;
  }
  // 3 ranks, 4 times 4 EiB, and some bytes for their lanes.
  expect_left_out("for which this host would need 51539607553 GiB of memory");
}

TEST_F(ReplayTest, BuildsNoScheduleThatThereIsNot) {
  record(3, {{.collective = Collective::all_gather, .count = 100}});
  trace_["ops"]["algorithm"] = {"ring:radix=2", "ring:radix=2", "ring:radix=2"};
  expect_left_out("with parameters that its algorithm does not take");
  // It requires an even number of ranks.
  const std::string pairs = "neighbour_exchange";
  trace_["ops"]["algorithm"] = {pairs, pairs, pairs};
  expect_left_out("with an algorithm that cannot serve so many ranks");
}

TEST_F(ReplayTest, TakesARankOnce) {
  record_ring();
  for (auto& [name, column] : trace_["ops"].items()) {
    column.push_back(ordered_json(column[0]));
  }
  expect_left_out("that a rank has twice");
}

}  // namespace
}  // namespace unisono::cli
