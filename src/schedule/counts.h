// The counts of an all_to_all_v: how many elements each rank sends to each other rank. Counts
// belong to one call. A schedule with counts is the exchange of that call, with blocks of their
// real sizes.
//
// Counts as text have one of these forms:
//
//  a table        a row for each sending rank, with a number for each receiving rank, separated by
//                 commas, semicolons, blanks or tabs; empty lines, and text after a #, are ignored
//  a JSON array   [[0, 5], [3, 0]], the same rows
//  unisono.counts/1
//                 {"format": "unisono.counts/1", "element_bytes": 4096,
//                  "send": [[0, 5], [3, 0]], "receive": [[0, 3], [5, 0]]}
//
// `receive` has a row for each receiving rank: the counts that it expects from each sending rank.
// Without `receive`, every rank expects the counts that are sent. Limits: 4096 ranks, elements of 1
// GiB, 2^63-1 bytes in total.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"

namespace unisono {

inline constexpr std::string_view kCountsFormat = "unisono.counts/1";
inline constexpr int kMostCountedRanks = 4096;
inline constexpr std::int64_t kMostElementBytes = std::int64_t{1} << 30;

using CountRows = std::vector<std::vector<std::int64_t>>;

struct Counts {
  std::int64_t element_bytes = 1;
  CountRows send = {};     // [from][to], elements; empty: no counts, blocks are equal
  CountRows receive = {};  // [at][from]; empty: as sent

  bool empty() const { return send.empty(); }
  int ranks() const { return static_cast<int>(send.size()); }
  std::int64_t sent(int from, int to) const {
    return send[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
  std::int64_t expected(int at, int from) const {
    return receive.empty() ? sent(from, at)
                           : receive[static_cast<std::size_t>(at)][static_cast<std::size_t>(from)];
  }

  friend bool operator==(const Counts&, const Counts&) = default;
};

// In elements: the total that all ranks send, the most that one rank sends or receives (including
// its own block), and the largest block.
struct CountTotals {
  std::int64_t all = 0;
  std::int64_t most_sent = 0;
  std::int64_t most_received = 0;
  std::int64_t largest = 0;
  int busiest_sender = 0;
  int busiest_receiver = 0;
};
// REQUIRES: check_counts() finds nothing.
CountTotals totals_of(const Counts& counts);

// An error in the shape or the size, with its position as a JSON pointer. An empty message means
// that there is no error.
struct CountProblem {
  std::string message = {};
  std::string position = {};
};
CountProblem check_counts(const Counts& counts);

Parsed<Counts> parse_counts(std::string_view text);

// Writes the keys element_bytes, send and (if given) receive of a JSON object, one row per line,
// each line after `indent`.
std::string counts_members(const Counts& counts, std::string_view indent);
std::string to_json(const Counts& counts);  // unisono.counts/1

}  // namespace unisono
