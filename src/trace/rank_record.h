// Reads the recording of one rank (trace/recording.h): times in nanoseconds of its host's clock,
// ranks and peers as in the job's first world, before any were lost. No value in such a file is
// trusted, because its writer may have been killed.
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
  int group = 0;  // in RankRecord::groups
  std::uint64_t number = 0;
  std::string collective = {};
  std::string algorithm = {};
  std::uint64_t bytes = 0;
  double begin_ns = 0;
  double end_ns = -1;  // negative: it has not ended
  int root = -1;       // of the world; -1: it has none
  unsigned terms = 0;  // trace/recording.h
  std::string label = {};
};

// Why the rank's world ended.
struct RecordedAbort {
  ErrorCode code = ErrorCode::aborted;
  int culprit = -1;   // -1: nobody
  int reporter = -1;  // who said so first, on the host
  std::string text = {};
  double at_ns = 0;  // when the rank knew
};

struct RecordedPass {
  std::size_t operation = 0;  // in RankRecord::operations
  recording::EventKind kind = recording::EventKind::none;
  bool to_all = false;
  int peer = -1;  // of the world; -1: all, or nobody
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
  int peer = -1;  // -1: not known
  int tag = 0;
  std::uint64_t bytes = 0;
  double begin_ns = 0;
  double end_ns = -1;
  std::string label = {};
};

// All times count from `base_ns`, so that a double has them to the picosecond.
struct RankRecord {
  int rank = 0;
  int size = 0;   // of the first world, as far as it is known
  int world = 0;  // how many the job had before, by shrink() and grow()
  std::string job = {};
  std::string host = {};
  std::uint64_t clock = 0;    // ranks with the same one have one clock
  std::int64_t base_ns = 0;   // CLOCK_MONOTONIC
  double clock_error_ns = 0;  // of reading it
  bool left = false;          // in good order
  std::uint64_t dropped = 0;  // events, the oldest
  std::uint64_t events = 0;   // that are kept at most
  int unrecorded_groups = 0;  // there was no room for their names
  std::vector<RecordedGroup> groups = {};
  std::vector<RecordedOperation> operations = {};  // by begin
  std::vector<RecordedPass> passes = {};
  std::vector<RecordedTransfer> transfers = {};
  std::optional<RecordedAbort> abort = {};
};

// A recording, but not of this layout.
bool is_of_other_version(std::span<const std::byte> file);

// A rank has one for each time that it connected.
std::vector<RankRecord> read_records(std::span<const std::byte> file);

}  // namespace unisono::trace
