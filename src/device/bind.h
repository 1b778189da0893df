// A graph with sizes: what is uploaded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/graph.h"
#include "device/image.h"

namespace unisono::device {

struct BoundImage {
  std::vector<Pass> passes = {};
  std::vector<Operand> operands = {};
  std::vector<Wait> waits = {};
  std::uint32_t exit_waits = 0, exit_wait_count = 0;
  std::uint32_t slots = 0;
  std::uint32_t stride = 0;
  std::uint64_t most_bytes = 0;  // of a chunk
};

// By rank. `sizes`: of every rank.
std::vector<BoundImage> bind_images(const Graph& graph, const Schedule& schedule,
                                    std::span<const engine::Sizes> sizes);

}  // namespace unisono::device
