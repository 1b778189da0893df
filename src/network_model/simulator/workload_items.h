// Reads one item of a workload: a compute step, point-to-point messages, or an operation of a
// group.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/json.h"
#include "network_model/simulator/workload.h"
#include "network_model/simulator/workload_groups.h"

namespace unisono::network_model {

inline constexpr std::int64_t kMostWorkItems = 1'000'000;
inline constexpr const char* kTooManyWorkItems =
    "more than 1000000 items, or more than 50000000 ranks and dependencies in total";

class WorkloadItems {
 public:
  // `document` is the workload. Throws JsonProblem for its errors, as read() does.
  WorkloadItems(const JsonNode& document, int ranks, bool written_out,
                const WorkloadSources& sources);

  // Does not read the name, the stream and `after`. An operation of a family of groups becomes one
  // item per group.
  std::vector<WorkItem> read(const JsonNode& node);

 private:
  WorkItem compute(const JsonNode& node, const Family& family) const;
  std::vector<double> work_us(const JsonNode& node, std::size_t ranks) const;
  WorkItem transfer(const JsonNode& node) const;
  WorkItem own_operation(const JsonNode& node, std::size_t ranks);
  WorkItem operation_of(const JsonNode& node, std::size_t ranks);
  Counts counts_of(const JsonNode& node, std::size_t ranks) const;
  void count_moves(const WorkItem& item, const JsonNode& name);

  int ranks_;
  bool written_out_;
  const WorkloadSources& sources_;
  WorkloadGroups groups_;
  std::optional<DeviceRates> device_;
  std::map<std::tuple<Collective, std::string, std::size_t, int>, WorkItem> known_;
  std::map<std::string, WorkItem> own_;  // by schedule name
  std::int64_t moves_ = 0;               // over the different schedules
  std::int64_t operations_ = 0;          // read so far
};

}  // namespace unisono::network_model
