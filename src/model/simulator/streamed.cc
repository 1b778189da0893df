#include "model/simulator/streamed.h"

#include <utility>

#include "model/simulator/sharing.h"

namespace unisono::model {

StreamedBlocks::StreamedBlocks(const WorkItem& item, std::vector<int> actors, Ranks ranks,
                               const SimulationOptions& options, PathTable& paths)
    : schedule_(item.compact),
      bytes_(item.bytes),
      actors_(std::move(actors)),
      ranks_(std::move(ranks)),
      paths_(paths),
      maker_(ranks_.of_actor, ranks_.slowness, options, paths),
      protocol_(paths) {
  for (std::size_t i = 0; i < schedule_->phases.size(); ++i) {
    if (schedule_->phases[i].steps > 0 && message_count(schedule_->phases[i]) > 0) {
      phases_.push_back(i);
    }
  }
  LinkUsers users(paths.bytes_per_us().size());
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    const PlayBlock& block = make(i);
    protocol_.add(block);
    for (const PlayMessage& message : block.messages) {
      users.add(message, paths_);
    }
  }
  meeting_ = users.meeting();
  start_us_ = protocol_.choose();
}

BlockSource::Size StreamedBlocks::size(std::size_t index) const {
  const CompactPhase& phase = schedule_->phases[phases_[index]];
  return {.repeats = phase.steps, .messages = message_count(phase)};
}

const PlayBlock& StreamedBlocks::make(std::size_t index) {
  block_ = {};
  paths_.restart(false);
  block_ = maker_.block_of(*schedule_, phases_[index], bytes_, actors_);
  return block_;
}

const PlayBlock& StreamedBlocks::block(std::size_t index) {
  make(index);
  protocol_.apply(block_);
  return block_;
}

}  // namespace unisono::model
