// The counts of an all_to_all_v: how many elements each rank sends to each other. They are of a
// call; a schedule that carries them is the exchange of that call, with blocks of their real sizes.
//
// Counts as text are one of
//
//   a table        a row for each sending rank, a number for each receiving one, with commas,
//                  semicolons, blanks or tabs between them; empty lines, and what follows a #, do
//                  not count
//   a JSON array   [[0, 5], [3, 0]], the same rows
//   unisono.counts/1
//                  {"format": "unisono.counts/1", "element_bytes": 4096,
//                   "send": [[0, 5], [3, 0]], "receive": [[0, 3], [5, 0]]}
//
// `receive` has a row for each receiving rank, with what it expects of each sending one; without it
// every rank expects what is sent. Limits: 4096 ranks, elements of 1 GiB, 2^63-1 bytes in
// all.
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

// The total that all ranks send, the most that one sends or receives, its own block included, and
// the largest block: in elements.
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

// The error in the shape or the size, with its position as a JSON pointer; empty message: no error.
struct CountProblem {
  std::string message = {};
  std::string position = {};
};
CountProblem check_counts(const Counts& counts);

Parsed<Counts> parse_counts(std::string_view text);

// Writes the keys element_bytes, send and, if given, receive of an object, one row per line, after
// `indent`.
std::string counts_members(const Counts& counts, std::string_view indent);
std::string to_json(const Counts& counts);  // unisono.counts/1

}  // namespace unisono
