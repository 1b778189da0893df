// The rows of a benchmark, as text for people, for parsers of nccl-tests' output, as CSV and as
// JSON Lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/timing.h"
#include "cli/console.h"

namespace unisono::cli {

struct Row {
  Case what;
  std::string algorithm;  // the algorithm that ran
  int ranks = 1;
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  CallTiming timing;
  double limit_us = 0;       // 0: none
  std::uint64_t wrong = 0;   // elements, on all ranks
  std::uint64_t checks = 0;  // comparisons of one rank's result with the reference
  std::uint64_t failed = 0;  // checks that found a wrong element
  std::string bound;         // "exact", ...

  double algbw() const;  // GB/s, decimal
  double busbw() const;
};

// The suggested command for a world with one rank, which has nothing to measure.
inline constexpr const char* kMoreRanks = "unisono run -n 4 -- unisono bench ...";

enum class Format : unsigned char { text, nccl_tests, csv, jsonl };

struct Heading {
  int ranks = 1;
  int cpus = 1;
  int hosts = 1;
  int iterations = 0;  // asked for
  double hop_us = 0;
  bool registered = false;
  bool persistent = false;
  bool fresh = false;
  bool several = false;  // more than one collective, so a column names it
  bool narrow =
      false;  // text without count, op, root and limit, so that a row fits into 80 columns
};

std::string heading_text(Format format, const Heading& heading, const Console& console);
// `second` is the in-place row of the same case, or nullptr. nccl-tests puts both in one line.
std::string row_text(Format format, const Row& first, const Row* second, const Heading& heading,
                     const Console& console);
// Returns the lines after the last row: the lines that parsers of nccl-tests need, or remarks for
// people.
std::string footer_text(Format format, const std::vector<Row>& rows, const Console& console);

// An SVG: time against bytes, one line per collective and algorithm, and the limit.
std::string plot_svg(const std::vector<Row>& rows);

}  // namespace unisono::cli
