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
    const CompactPhase& phase = schedule_->phases[i];
    for (int part = 0; part < phase.parts.count; ++part) {
      if (phase.steps > 0 && messages_of_part(phase) > 0) {
        places_.push_back({.phase = i, .part = part});
      }
    }
  }
  if (!paths.protocols().empty()) {
    look_at_all();
  }
  start_us_ = protocol_.choose();
}

void StreamedBlocks::look_at_all() {
  LinkUsers users(paths_.bytes_per_us().size());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const PlayBlock& block = make(i);
    protocol_.add(block);
    for (const PlayMessage& message : block.messages) {
      users.add(message, paths_);
    }
  }
  meeting_ = users.meeting();
}

const std::vector<bool>& StreamedBlocks::meeting() {
  if (!meeting_) {
    look_at_all();
  }
  return *meeting_;
}

BlockSource::Size StreamedBlocks::size(std::size_t index) const {
  const CompactPhase& phase = schedule_->phases[places_[index].phase];
  return {.repeats = phase.steps, .messages = messages_of_part(phase)};
}

const PlayBlock& StreamedBlocks::make(std::size_t index) {
  block_ = {};
  paths_.restart();
  block_ = maker_.part_of(*schedule_, places_[index].phase, places_[index].part, bytes_, actors_);
  return block_;
}

const PlayBlock& StreamedBlocks::block(std::size_t index) {
  make(index);
  protocol_.apply(block_);
  return block_;
}

}  // namespace unisono::model
