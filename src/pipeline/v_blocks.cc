#include "pipeline/v_blocks.h"

#include <algorithm>
#include <array>

namespace unisono::pipeline {
namespace {

constexpr int kClock = 6;

struct Pass {
  int slot;
  ActionKind kind;
  int stage;
};

class Block {
 public:
  explicit Block(int ranks)
      : ranks_(ranks), taken_(static_cast<std::size_t>(ranks)), passes_(taken_.size()) {}

  // Puts the pass into the first free slot from `slot` on. Returns that slot.
  int place(ActionKind kind, int stage, int slot) {
    const auto rank = static_cast<std::size_t>(std::min(stage, 2 * ranks_ - 1 - stage));
    while (taken_[rank][static_cast<std::size_t>(slot % kClock)]) {
      ++slot;
    }
    taken_[rank][static_cast<std::size_t>(slot % kClock)] = true;
    passes_[rank].push_back({.slot = slot, .kind = kind, .stage = stage});
    return slot;
  }

  std::vector<Action> unrolled(std::size_t rank, int microbatches) const {
    std::vector<std::pair<int, Action>> timed;
    for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
      for (const Pass& pass : passes_[rank]) {
        timed.push_back({pass.slot + kClock * microbatch, {pass.kind, pass.stage, microbatch}});
      }
    }
    std::sort(timed.begin(), timed.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Action> actions;
    for (const auto& [slot, action] : timed) {
      actions.push_back(action);
    }
    return actions;
  }

 private:
  int ranks_;
  std::vector<std::array<bool, kClock>> taken_;
  std::vector<std::vector<Pass>> passes_;
};

}  // namespace

Pipeline build_v_blocks(PipelineSize shape, BlockDelays delays) {
  Pipeline pipeline = v_shaped(shape);
  const int stages = 2 * shape.ranks;
  Block block(shape.ranks);
  int slot = block.place(ActionKind::forward, 0, 0);
  for (int stage = 1; stage < stages; ++stage) {
    const int delay = stage < shape.ranks ? delays.down : stage == shape.ranks ? 1 : delays.up;
    slot = block.place(ActionKind::forward, stage, slot + delay);
  }
  std::vector<int> gradient(static_cast<std::size_t>(stages));
  for (int stage = stages - 1; stage >= 0; --stage) {
    const bool turns = stage == stages - 1 || stage == shape.ranks - 1;
    const int delay = turns ? 1 : stage >= shape.ranks ? delays.down_gradient : delays.up_gradient;
    slot = block.place(ActionKind::backward_input, stage, slot + delay);
    gradient[static_cast<std::size_t>(stage)] = slot;
  }
  for (int stage = stages - 1; stage >= 0; --stage) {
    block.place(ActionKind::backward_weight, stage, gradient[static_cast<std::size_t>(stage)] + 1);
  }
  for (std::size_t rank = 0; rank < pipeline.actions.size(); ++rank) {
    pipeline.actions[rank] = block.unrolled(rank, shape.microbatches);
  }
  return pipeline;
}

}  // namespace unisono::pipeline
