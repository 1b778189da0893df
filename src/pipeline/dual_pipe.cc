// DualPipe: microbatches enter at both ends and pass each other. A rank holds two stages of the
// model: stage r of one copy and stage p-1-r of the other copy. It computes the forward pass of one
// stage together with the backward pass of the other stage.
//
//   bubble  (p/2-1) (F&B + B - 3W) if F = I and W is at most F; otherwise no formula. F&B = F+B if
//           nothing is hidden
//   peak    p+1 microbatches on each rank
//   limits  p even; m even, at least 2p
//   source  DeepSeek-AI, DeepSeek-V3 Technical Report, 2024; its code: deepseek-ai/DualPipe
#include <algorithm>

#include "pipeline/dual_pipe.h"

namespace unisono::pipeline {
namespace {

// Two chains: stages 0 to p-1 on ranks 0 to p-1, and p to 2p-1 on ranks p-1 to 0.
Pipeline two_ways(PipelineSize shape) {
  Pipeline pipeline{.ranks = shape.ranks, .microbatches = shape.microbatches};
  const int half = shape.microbatches / 2;
  pipeline.chains = {{.stages = {}, .first = 0, .count = half},
                     {.stages = {}, .first = half, .count = half}};
  for (int stage = 0; stage < 2 * shape.ranks; ++stage) {
    const bool is_back = stage >= shape.ranks;
    pipeline.stage_rank.push_back(is_back ? 2 * shape.ranks - 1 - stage : stage);
    pipeline.chains[is_back ? 1 : 0].stages.push_back(stage);
  }
  pipeline.actions.resize(static_cast<std::size_t>(shape.ranks));
  return pipeline;
}

Pipeline build_dual_pipe(PipelineSize shape) {
  Pipeline pipeline = two_ways(shape);
  const int half = shape.microbatches / 2;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    ActionList order(pipeline.actions[static_cast<std::size_t>(rank)]);
    const int there = rank;
    const int back = 2 * shape.ranks - 1 - rank;
    order.start(there, 0);
    order.start(back, half);
    const bool is_front = rank < shape.ranks / 2;
    const int place = std::min(rank, shape.ranks - 1 - rank);
    append_dual_steps(order, {.first = is_front ? there : back,
                              .second = is_front ? back : there,
                              .place = place,
                              .places = shape.ranks / 2,
                              .main = half - shape.ranks + place + 1});
  }
  return pipeline;
}

}  // namespace

const Entry dual_pipe{
    .name = "dualpipe",
    .summary = "microbatches from both ends pass each other",
    .source = "DeepSeek-AI, 2024",
    .refuse = [](PipelineSize shape) -> std::string {
      if (shape.ranks % 2 != 0) {
        return "dualpipe needs an even number of ranks, because it pairs them from both ends";
      }
      if (shape.microbatches % 2 != 0 || shape.microbatches < 2 * shape.ranks) {
        return "dualpipe needs an even number of microbatches, at least twice the ranks";
      }
      return {};
    },
    .build = build_dual_pipe,
    .bubble = [](PipelineSize shape, Times times) -> std::optional<double> {
      const std::optional<double> one = dual_bubble(times);
      return one ? std::optional((shape.ranks / 2 - 1) * *one) : std::nullopt;
    },
    .peak = [](PipelineSize shape, int) { return shape.ranks + 1; }};

}  // namespace unisono::pipeline
