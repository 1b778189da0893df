// The cases that a benchmark runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/cases.h"

namespace unisono::cli {

struct SweepOptions {
  std::vector<BenchWorkload> workloads;
  std::vector<Dtype> dtypes;
  std::vector<ReduceOp> ops;
  std::vector<int> roots;
  std::vector<std::uint64_t> sizes;
  std::string algorithm;
  bool out_of_place = true;
  bool in_place = true;
};

// Returns true if the workload combines elements.
bool uses_op(const BenchWorkload& workload);
// Returns true if the workload does not combine, or if it has this operation of this type.
bool is_defined(const BenchWorkload& workload, Dtype dtype, ReduceOp op);

// Out-of-place and in-place cases of one combination follow each other.
std::vector<Case> sweep_cases(const SweepOptions& options, int ranks);

// Every primitive of the catalogue on f32 and bf16: the chosen algorithm at all sizes, each
// algorithm at a few.
std::vector<Case> main_job_cases(int ranks);

// Every collective, and send_recv if there are two ranks.
std::vector<BenchWorkload> all_workloads(int ranks);

}  // namespace unisono::cli
