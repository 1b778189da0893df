// Naive: a microbatch passes all stages forward and backward before the next one begins.
//
//   bubble  m (p-1) (F+B)
//   peak    1 microbatch on each rank
//   source  Huang et al., GPipe, 2019 (figure 2b)
#include "pipeline/order.h"

namespace unisono::pipeline {
namespace {

Pipeline build_naive(PipelineSize shape) {
  Pipeline pipeline = looped(shape);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    ActionList order(pipeline.actions[static_cast<std::size_t>(rank)]);
    for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
      order.forward(rank);
      order.backward(rank);
    }
  }
  // No explicit rule is needed: the gradient blocks rank 0, which computes B before the next F.
  return pipeline;
}

}  // namespace

const Entry naive{.name = "naive",
                  .summary = "one microbatch at a time",
                  .source = "Huang et al., 2019",
                  .build = build_naive,
                  .bubble = [](PipelineSize shape, Times times) -> std::optional<double> {
                    return shape.microbatches * (shape.ranks - 1) *
                           (times.forward + times.input + times.weight);
                  },
                  .peak = [](PipelineSize, int) { return 1; }};

}  // namespace unisono::pipeline
