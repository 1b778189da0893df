// Reads the recording of one rank (trace/recording.h). Times are in nanoseconds of its host's
// clock. Ranks and peers have their numbers in the job's first world, before any rank was lost. The
// reader trusts no value in the file, because its writer may have been killed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trace/recording.h"
#include "unisono/error.hpp"

namespace unisono::trace {

struct RecordedGroup {
  std::uint64_t id = 0;
  bool world = false;
  std::vector<int> members = {};  // ranks of the first world
};

struct RecordedOperation {
  int group = 0;  // index in RankRecord::groups
  std::uint64_t number = 0;
  std::string collective = {};
  std::string algorithm = {};
  std::uint64_t bytes = 0;
  double begin_ns = 0;
  double end_ns = -1;  // negative: not ended
  int root = -1;       // rank of the world; -1: no root
  unsigned terms = 0;  // see trace/recording.h
  std::string label = {};
};

// The reason why the rank's world ended.
struct RecordedAbort {
  ErrorCode code = ErrorCode::aborted;
  int culprit = -1;   // -1: none
  int reporter = -1;  // the first rank on the host to report it
  std::string text = {};
  double at_ns = 0;  // when the rank received it
};

struct RecordedPass {
  std::size_t operation = 0;  // index in RankRecord::operations
  recording::EventKind kind = recording::EventKind::none;
  bool to_all = false;
  int peer = -1;  // rank of the world; -1: all ranks, or none
  unsigned sequence = 0;
  unsigned step = 0;
  std::uint64_t bytes = 0;
  double begin_ns = 0;
  double end_ns = 0;
  double busy_ns = 0;
};

struct RecordedTransfer {
  int group = 0;
  bool send = false;
  int peer = -1;  // -1: unknown
  int tag = 0;
  std::uint64_t bytes = 0;
  double begin_ns = 0;
  double end_ns = -1;
  std::string label = {};
};

// All times count from `base_ns`, so that a double represents them to the picosecond.
struct RankRecord {
  int rank = 0;
  int size = 0;   // of the first world, as far as known
  int world = 0;  // number of the job's earlier worlds (shrink(), grow())
  std::string job = {};
  std::string host = {};
  std::uint64_t clock = 0;    // equal on ranks that share a clock
  std::int64_t base_ns = 0;   // in CLOCK_MONOTONIC
  double clock_error_ns = 0;  // error of reading the clock
  bool left = false;          // the rank left in good order
  std::uint64_t dropped = 0;  // number of dropped events, the oldest ones
  std::uint64_t events = 0;   // capacity of the ring
  int unrecorded_groups = 0;  // groups without room for their names
  std::vector<RecordedGroup> groups = {};
  std::vector<RecordedOperation> operations = {};  // sorted by begin
  std::vector<RecordedPass> passes = {};
  std::vector<RecordedTransfer> transfers = {};
  std::optional<RecordedAbort> abort = {};
};

// Returns true if the file is a recording with another layout version.
bool is_of_other_version(std::span<const std::byte> file);

// Returns one record for each time that the rank connected.
std::vector<RankRecord> read_records(std::span<const std::byte> file);

}  // namespace unisono::trace
