// Describes in labels which rank an uneven routing makes others wait for.
#pragma once

#include <string>

#include "experts/state.h"

namespace unisono::experts {

// Returns "rank 3 gets most rows, for expert 17 (over 4 times the mean)"; empty if no rank has more
// than one and a half times the mean, or there are few rows. The factor is rounded down to a power
// of two, so that a run has few different labels.
std::string describe_load(const Places& places, const PhysicalExperts& physical_experts);

// Returns `of_caller` followed by the load of the routing, if it has one.
std::string label_with_load(const std::string& of_caller, const detail::RoutingState* routing);

// While it lives, the load of the routing is appended to the rank's label.
class LoadLabel {
 public:
  // `routing`: nullptr changes nothing.
  LoadLabel(Communicator& comm, const detail::RoutingState* routing);
  LoadLabel(const LoadLabel&) = delete;
  LoadLabel& operator=(const LoadLabel&) = delete;
  ~LoadLabel();

 private:
  Communicator* comm_ = nullptr;
  std::string before_;
};

}  // namespace unisono::experts
