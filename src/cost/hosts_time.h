// Predicts the time of a call between ranks on several hosts.
//
// This is the one-port model (cost.h) on two levels. A message occupies its ports for an overhead,
// a latency and the transfer of its bytes. The bytes pass the link of each rank. Between hosts they
// also pass one port per host and direction, which the host's ranks share. Ports and links take
// messages in the order of the schedule. Repeated steps are simulated only until all times advance
// by one constant period.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "algorithms/catalog.h"
#include "schedule/schedule.h"

namespace unisono::cost {

struct HostsNetwork {
  double overhead_us = 0;  // per message
  double inside_us = 0;    // latency between two ranks of one host
  double inside_bytes_per_us = 0;
  double between_us = 0;  // latency between two hosts
  double between_bytes_per_us = 0;
};

struct HostsOptions {
  double gamma_us_per_byte = 0;   // to reduce
  double coding_us_per_byte = 0;  // to encode a byte of an encoded move, and again to decode it
  // The most messages that a rank has in flight at once, in schedules whose messages do not wait
  // for each other.
  int at_once = 1;
  double most_messages = 2e4;  // limit of simulated messages
};

class HostsTime {
 public:
  // `hosts`: by rank, the number of its host.
  HostsTime(const HostsNetwork& network, std::span<const int> hosts);

  // Returns nothing if there are too many messages to simulate. `vector_bytes` as in cost.h.
  // REQUIRES: the algorithm can serve the shape, and the shape has as many ranks as `hosts`.
  std::optional<double> time_us(const Algorithm& algorithm, const Shape& shape, double vector_bytes,
                                const HostsOptions& options) const;
  std::optional<double> time_us(const Schedule& schedule, double vector_bytes,
                                const HostsOptions& options) const;

 private:
  HostsNetwork network_;
  std::vector<int> host_of_;  // by rank, numbered from 0
  int hosts_ = 0;
};

}  // namespace unisono::cost
