// ZBV: two stages on each rank, laid out as a V. The first and the last stage are on rank 0, so a
// microbatch's backward pass starts on the rank where its forward pass started.
//
//   bubble  (p-1) (F+I-W) / 2 for m >= 2p-1 if F, I and W take equal times; otherwise no formula
//   peak    min(2 m, 2 p) microbatches of a stage on each rank
//   source  Qi et al., Zero Bubble Pipeline Parallelism, 2023 (section 6)
#include <algorithm>

#include "pipeline/order.h"

namespace unisono::pipeline {
namespace {

// Made for at least 2p-1 microbatches; surplus ones are removed afterwards if there are fewer.
void append_zbv(std::vector<Action>& actions, PipelineSize shape, int rank) {
  ActionList order(actions);
  const int down = rank;
  const int up = 2 * shape.ranks - 1 - rank;
  const int microbatches = std::max(2 * shape.ranks - 1, shape.microbatches);
  const int ahead = 2 * (shape.ranks - rank) - 1;
  const auto both = [&](int stage) {
    order.input(stage);
    order.weight(stage);
  };
  for (int i = 0; i < ahead; ++i) {
    order.forward(down);
  }
  for (int i = 0; i < rank; ++i) {
    order.forward(up);
    order.forward(down);
  }
  for (int i = 0; i < shape.ranks - rank; ++i) {
    order.forward(up);
    both(up);
  }
  int forward = ahead + rank;
  for (int i = shape.ranks; i < microbatches; ++i) {
    if (forward < microbatches) {
      order.forward(down);
      ++forward;
    }
    both(down);
    order.forward(up);
    both(up);
  }
  for (int i = 0; i < rank; ++i) {
    order.input(down);
    order.input(up);
  }
  for (int i = 0; i < shape.ranks - rank; ++i) {
    both(down);
  }
  for (int i = 0; i < rank; ++i) {
    order.weight(up);
  }
  for (int i = 0; i < rank; ++i) {
    order.weight(down);
  }
}

Pipeline build_zbv(PipelineSize shape) {
  Pipeline pipeline = v_shaped(shape);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    auto& actions = pipeline.actions[static_cast<std::size_t>(rank)];
    append_zbv(actions, shape, rank);
    std::erase_if(actions,
                  [&](const Action& action) { return action.microbatch >= shape.microbatches; });
  }
  return pipeline;
}

}  // namespace

const Entry zbv{
    .name = "zbv",
    .summary = "a V of two stages per rank, split gradients",
    .source = "Qi et al., 2023",
    .chunks = 2,
    .build = build_zbv,
    .bubble = [](PipelineSize shape, Times times) -> std::optional<double> {
      if (shape.microbatches < 2 * shape.ranks - 1 || times.forward != times.input ||
          times.input != times.weight) {
        return std::nullopt;
      }
      return (shape.ranks - 1) * times.forward / 2;
    },
    .peak = [](PipelineSize shape, int) { return 2 * std::min(shape.microbatches, shape.ranks); },
    .is_peak_bound = true};

}  // namespace unisono::pipeline
