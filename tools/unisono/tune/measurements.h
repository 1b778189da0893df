// The measurements of `unisono tune`, and the tables (CSV) that carry them between jobs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/account.h"
#include "cli/arguments.h"
#include "cost/machine.h"
#include "network_model/choose.h"
#include "tune/measure.h"

namespace unisono::cli {

// Measurements of the algorithms, of waiting policies and of numbers of threads.
struct Measurements {
  std::vector<cost::Point> points;
  std::vector<network_model::TimedWait> waits;
  std::vector<network_model::TimedThreads> threads;
  std::string table;                   // the whole table
  std::vector<Account> accounts = {};  // the accounts of the tables that were read
};

// --max-bytes, --sizes and --time. Throws UsageError.
MeasureOptions measure_options(const Arguments& arguments);

// --threads; none: it is not there. Throws UsageError.
std::vector<int> thread_counts_of(const Arguments& arguments);

// Runs one rank of a job: measures the numbers of threads of --threads, or else algorithms and wait
// policies. Rank 0 writes the table of --measure.
void measure_into_table(const Arguments& arguments);

// Throws UsageError with the place in the table.
void add_measurements(const std::string& path, Measurements& all);

}  // namespace unisono::cli
