// Replays a recorded run: the same collectives on the real engines of all ranks, in one process and
// on a simulated network, with all passes in the recorded order. So a rare failure on two hosts can
// be examined repeatedly on one.
//
// The data is not recorded. Inputs are computed from the rank and the operation's number; a program
// that fills its inputs in the same way gets the same bits. The factors of premul_sum are not
// recorded either, so premul_sum is left out. For send and recv only the order is replayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace unisono::cli {

// Fills a rank's input of the operation `number` of its group. Floats are finite. `rank`: a world
// rank.
void fill_input(std::span<std::byte> input, std::size_t element, int rank, std::uint64_t number);
// Returns the contribution of one output to Replay::results.
std::uint64_t digest(std::span<const std::byte> output, int rank, std::uint64_t number);

struct Replay {
  std::size_t operations = 0;                // operations of groups that were replayed
  std::size_t passes = 0;                    // rows of `events` that were replayed
  std::size_t transfers = 0;                 // calls of send and recv that ended
  int transfers_left_out = 0;                // of ranks that dropped their first events
  std::size_t unrecorded = 0;                // sends of ranks that died before they recorded them
  std::size_t later = 0;                     // passes that depend on a pass that ends later
  double later_us = 0;                       // the largest such difference
  std::uint64_t results = 0;                 // the sum of all digests
  bool is_nothing = true;                    // no operation and no transfer could be played
  std::map<std::string, int> left_out = {};  // reason -> number of operations
  std::string wrong = {};                    // an impossible part of the recording; empty: none
  std::vector<std::string> waits = {};  // at the end: "rank 0 waits for rank 2 at step 3 of ..."
};

// `trace`: a unisono.trace/1. Throws UsageError, or an exception of nlohmann::json, if it is
// incomplete.
Replay replay(const nlohmann::ordered_json& trace);

}  // namespace unisono::cli
