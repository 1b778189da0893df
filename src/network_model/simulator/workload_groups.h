// The groups of ranks that a workload names: single groups, or families of groups that do the same
// work at the same time.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "network_model/simulator/rank_set.h"

namespace unisono::network_model {

using Family = std::vector<std::vector<int>>;  // groups without common ranks

// Divides all ranks into groups of `size`, whose members are `stride` apart: an axis of a mesh.
struct GroupRule {
  int size = 1;
  int stride = 1;
};

class WorkloadGroups {
 public:
  // `document` is the workload. Throws JsonProblem for its errors, as of() does.
  WorkloadGroups(const JsonNode& document, int ranks);

  // Returns the groups of an item: all ranks unless it names a group.
  Family of(const JsonNode& item);

 private:
  // A rule is small for any number of ranks: it is expanded only when an item uses it.
  using Groups = std::variant<Family, GroupRule>;

  Groups read(const JsonNode& groups);
  GroupRule rule_of(const JsonNode& node) const;
  Family family_of(const Groups& groups) const;
  std::vector<int> ranks_of(const JsonNode& list);

  int ranks_;
  RankSet met_;
  std::map<std::string, Groups> named_;
};

}  // namespace unisono::network_model
