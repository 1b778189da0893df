// GPipe: all forward passes, then all backward passes.
//
//   bubble  (p-1) (F+B)
//   peak    m microbatches on each rank
//   source  Huang et al., GPipe, 2019
#include "pipeline/order.h"

namespace unisono::pipeline {
namespace {

Pipeline build_gpipe(PipelineSize shape) {
  Pipeline pipeline = looped(shape);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    ActionList order(pipeline.actions[static_cast<std::size_t>(rank)]);
    for (int i = 0; i < shape.microbatches; ++i) {
      order.forward(rank);
    }
    for (int i = 0; i < shape.microbatches; ++i) {
      order.backward(rank);
    }
  }
  return pipeline;
}

}  // namespace

const Entry gpipe{.name = "gpipe",
                  .summary = "all forward passes, then all backward passes",
                  .source = "Huang et al., 2019",
                  .build = build_gpipe,
                  .bubble = [](PipelineSize shape, Times times) -> std::optional<double> {
                    return (shape.ranks - 1) * (times.forward + times.input + times.weight);
                  },
                  .peak = [](PipelineSize shape, int) { return shape.microbatches; }};

}  // namespace unisono::pipeline
