// ZB-H1: 1F1B with B cut into I (input gradient) and W (weight gradient). Rank r delays r of its W,
// to fill the end of the step. Every rank holds as many activations as rank 0 of 1F1B.
//
//   bubble  (p-1) (F+I-W), which is (p-1) (F+B-2W), for m >= p and W at most F and I
//   peak    min(m, p) microbatches on each rank
//   source  Qi et al., Zero Bubble Pipeline Parallelism, 2023
#include "pipeline/zero_bubble.h"

namespace unisono::pipeline {
namespace {

Pipeline build_zb_h1(PipelineSize shape) {
  Pipeline pipeline = looped(shape);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    append_zero_bubble(pipeline.actions[static_cast<std::size_t>(rank)], rank, shape.microbatches,
                       {.ahead = shape.ranks - rank, .pending = rank});
  }
  return pipeline;
}

}  // namespace

const Entry zb_h1{
    .name = "zb-h1",
    .summary = "1F1B whose weight gradients fill the end",
    .source = "Qi et al., 2023",
    .build = build_zb_h1,
    .bubble = [](PipelineSize shape, Times times) -> std::optional<double> {
      if (shape.microbatches < shape.ranks || times.weight > std::min(times.forward, times.input)) {
        return std::nullopt;
      }
      return (shape.ranks - 1) * (times.forward + times.input - times.weight);
    },
    .peak = [](PipelineSize shape, int) { return std::min(shape.microbatches, shape.ranks); }};

}  // namespace unisono::pipeline
