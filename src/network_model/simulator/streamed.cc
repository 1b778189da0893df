#include "network_model/simulator/streamed.h"

#include <algorithm>
#include <utility>

#include "network_model/simulator/sharing.h"

namespace unisono::network_model {

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
    choose_protocol();
  }
}

// Returns the length of the longest sequence of messages that a rank sends. Counts without paths,
// because finding paths takes longest.
double StreamedBlocks::messages_in_turn() const {
  double sum = 0;
  std::vector<int> sent(actors_.size());
  int most = 0;
  for (const Place& place : places_) {
    const CompactPhase& phase = schedule_->phases[place.phase];
    for_each_message(phase, place.part, [&](const CompactMessage& message) {
      most = std::max(most, ++sent[static_cast<std::size_t>(message.from)]);
    });
    if (place.part + 1 == phase.parts.count) {
      sum += static_cast<double>(most) * static_cast<double>(phase.steps);
      most = 0;
      std::fill(sent.begin(), sent.end(), 0);
    }
  }
  return sum;
}

void StreamedBlocks::choose_protocol() {
  const double messages = messages_in_turn();
  for (std::size_t i = 0; i < places_.size() && !protocol_.is_certain(messages); ++i) {
    protocol_.add(make(i));
  }
  chosen_ = protocol_.choose(messages);
}

const std::vector<bool>& StreamedBlocks::meeting() {
  if (!meeting_) {
    LinkUsers users(paths_.bytes_per_us().size());
    for (std::size_t i = 0; i < places_.size(); ++i) {
      for (const PlayMessage& message : make(i).messages) {
        users.add(message, paths_);
      }
    }
    meeting_ = users.meeting();
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

}  // namespace unisono::network_model
