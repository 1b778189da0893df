// The collectives of a recording, assembled from the recordings of their ranks, for replay.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "engine/replayed_operation.h"
#include "schedule/schedule.h"

namespace unisono::cli {

// A collective of a group.
struct RecordedCall {
  // The recording of one of its ranks.
  struct Part {
    std::size_t row = 0;  // in `ops`
    double begin_us = 0;
    double end_us = std::numeric_limits<double>::infinity();
  };
  std::string group = {};
  std::uint64_t number = 0;
  std::vector<int> members = {};  // ranks of the world
  std::map<int, Part> parts =
      {};                     // by rank of the group; none for a rank that did not reach the call
  std::string left_out = {};  // why it cannot be replayed; empty: it can

  engine::ReplayedCall call = {};
  std::string algorithm = {};
  Shape shape = {};
  std::unique_ptr<engine::ReplayedOperation> run = {};  // during the replay
  std::size_t open = 0;                                 // parts that have not ended

  int world_rank(int rank) const { return members[static_cast<std::size_t>(rank)]; }
  // Returns the rank in the group; -1: it has no such member.
  int member(int world_rank) const;
  std::string label() const;  // "world #12 all_reduce"
  // REQUIRES: the call can be replayed.
  void make_run();
};

// A rank's part in a call.
struct RecordedRow {
  RecordedCall* call = nullptr;  // nullptr: the group does not contain the rank
  int rank = 0;                  // of the group
};

class RecordedCalls {
 public:
  // Throws an exception of nlohmann::json if the trace is incomplete.
  explicit RecordedCalls(const nlohmann::ordered_json& trace);
  RecordedCalls(const RecordedCalls&) = delete;
  RecordedCalls& operator=(const RecordedCalls&) = delete;

  const std::vector<RecordedRow>& rows() const { return rows_; }  // by row of `ops`
  auto& all() { return calls_; }                                  // by group and number

 private:
  void read_peers();
  std::string prepare(RecordedCall& call) const;
  std::string measure(RecordedCall& call) const;
  bool has_dropped(const RecordedCall& call, int rank) const;

  const nlohmann::ordered_json& trace_;
  const nlohmann::ordered_json& ops_;
  std::map<std::pair<std::string, std::uint64_t>, RecordedCall> calls_;
  std::vector<RecordedRow> rows_;
  std::map<std::pair<std::string, int>, std::uint64_t> latest_;  // number, by group and rank
  std::map<std::string, bool> multicast_;  // by group: its lanes support multicast
};

}  // namespace unisono::cli
