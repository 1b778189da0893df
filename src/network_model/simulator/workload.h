// The input of a simulation: operations of groups, and compute steps between them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalog.h"
#include "base/parsed.h"
#include "schedule/compact.h"
#include "schedule/schedule.h"

namespace unisono::network_model {

// An operation, if it has a schedule in one of its two forms; otherwise a compute step. A rank runs
// the items of one stream in sequence, in the order of the workload. The streams of a rank run
// concurrently and share its links. A rank starts an item only after all ranks have ended the items
// named in `after`.
struct WorkItem {
  std::string name = {};
  std::vector<int> ranks = {};  // members of the group in order; empty: all ranks
  int stream = 0;
  std::vector<int> after = {};  // earlier items of the workload, by index
  // Other earlier items; each rank waits only until it has ended them itself.
  std::vector<int> after_own = {};
  double compute_us = 0;
  std::vector<double> rank_compute_us = {};  // by rank; empty: all use compute_us
  // Size of the vector (cost/cost.h, chunk_bytes). If the schedule has counts, the most that a rank
  // sends or receives; for display only.
  double bytes = 0;
  std::shared_ptr<const Schedule> schedule = {};  // shared by all items that run it
  std::shared_ptr<const CompactSchedule> compact = {};
};

struct Workload {
  int ranks = 1;
  std::vector<WorkItem> items = {};
};

// Returns an item that runs an algorithm on all ranks: in the short form if there is one, unless
// `written_out`. Errors: Error(usage) if the algorithm does not support the shape, or has too many
// messages to write them out.
WorkItem operation(const Algorithm& algorithm, Shape shape, double bytes, bool written_out = false);

// Returns an item that exchanges the schedule's counts. REQUIRES: it has counts that fit it.
WorkItem exchange(Schedule schedule);

// A point-to-point message.
struct Transfer {
  int from = 0;  // ranks of the workload
  int to = 0;
  double bytes = 0;
};
// Returns point-to-point messages that start together: a rank continues when it has sent and
// received its own messages. REQUIRES: at least one transfer, ranks that are not negative, no
// transfer from a rank to itself, whole bytes up to 2^53.
WorkItem transfers(const std::vector<Transfer>& messages);

// The speed of a rank, for compute steps specified by their work.
struct DeviceRates {
  double flops_per_s = 0;
  double memory_bytes_per_s = 0;
};

// Loads the objects that a workload refers to by name. The parser passes on their exceptions.
// Without a source, such names are refused.
struct WorkloadSources {
  std::function<Schedule(const std::string& name)> schedule = {};  // REQUIRES: verified
  std::function<Counts(const std::string& name)> counts = {};
  std::function<std::optional<DeviceRates>(const std::string& name)> device = {};
};

// Workloads as JSON, `unisono.workload/1`; docs/formats/workload.md describes the format:
//
//   {"format": "unisono.workload/1", "ranks": 8, "device": "h100",
//    "groups": {"tp": {"size": 4}, "first": [0, 1, 2, 3]},
//    "items": [{"repeat": 32, "items": [
//                {"name": "layer", "flops": 2e12, "memory_bytes": 1e9},
//                {"collective": "all_reduce", "algorithm": "ring", "bytes": 1048576,
//                 "group": "tp"}]},
//              {"from": [0, 1], "to": [4, 5], "bytes": 4096},
//              {"collective": "all_to_all_v", "algorithm": "pairwise", "group": [0, 1],
//               "counts": [[0, 5], [3, 1]], "element_bytes": 4096}]}
//
// Limits: 2^20 ranks, and a million items, counting repeats.
inline constexpr std::string_view kWorkloadFormat = "unisono.workload/1";

Parsed<Workload> parse_workload_json(std::string_view text, bool written_out = false,
                                     const WorkloadSources& sources = {});

}  // namespace unisono::network_model
