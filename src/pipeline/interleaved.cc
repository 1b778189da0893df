// Interleaved 1F1B: v stages on each rank, so that a microbatch visits each rank v times and the
// pipeline fills v times as fast. Microbatches advance in rounds of about p.
//
//   bubble  (p-1) (F+B) / v, if p divides m
//   peak    min(m v, (v-1) m/rounds + 2(p-1-r) + 1) microbatches of a stage on rank r
//   limits  the number of rounds, max(1, m/p), must divide m
//   source  Narayanan et al., 2021
#include <algorithm>

#include "pipeline/order.h"

namespace unisono::pipeline {
namespace {

int rounds(PipelineSize shape) {
  return std::max(1, shape.microbatches / shape.ranks);
}

int warm_up(PipelineSize shape, int rank) {
  const int last = (shape.chunks - 1) * (shape.microbatches / rounds(shape));
  return std::min(shape.microbatches * shape.chunks, last + 2 * (shape.ranks - 1 - rank));
}

Pipeline build_interleaved(PipelineSize shape) {
  Pipeline pipeline = looped(shape);
  const int round = shape.microbatches / rounds(shape);
  const int total = shape.microbatches * shape.chunks;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    ActionList order(pipeline.actions[static_cast<std::size_t>(rank)]);
    const auto stage = [&](int chunk) { return chunk * shape.ranks + rank; };
    const auto forward = [&](int i) { order.forward(stage(i / round % shape.chunks)); };
    const auto backward = [&](int i) {
      order.backward(stage(shape.chunks - 1 - i / round % shape.chunks));
    };
    const int ahead = warm_up(shape, rank);
    for (int i = 0; i < ahead; ++i) {
      forward(i);
    }
    for (int i = ahead; i < total; ++i) {
      forward(i);
      backward(i - ahead);
    }
    for (int i = total - ahead; i < total; ++i) {
      backward(i);
    }
  }
  return pipeline;
}

}  // namespace

const Entry interleaved{
    .name = "interleaved",
    .summary = "1F1B with several stages on each rank",
    .source = "Narayanan et al., 2021",
    .chunks = 0,
    .refuse =
        [](PipelineSize shape) {
          return shape.microbatches % rounds(shape) == 0
                     ? std::string{}
                     : "interleaved works in rounds of about as many microbatches as ranks: " +
                           std::to_string(shape.microbatches) +
                           " microbatches cannot be cut into " + std::to_string(rounds(shape)) +
                           " equal rounds";
        },
    .build = build_interleaved,
    .bubble = [](PipelineSize shape, Times times) -> std::optional<double> {
      if (shape.microbatches % shape.ranks != 0) {
        return std::nullopt;
      }
      return (shape.ranks - 1) * (times.forward + times.input + times.weight) / shape.chunks;
    },
    .peak =
        [](PipelineSize shape, int rank) {
          return std::min(shape.microbatches * shape.chunks, warm_up(shape, rank) + 1);
        }};

}  // namespace unisono::pipeline
