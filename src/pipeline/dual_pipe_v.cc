// DualPipeV: DualPipe cut in half, so that it needs one copy of the model. A rank has two stages in
// a V, and computes the forward pass of one stage together with the backward pass of the other.
//
//   bubble  (p-1) (F&B + B - 3W) / 2 if F = I and W is at most F; otherwise no formula. F&B = F+B
//           if nothing is hidden
//   peak    2p+1 microbatches of a stage on each rank
//   limits  m at least 2p
//   source  Qi, 2025 ("DualPipe could be better without the dual"); deepseek-ai/DualPipe
#include "pipeline/dual_pipe.h"

namespace unisono::pipeline {
namespace {

Pipeline build_dual_pipe_v(PipelineSize shape) {
  Pipeline pipeline = v_shaped(shape);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    ActionList order(pipeline.actions[static_cast<std::size_t>(rank)]);
    append_dual_steps(order, {.first = rank,
                              .second = 2 * shape.ranks - 1 - rank,
                              .place = rank,
                              .places = shape.ranks,
                              .main = shape.microbatches - 2 * shape.ranks + rank + 1});
  }
  return pipeline;
}

}  // namespace

const Entry dual_pipe_v{.name = "dualpipev",
                        .summary = "DualPipe with one copy of the model, in a V",
                        .source = "Qi, 2025",
                        .chunks = 2,
                        .refuse = [](PipelineSize shape) -> std::string {
                          return shape.microbatches < 2 * shape.ranks
                                     ? "dualpipev needs at least as many microbatches as stages"
                                     : "";
                        },
                        .build = build_dual_pipe_v,
                        .bubble = [](PipelineSize shape, Times times) -> std::optional<double> {
                          const std::optional<double> one = dual_bubble(times);
                          return one ? std::optional((shape.ranks - 1) * *one / 2) : std::nullopt;
                        },
                        .peak = [](PipelineSize shape, int) { return 2 * shape.ranks + 1; },
                        .is_peak_bound = true};

}  // namespace unisono::pipeline
