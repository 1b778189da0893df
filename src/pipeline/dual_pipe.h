// The eight steps that DualPipe and DualPipeV share. A rank alternates between two stages: it
// computes the forward pass of one stage together with the backward pass of the other stage.
#pragma once

#include <optional>

#include "pipeline/order.h"

namespace unisono::pipeline {

// Returns F&B + B - 3W, where F&B = F+B if nothing is hidden. Returns nothing if F and I differ or
// W is longer than they are, because concurrent computations on two ranks are then not in step.
inline std::optional<double> dual_bubble(Times times) {
  if (times.forward != times.input || times.weight > times.forward) {
    return std::nullopt;
  }
  return times.forward + 2 * times.input - times.weight;
}

struct DualSteps {
  int first = 0;  // the stage whose microbatches come first
  int second = 0;
  int place = 0;  // from 0 at the end of the pipe to places - 1 where it turns
  int places = 1;
  int main = 0;  // number of repetitions of step 4
};

inline void append_dual_steps(ActionList& order, const DualSteps& steps) {
  const int to_turn = steps.places - steps.place - 1;
  for (int i = 0; i < 2 * to_turn; ++i) {
    order.forward(steps.first);
  }
  for (int i = 0; i < steps.place + 1; ++i) {
    order.forward(steps.first);
    order.forward(steps.second);
  }
  for (int i = 0; i < to_turn; ++i) {
    order.input(steps.second);
    order.weight();
    order.forward(steps.second);
  }
  for (int i = 0; i < steps.main; ++i) {
    if (i == 0 && to_turn == 0) {  // not overlapped, because the rank would wait for the gradient
      order.forward(steps.first);
      order.backward(steps.second);
    } else {
      order.overlapped(steps.first, steps.second);
    }
    order.overlapped(steps.second, steps.first);
  }
  for (int i = 0; i < to_turn; ++i) {
    order.backward(steps.second);
    order.overlapped(steps.second, steps.first);
  }
  // From the middle of this step on, delays W to fill the end.
  bool is_split = false;
  for (int i = 0; i < steps.place + 1; ++i) {
    const bool is_middle = i == (steps.place + 1) / 2;
    is_split = is_split || (is_middle && steps.place % 2 == 1);
    order.backward(steps.second, is_split);
    is_split = is_split || (is_middle && steps.place % 2 == 0);
    order.backward(steps.first, is_split);
  }
  for (int i = 0; i < to_turn; ++i) {
    order.weight();
    order.backward(steps.first, is_split);
  }
  for (int i = 0; i < steps.place + 1; ++i) {
    order.weight();
  }
}

}  // namespace unisono::pipeline
