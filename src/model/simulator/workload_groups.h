// The groups of ranks that a workload names: one, or a family of them that do the same at once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/simulator/rank_set.h"

namespace unisono::model {

using Family = std::vector<std::vector<int>>;  // groups with no rank in common

class WorkloadGroups {
 public:
  // `document` is the workload. Its mistakes are thrown as JsonProblem, as those of of().
  WorkloadGroups(const JsonNode& document, int ranks);

  // Those of an item: all ranks unless it has a group.
  Family of(const JsonNode& item);

 private:
  Family read(const JsonNode& groups);
  Family cut(const JsonNode& rule) const;
  std::vector<int> ranks_of(const JsonNode& list);

  int ranks_;
  RankSet met_;
  std::map<std::string, Family> named_;
};

}  // namespace unisono::model
