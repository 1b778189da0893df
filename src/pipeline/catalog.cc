#include "pipeline/catalog.h"

#include "pipeline/transfers.h"

namespace unisono::pipeline {

std::span<const Entry* const> catalog() {
  static constexpr const Entry* kEntries[] = {&naive,       &gpipe,      &one_forward_one_backward,
                                              &interleaved, &zb_h1,      &zb_h2,
                                              &zbv,         &v_half,     &v_min,
                                              &dual_pipe,   &dual_pipe_v};
  return kEntries;
}

const Entry* find_entry(std::string_view name) {
  for (const Entry* entry : catalog()) {
    if (entry->name == name) {
      return entry;
    }
  }
  return nullptr;
}

std::string refusal(const Entry& entry, PipelineSize shape) {
  if (shape.ranks < 1 || shape.chunks < 1 || shape.microbatches < 1) {
    return "ranks, chunks and microbatches must be 1 or more";
  }
  constexpr int kMost = 4096;
  const auto cells = static_cast<std::size_t>(shape.ranks) *
                     static_cast<std::size_t>(shape.chunks) *
                     static_cast<std::size_t>(shape.microbatches);
  if (shape.ranks > kMostRanks || shape.chunks > kMost || shape.microbatches > kMostMicrobatches ||
      cells > kMostActions / 8) {
    return "the pipeline is too large: ranks times chunks times microbatches may be at most 524288";
  }
  if (entry.chunks != 0 && entry.chunks != shape.chunks) {
    return std::string(entry.name) + " has " + std::to_string(entry.chunks) +
           (entry.chunks == 1 ? " stage" : " stages") + " on each rank";
  }
  return entry.refuse(shape);
}

Pipeline build(const Entry& entry, PipelineSize shape) {
  Pipeline pipeline = entry.build(shape);
  pipeline.name = entry.name;
  const double share = 1.0 / shape.chunks;
  pipeline.costs.forward.assign(pipeline.stage_rank.size(), share);
  pipeline.costs.input = pipeline.costs.weight = pipeline.costs.forward;
  set_unit_costs(pipeline);
  add_transfers(pipeline);
  return pipeline;
}

}  // namespace unisono::pipeline
