// The screen of `make run`: the machine, the speed of each collective, the result of all checks,
// and the next commands to try.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/formats.h"
#include "cli/console.h"

namespace unisono::cli {

struct PageFacts {
  int ranks = 1;
  int hosts = 1;
  int cpus = 1;
  std::string cpu;                // the model; may be empty
  std::uint64_t cache_bytes = 0;  // of the last level; 0: not known
  double others = 0;              // mean number of cores that other processes used during the run
  std::string table;              // the file of all rows; empty: they were printed
  std::string program;            // the command that calls this program
  bool unicode = true;            // bars of blocks, not of ASCII
};

// At most 80 columns wide and 24 lines long.
std::string page_text(const std::vector<Row>& rows, const PageFacts& facts, const Console& console);

// "0 wrong of 3120 checks"; a check is one rank's comparison of one result.
std::string verdict_text(const std::vector<Row>& rows);

// Returns nullptr if all rows are right.
const Row* first_wrong(const std::vector<Row>& rows);

}  // namespace unisono::cli
