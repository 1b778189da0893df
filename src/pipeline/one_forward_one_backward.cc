// 1F1B: as many forward passes as there are later ranks, then alternately one forward and one
// backward.
//
//   bubble  (p-1) (F+B)
//   peak    min(m, p-r) microbatches on rank r
//   source  Narayanan et al., PipeDream, 2019 (with the flush: Narayanan et al., 2021)
#include <algorithm>

#include "pipeline/order.h"

namespace unisono::pipeline {
namespace {

Pipeline build_1f1b(PipelineSize shape) {
  Pipeline pipeline = looped(shape);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    ActionList order(pipeline.actions[static_cast<std::size_t>(rank)]);
    const int ahead = std::min(shape.microbatches, shape.ranks - 1 - rank);
    for (int i = 0; i < ahead; ++i) {
      order.forward(rank);
    }
    for (int i = ahead; i < shape.microbatches; ++i) {
      order.forward(rank);
      order.backward(rank);
    }
    for (int i = 0; i < ahead; ++i) {
      order.backward(rank);
    }
  }
  return pipeline;
}

}  // namespace

const Entry one_forward_one_backward{
    .name = "1f1b",
    .summary = "one forward and one backward in turn",
    .source = "Narayanan et al., 2019",
    .build = build_1f1b,
    .bubble = [](PipelineSize shape, Times times) -> std::optional<double> {
      return (shape.ranks - 1) * (times.forward + times.input + times.weight);
    },
    .peak = [](PipelineSize shape,
               int rank) { return std::min(shape.microbatches, shape.ranks - rank); }};

}  // namespace unisono::pipeline
