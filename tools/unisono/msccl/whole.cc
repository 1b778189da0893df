#include "msccl/whole.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace unisono::msccl {
namespace {

// The most entries of a proof, steps times thread blocks of a GPU: about 1 GB.
constexpr std::size_t kMostKnown = std::size_t{1} << 28;

// Finds a sending block without a receiving block, or a receiving block without a sending one.
std::string open_end(const Connections& connections) {
  for (const auto& [gpu, peer, channel, sends] : connections) {
    if (!connections.contains({peer, gpu, channel, !sends})) {
      return fmt::format("GPU {} {} GPU {} on channel {}, where no thread block {}", gpu,
                         sends ? "sends to" : "receives from", peer, channel,
                         sends ? "receives from it" : "sends to it");
    }
  }
  return {};
}

std::size_t count_steps(const MscclProgram& program) {
  std::size_t steps = 0;
  for (const Gpu& gpu : program.gpus) {
    for (const ThreadBlock& block : gpu.blocks) {
      steps += block.steps.size();
    }
  }
  return steps;
}

bool is_there(const std::vector<ThreadBlock>& blocks, int block, int step) {
  const auto b = static_cast<std::size_t>(block);
  return b < blocks.size() && step >= 0 && static_cast<std::size_t>(step) < blocks[b].steps.size();
}

std::string missing_dependency(const std::vector<ThreadBlock>& blocks, std::size_t gpu) {
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (std::size_t s = 0; s < blocks[b].steps.size(); ++s) {
      const Step& step = blocks[b].steps[s];
      if (step.depends_on_block >= 0 &&
          !is_there(blocks, step.depends_on_block, step.depends_on_step)) {
        return fmt::format(
            "GPU {}, thread block {}, step {} depends on step {} of block {}, which does not exist",
            gpu, b, s, step.depends_on_step, step.depends_on_block);
      }
    }
  }
  return {};
}

}  // namespace

std::string flaw_of_whole(const MscclProgram& program, int gpus, const Connections& connections) {
  if (static_cast<int>(program.gpus.size()) != gpus) {
    return fmt::format("{} GPUs are described, but ngpus is {}", program.gpus.size(), gpus);
  }
  if (std::string flaw = open_end(connections); !flaw.empty()) {
    return flaw;
  }
  const std::size_t steps = count_steps(program);
  for (std::size_t gpu = 0; gpu < program.gpus.size(); ++gpu) {
    const std::vector<ThreadBlock>& blocks = program.gpus[gpu].blocks;
    if (steps > kMostKnown / std::max<std::size_t>(blocks.size(), 1)) {
      return fmt::format("{} steps, with {} thread blocks of GPU {}, exceed what can be read",
                         steps, blocks.size(), gpu);
    }
    if (std::string flaw = missing_dependency(blocks, gpu); !flaw.empty()) {
      return flaw;
    }
  }
  return {};
}

}  // namespace unisono::msccl
