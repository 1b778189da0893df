#include "bench/sweep.h"

#include <optional>

#include "algorithms/catalog.h"
#include "kernels/kernels.h"
#include "schedule/schedule.h"

namespace unisono::cli {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

void add_places(const SweepOptions& options, Case row, std::vector<Case>& cases) {
  const bool both = has_in_place(row.workload);
  if (options.out_of_place || !both) {
    cases.push_back(row);
  }
  if (options.in_place && both) {
    row.in_place = true;
    cases.push_back(row);
  }
}

bool is_barrier(const BenchWorkload& workload) {
  return !workload.send_recv && workload.collective == Collective::barrier;
}

bool uses_root(const BenchWorkload& workload) {
  return !workload.send_recv && is_rooted(workload.collective);
}

}  // namespace

bool uses_op(const BenchWorkload& workload) {
  return !workload.send_recv && reduces(plain_form(workload.collective));
}

bool is_defined(const BenchWorkload& workload, Dtype dtype, ReduceOp op) {
  return !uses_op(workload) || (kernels::find_reduce(dtype, op) != nullptr &&
                                !(op == ReduceOp::avg && is_scan(workload.collective)));
}

std::vector<BenchWorkload> all_workloads(int ranks) {
  std::vector<BenchWorkload> workloads;
  for (int i = 0; i < kCollectiveCount; ++i) {
    workloads.push_back({.send_recv = false, .collective = static_cast<Collective>(i)});
  }
  if (ranks > 1) {
    workloads.push_back({.send_recv = true, .collective = Collective::barrier});
  }
  return workloads;
}

std::vector<Case> sweep_cases(const SweepOptions& options, int ranks) {
  std::vector<Case> cases;
  for (const BenchWorkload& workload : options.workloads) {
    const std::size_t dtypes = is_barrier(workload) ? 1 : options.dtypes.size();
    const std::size_t ops = uses_op(workload) ? options.ops.size() : 1;
    const std::size_t roots = uses_root(workload) ? options.roots.size() : 1;
    const std::size_t sizes = is_barrier(workload) ? 1 : options.sizes.size();
    for (std::size_t dtype = 0; dtype < dtypes; ++dtype) {
      for (std::size_t op = 0; op < ops; ++op) {
        // Skips what is undefined among several; a single undefined case has already been rejected.
        if (!is_defined(workload, options.dtypes[dtype], options.ops[op])) {
          continue;
        }
        for (std::size_t root = 0; root < roots; ++root) {
          std::optional<std::uint64_t> before;  // small sizes may round to the same count
          for (std::size_t size = 0; size < sizes; ++size) {
            const Case row{.workload = workload,
                           .algorithm = options.algorithm,
                           .dtype = options.dtypes[dtype],
                           .op = options.ops[op],
                           .root = options.roots[root] % ranks,
                           .bytes = options.sizes[size],
                           .in_place = false};
            const std::uint64_t bytes = layout_of(row, 0, ranks).size_bytes;
            if (before != bytes) {
              add_places(options, row, cases);
            }
            before = bytes;
          }
        }
      }
    }
  }
  return cases;
}

std::vector<Case> main_job_cases(int ranks) {
  SweepOptions options{.workloads = all_workloads(ranks),
                       .dtypes = {Dtype::f32, Dtype::bf16},
                       .ops = {ReduceOp::sum},
                       .roots = {0},
                       .sizes = {8, kKiB, 64 * kKiB, kMiB, 16 * kMiB},
                       .algorithm = {},
                       .out_of_place = true,
                       .in_place = true};
  std::vector<Case> cases = sweep_cases(options, ranks);
  options.sizes = {64, 4 * kKiB, kMiB};
  options.roots = {ranks - 1};
  for (const Algorithm* algorithm : catalog()) {
    if (!can_serve(*algorithm, {.ranks = ranks})) {
      continue;
    }
    options.algorithm = algorithm->name;
    options.workloads.clear();
    for (int i = 0; i < kCollectiveCount; ++i) {
      const auto collective = static_cast<Collective>(i);
      const bool serves =
          collective == algorithm->collective || (algorithm->allows_v && is_v_form(collective) &&
                                                  plain_form(collective) == algorithm->collective);
      if (serves) {
        options.workloads.push_back({.send_recv = false, .collective = collective});
      }
    }
    const std::vector<Case> more = sweep_cases(options, ranks);
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

}  // namespace unisono::cli
