// Says in labels whose rows a call waits for, where a routing is uneven.
#pragma once

#include <string>

#include "experts/state.h"

namespace unisono::experts {

// "rank 3 gets most rows, for expert 17 (over 4 times the mean)"; empty: no rank gets half as many
// again as the mean, or the rows are few. The number is rounded down to a power of two, so that the
// labels of a run are few.
std::string describe_load(const Places& places, const Seats& seats);

// `of_caller` with the load of the routing behind it, as far as it has one.
std::string label_with_load(const std::string& of_caller, const detail::RoutingState* routing);

// While it lives, the rank's label has the load of the routing behind it.
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
