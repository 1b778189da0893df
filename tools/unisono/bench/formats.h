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
  std::string algorithm;  // that ran
  int ranks = 1;
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  CallTiming timing;
  double limit_us = 0;       // 0: none
  std::uint64_t wrong = 0;   // elements, on all ranks
  std::uint64_t checks = 0;  // results that a rank compared with the reference
  std::uint64_t failed = 0;  // of them, those with a wrong element
  std::string bound;         // "exact", ...

  double algbw() const;  // GB/s, decimal
  double busbw() const;
};

// The suggested command if a world has one rank, and nothing to measure.
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
  bool several = false;  // more than one collective: a column says which
  bool narrow = false;   // text: no count, op, root and limit, so that a row fits 80 columns
};

std::string heading_text(Format format, const Heading& heading, const Console& console);
// `second` is the in-place row of the same case, or nullptr. nccl-tests puts both in one line.
std::string row_text(Format format, const Row& first, const Row* second, const Heading& heading,
                     const Console& console);
// After the last row: nothing but what nccl-tests' parsers need, and remarks for people.
std::string footer_text(Format format, const std::vector<Row>& rows, const Console& console);

// An SVG: time against bytes, one line per collective and algorithm, and the limit.
std::string plot_svg(const std::vector<Row>& rows);

}  // namespace unisono::cli
