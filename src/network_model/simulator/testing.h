// Workloads of one operation, for the tests of the simulator.
#pragma once

#include <memory>
#include <utility>

#include "algorithms/catalog.h"
#include "network_model/simulator/simulate.h"

namespace unisono::network_model {

inline Workload one_operation(Schedule schedule, double bytes) {
  Workload workload{.ranks = schedule.ranks};
  workload.items.push_back(
      {.bytes = bytes, .schedule = std::make_shared<const Schedule>(std::move(schedule))});
  return workload;
}

inline Workload one_operation(CompactSchedule schedule, double bytes) {
  Workload workload{.ranks = schedule.ranks};
  workload.items.push_back(
      {.bytes = bytes, .compact = std::make_shared<const CompactSchedule>(std::move(schedule))});
  return workload;
}

}  // namespace unisono::network_model
