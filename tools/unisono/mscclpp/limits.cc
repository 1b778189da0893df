#include "mscclpp/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

namespace unisono::mscclpp {
namespace {

// Quantities that grow with the operations of a plan.
struct Load {
  std::int64_t blocks = 0;
  std::int64_t signals = 0;               // signals that can be in flight at once
  std::int64_t named = 0;                 // chunks, in all places of all operations
  std::int64_t sums = 0;                  // chunks that sums are written to
  std::vector<std::int64_t> around = {};  // blocks that access the memory of each GPU
};

void add_places(const std::vector<PlanPlace>& places, Load& load, std::set<int>& touched) {
  for (const PlanPlace& place : places) {
    load.named += place.chunks;
    touched.insert(place.gpu);
  }
}

Load load_of(const ExecutionPlan& plan) {
  Load load{.around = std::vector<std::int64_t>(plan.gpus.size())};
  for (std::size_t gpu = 0; gpu < plan.gpus.size(); ++gpu) {
    for (const ThreadBlock& block : plan.gpus[gpu].blocks) {
      ++load.blocks;
      std::set<int> touched = {static_cast<int>(gpu)};
      for (const PlanOperation& operation : block) {
        add_places(operation.sources, load, touched);
        add_places(operation.targets, load, touched);
        const Effect effect = traits_of(operation.type).effect;
        if (effect == Effect::adds) {
          load.sums += operation.targets.front().chunks;
        } else if (effect == Effect::raises) {
          load.signals +=
              static_cast<std::int64_t>(operation.channels.size() + operation.semaphores.size());
        }
      }
      for (const int one : touched) {
        ++load.around[static_cast<std::size_t>(one)];
      }
    }
  }
  return load;
}

}  // namespace

std::string too_large(const ExecutionPlan& plan) {
  const Load load = load_of(plan);
  const auto gpus = static_cast<std::int64_t>(plan.gpus.size());
  const std::int64_t around = *std::max_element(load.around.begin(), load.around.end());
  if (load.blocks > kMostBlocks) {
    return fmt::format("{} thread blocks; at most {} are read", load.blocks, kMostBlocks);
  }
  if (load.named > kMostNamedChunks) {
    return fmt::format("the operations name {} chunks; at most {} are read", load.named,
                       kMostNamedChunks);
  }
  if (load.sums > kMostContributions / gpus) {
    return fmt::format("sums of {} chunks of {} GPUs exceed what can be read", load.sums, gpus);
  }
  if (2 * load.blocks + load.signals > kMostKnown / std::max<std::int64_t>(around, 1)) {
    return fmt::format(
        "{} thread blocks and {} signals, with {} thread blocks at the memory of one GPU, exceed "
        "what can be read",
        load.blocks, load.signals, around);
  }
  return {};
}

std::uint64_t most_bytes_of(const ExecutionPlan& plan) {
  std::uint64_t most_chunks = 1;
  for (const PlanGpu& gpu : plan.gpus) {
    for (const int chunks : gpu.chunks) {
      most_chunks = std::max(most_chunks, static_cast<std::uint64_t>(chunks));
    }
  }
  const auto alignment = static_cast<std::uint64_t>(plan.alignment);
  const std::uint64_t chunk =
      std::numeric_limits<std::uint32_t>::max() / most_chunks / alignment * alignment;
  // The size of a message is that of the input, or of the output for an all_gather.
  const bool is_output = plan.collective == Collective::all_gather;
  return chunk * static_cast<std::uint64_t>(plan.gpus.front().chunks.at(is_output ? 1 : 0));
}

std::vector<std::string> beyond_executor(const ExecutionPlan& plan, std::size_t longest_block) {
  std::vector<std::string> remarks;
  if (longest_block > kMostOperationsOfBlock) {
    remarks.push_back(
        fmt::format("a thread block has {} operations; MSCCL++'s executor supports {}",
                    longest_block, kMostOperationsOfBlock));
  }
  if (plan.most_bytes > most_bytes_of(plan)) {
    remarks.push_back(
        fmt::format("it declares messages of more than {} bytes; MSCCL++'s executor counts a "
                    "buffer's bytes in 32 bits",
                    most_bytes_of(plan)));
  }
  return remarks;
}

}  // namespace unisono::mscclpp
