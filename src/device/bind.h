// Binds a graph to sizes, giving the image to upload.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/graph.h"
#include "device/image.h"

namespace unisono::device {

struct BoundImage {
  std::vector<KernelPass> passes = {};
  std::vector<PassOperand> operands = {};
  std::vector<PassWait> waits = {};
  std::uint32_t exit_waits = 0, exit_wait_count = 0;
  std::uint32_t slots = 0;
  std::uint32_t stride = 0;
  std::uint64_t most_bytes = 0;  // bytes of the longest chunk
};

// Returns the image of `rank` for a plain collective, in which every rank has `sizes`.
BoundImage bind_image(const Graph& graph, const Schedule& schedule, int rank,
                      const engine::Sizes& sizes);

// Returns the image of `rank` for a v-form. Each launch supplies sizes and offsets (Launch::sent
// and received). REQUIRES: each chunk is a whole block, and no rank reads another rank's output
// (goes_by_blocks()).
BoundImage bind_blocks(const Graph& graph, const Schedule& schedule, int rank);
bool goes_by_blocks(const Graph& graph, const Schedule& schedule);

}  // namespace unisono::device
