// Adds the busiest rank of an uneven routing to labels, because other ranks wait for it.
#pragma once

#include <string>

#include "experts/state.h"

namespace unisono::experts {

// Returns text such as "rank 3 gets most rows, for expert 17 (over 4 times the mean)". Returns ""
// if no rank has more than 1.5 times the mean, or if there are few rows. The factor is rounded down
// to a power of two, so that a run has few different labels.
std::string describe_load(const Places& places, const PhysicalExperts& physical_experts);

// Returns `of_caller`, followed by the routing's load if the load is uneven.
std::string label_with_load(const std::string& of_caller, const detail::RoutingState* routing);

// Appends the routing's load to the rank's label during the object's lifetime.
class LoadLabel {
 public:
  // Does nothing if `routing` is nullptr.
  LoadLabel(Communicator& comm, const detail::RoutingState* routing);
  LoadLabel(const LoadLabel&) = delete;
  LoadLabel& operator=(const LoadLabel&) = delete;
  ~LoadLabel();

 private:
  Communicator* comm_ = nullptr;
  std::string before_;
};

}  // namespace unisono::experts
