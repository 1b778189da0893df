// Predicts the time of a call between ranks on several hosts.
//
// This is the one-port model (cost.h) on two levels. A message occupies its ports for an overhead,
// a latency and its bytes, which pass the link of each rank and, between hosts, one port for each
// host, each way, that its ranks share. Ports and links take messages in the order of the schedule.
// Steps that repeat are played until all times move on by one period.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "algorithms/catalog.h"
#include "schedule/schedule.h"

namespace unisono::cost {

struct HostsNetwork {
  double overhead_us = 0;  // per message
  double inside_us = 0;    // the latency between two ranks of one host
  double inside_bytes_per_us = 0;
  double between_us = 0;  // the latency between two hosts
  double between_bytes_per_us = 0;
};

struct HostsOptions {
  double gamma_us_per_byte = 0;   // to reduce
  double coding_us_per_byte = 0;  // to encode a byte of an encoded move, and to decode it
  // The most messages of a rank in flight at once if none of them waits for another.
  int at_once = 1;
  double most_messages = 2e4;  // to play
};

class HostsTime {
 public:
  // `hosts`: by rank, one number for each host.
  HostsTime(const HostsNetwork& network, std::span<const int> hosts);

  // Nothing if there are too many messages to play. `vector_bytes` as in cost.h. REQUIRES: the
  // algorithm can serve the shape, and the shape has as many ranks as `hosts`.
  std::optional<double> time_us(const Algorithm& algorithm, const Shape& shape, double vector_bytes,
                                const HostsOptions& options) const;
  std::optional<double> time_us(const Schedule& schedule, double vector_bytes,
                                const HostsOptions& options) const;

 private:
  HostsNetwork network_;
  std::vector<int> host_of_;  // by rank, from 0 on
  int hosts_ = 0;
};

}  // namespace unisono::cost
