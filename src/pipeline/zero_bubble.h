// The common part of ZB-H1 and ZB-H2: 1F1B with B split into I and W, where a rank delays some of
// its W to fill the end of the step.
#pragma once

#include <algorithm>

#include "pipeline/order.h"

namespace unisono::pipeline {

struct Delays {
  int ahead = 0;    // forward passes before the first I
  int pending = 0;  // number of delayed W
};

inline void append_zero_bubble(std::vector<Action>& actions, int stage, int microbatches,
                               Delays delays) {
  ActionList order(actions);
  const int ahead = std::min(microbatches, delays.ahead);
  for (int i = 0; i < ahead; ++i) {
    order.forward(stage);
  }
  int pending = 0;
  for (int i = 0; i < microbatches; ++i) {
    order.input(stage);
    // W comes before the next F, so the rank never holds more than ahead + pending.
    if (++pending > delays.pending) {
      order.weight();
      --pending;
    }
    if (i + ahead < microbatches) {
      order.forward(stage);
    }
  }
  for (; pending > 0; --pending) {
    order.weight();
  }
}

}  // namespace unisono::pipeline
