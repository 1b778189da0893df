// A point in time and the chain of messages that led to it.
#pragma once

#include <cstdint>

#include "network_model/simulator/simulation.h"

namespace unisono::network_model {

struct Moment {
  double time_us = 0;
  double latency_us = 0;
  double reduce_us = 0;
  double compute_us = 0;
  std::int64_t messages = 0;
  std::int64_t record = -1;  // last message of the chain, if recorded

  void wait_for(const Moment& other) {
    if (other.time_us > time_us) {
      *this = other;
    }
  }
  // Returns this moment advanced by `periods` more differences like the one from `before` to it.
  Moment further(const Moment& before, double period_us, double periods) const {
    Moment moment = *this;
    moment.time_us += period_us * periods;
    moment.latency_us += (latency_us - before.latency_us) * periods;
    moment.reduce_us += (reduce_us - before.reduce_us) * periods;
    moment.compute_us += (compute_us - before.compute_us) * periods;
    moment.messages += (messages - before.messages) * static_cast<std::int64_t>(periods);
    return moment;
  }
  CriticalPath critical() const {
    return {.messages = messages,
            .latency_us = latency_us,
            .transfer_us = time_us - latency_us - reduce_us - compute_us,
            .reduce_us = reduce_us,
            .compute_us = compute_us};
  }
};

}  // namespace unisono::network_model
