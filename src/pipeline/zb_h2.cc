// ZB-H2: ZB-H1 with twice as many forward passes ahead. Each rank works without a pause from its
// first action to its last; rank 0 begins and ends earlier than rank p-1.
//
//   bubble  (p-1) (F+I-2W) between a rank's first and last action, which is (p-1) (F+B-3W), for
//           m >= 2p-1 and F, I, W equal. The whole step takes (p-1) F longer
//   peak    min(m, 2p-1) microbatches on each rank
//   source  Qi et al., Zero Bubble Pipeline Parallelism, 2023
#include "pipeline/zero_bubble.h"

namespace unisono::pipeline {
namespace {

Pipeline build_zb_h2(PipelineSize shape) {
  Pipeline pipeline = looped(shape);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    append_zero_bubble(pipeline.actions[static_cast<std::size_t>(rank)], rank, shape.microbatches,
                       {.ahead = 2 * (shape.ranks - rank) - 1, .pending = 2 * rank});
  }
  return pipeline;
}

}  // namespace

const Entry zb_h2{.name = "zb-h2",
                  .summary = "ZB-H1 with twice the memory and no bubble",
                  .source = "Qi et al., 2023",
                  .build = build_zb_h2,
                  .bubble = [](PipelineSize shape, Times times) -> std::optional<double> {
                    if (shape.microbatches < 2 * shape.ranks - 1 || times.forward != times.input ||
                        times.input != times.weight) {
                      return std::nullopt;
                    }
                    return (shape.ranks - 1) * (times.forward + times.input - 2 * times.weight);
                  },
                  .is_bubble_of_rank = true,
                  .peak = [](PipelineSize shape,
                             int) { return std::min(shape.microbatches, 2 * shape.ranks - 1); }};

}  // namespace unisono::pipeline
