// What a simulation plays: operations of groups, and compute steps between them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalog.h"
#include "base/parsed.h"
#include "schedule/compact.h"
#include "schedule/schedule.h"

namespace unisono::model {

// An operation, if it has a schedule in one of its two forms; else a compute step. A rank takes the
// items of one stream one after the other, in the order of the workload; its streams run side by
// side and share its links. It begins none before all ranks have ended those that it comes `after`.
struct WorkItem {
  std::string name = {};
  std::vector<int> ranks = {};  // of the group, in its order; empty: all
  int stream = 0;
  std::vector<int> after = {};  // earlier items of the workload, by index
  double compute_us = 0;
  // The vector (model/cost.h, chunk_bytes). Where the schedule has counts: the most that a rank
  // sends or receives, for people.
  double bytes = 0;
  std::shared_ptr<const Schedule> schedule = {};  // shared by the items that run it
  std::shared_ptr<const CompactSchedule> compact = {};
};

struct Workload {
  int ranks = 1;
  std::vector<WorkItem> items = {};
};

// The item that runs an algorithm on all ranks, in the short form where there is one, unless it has
// to be `written_out`. Errors: Error(usage) if the algorithm cannot serve the shape, or has too
// many messages to write them out.
WorkItem operation(const Algorithm& algorithm, Shape shape, double bytes, bool written_out = false);

// The exchange of the counts of a schedule. REQUIRES: it has some, which fit it.
WorkItem exchange(Schedule schedule);

// Workloads as JSON, `unisono.workload/1`:
//
//   {"format": "unisono.workload/1", "ranks": 8,
//    "groups": {"tp0": [0, 1, 2, 3], "tp1": [4, 5, 6, 7]},
//    "items": [{"name": "layer", "compute_us": 250},
//              {"collective": "all_reduce", "algorithm": "ring", "bytes": 1048576, "group": "tp0"},
//              {"collective": "broadcast", "algorithm": "binomial", "bytes": 4096, "root": 2,
//               "group": [1, 3, 5], "stream": 1, "repeat": 3},
//              {"collective": "all_to_all_v", "algorithm": "pairwise", "group": [0, 1],
//               "counts": [[0, 5], [3, 1]], "element_bytes": 4096}]}
//
// An item is for all ranks unless it has a group, by name or as a list. `root` is a place in the
// group. `repeat` stands for so many items one after the other. `after` names earlier items, which
// all of their ranks have to end first: all items of that name so far. `schedule` instead of
// collective, algorithm and root names a schedule that `load` gets. all_to_all_v has counts in the
// place of bytes: rows, or the name of what `load_counts` gets; a schedule with counts has neither.
// Limits: 2^20 ranks, a million items.
inline constexpr std::string_view kWorkloadFormat = "unisono.workload/1";

// What it throws goes through the parser. REQUIRES: its schedules are verified.
using ScheduleLoader = std::function<Schedule(const std::string& name)>;
using CountsLoader = std::function<Counts(const std::string& name)>;

Parsed<Workload> parse_workload_json(std::string_view text, bool written_out = false,
                                     const ScheduleLoader& load = {},
                                     const CountsLoader& load_counts = {});

}  // namespace unisono::model
