#include "mscclpp/plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "msccl/program.h"

namespace unisono::mscclpp {

bool overlap(const PlanPlace& one, const PlanPlace& other) {
  return one.gpu == other.gpu && one.buffer == other.buffer &&
         one.offset < other.offset + other.chunks && other.offset < one.offset + one.chunks;
}

Schedule shape_of(const ExecutionPlan& plan) {
  Schedule shape;
  shape.collective = plan.collective;
  shape.algorithm = executors::algorithm_in(plan.name, plan.collective);
  shape.ranks = static_cast<int>(plan.gpus.size());
  shape.root = plan.root;
  const std::array<int, 3>& chunks = plan.gpus.front().chunks;
  shape.chunks = std::max(chunks[0], chunks[1]);
  if (traits_of(plan.collective).input == Holding::pairs) {
    shape.chunks *= shape.ranks;
  }
  return shape;
}

std::vector<std::vector<int>> other_ends(const ExecutionPlan& plan) {
  std::map<std::pair<int, int>, std::vector<int>> channels;  // of a GPU to another one
  for (std::size_t gpu = 0; gpu < plan.gpus.size(); ++gpu) {
    const std::vector<int>& peers = plan.gpus[gpu].channels;
    for (std::size_t i = 0; i < peers.size(); ++i) {
      channels[{static_cast<int>(gpu), peers[i]}].push_back(static_cast<int>(i));
    }
  }
  std::vector<std::vector<int>> ends;
  for (const PlanGpu& gpu : plan.gpus) {
    ends.emplace_back(gpu.channels.size(), -1);
  }
  for (const auto& [between, own] : channels) {
    const auto others = channels.find({between.second, between.first});
    const std::size_t both =
        others == channels.end() ? 0 : std::min(own.size(), others->second.size());
    for (std::size_t i = 0; i < both; ++i) {
      ends[static_cast<std::size_t>(between.first)][static_cast<std::size_t>(own[i])] =
          others->second[i];
    }
  }
  return ends;
}

std::string_view word_of(Collective collective) {
  return collective == Collective::reduce_scatter ? "reducescatter" : msccl::word_of(collective);
}

}  // namespace unisono::mscclpp
