#include "network_model/simulator/blocks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "cost/cost.h"
#include "network_model/simulator/unroll.h"
#include "unisono/error.hpp"

namespace unisono::network_model {

void BlockMaker::add_message(PlayBlock& block, int from, int to, const Load& load) const {
  const int sender = rank_of_actor_[static_cast<std::size_t>(from)];
  const int receiver = rank_of_actor_[static_cast<std::size_t>(to)];
  const double slowness = slowness_[static_cast<std::size_t>(receiver)];
  PlayMessage message{.from = from, .to = to};
  const double coding_us = load.coded * options_.coding_us_per_byte;
  MessageCost cost{.bytes = load.sent,
                   .reduce_us = (load.reduced * options_.gamma_us_per_byte + coding_us) * slowness};
  if (message.is_local()) {
    cost.reduce_us += coding_us * slowness;  // rounding encodes and decodes
  } else {
    message.path = paths_.find(sender, receiver);
    const Path& path = paths_.path(message.path);
    cost.overhead_us = (path.overhead_us + coding_us) * slowness_[static_cast<std::size_t>(sender)];
    cost.latency_us = path.latency_us;
  }
  block.add(message, cost);
}

void BlockMaker::add_part(PlayBlock& block, const CompactSchedule& schedule, int part, double bytes,
                          const std::vector<int>& actors) const {
  const double chunk =
      schedule.collective == Collective::barrier
          ? 0
          : bytes / static_cast<double>(schedule.chunks) *
                (schedule.collective == Collective::all_to_all ? static_cast<double>(schedule.ranks)
                                                               : 1);
  const CompactPhase& phase = schedule.phases[static_cast<std::size_t>(block.phase)];
  for_each_message(phase, part, [&](const CompactMessage& compact) {
    add_message(block, actors[static_cast<std::size_t>(compact.from)],
                actors[static_cast<std::size_t>(compact.to)],
                {.sent = chunk * static_cast<double>(compact.chunks),
                 .reduced = chunk * static_cast<double>(compact.reduced)});
  });
}

PlayBlock BlockMaker::block_of(const CompactSchedule& schedule, std::size_t phase, double bytes,
                               const std::vector<int>& actors) const {
  const CompactPhase& found = schedule.phases[phase];
  PlayBlock block{.phase = static_cast<int>(phase), .repeats = found.steps, .waits = found.waits};
  block.messages.reserve(static_cast<std::size_t>(message_count(found)));
  for (int part = 0; part < found.parts.count; ++part) {
    add_part(block, schedule, part, bytes, actors);
  }
  return block;
}

PlayBlock BlockMaker::part_of(const CompactSchedule& schedule, std::size_t phase, int part,
                              double bytes, const std::vector<int>& actors) const {
  const CompactPhase& found = schedule.phases[phase];
  const auto messages = static_cast<std::size_t>(messages_of_part(found));
  PlayBlock block{.phase = static_cast<int>(phase),
                  .repeats = found.steps,
                  .waits = found.waits,
                  .before = messages * static_cast<std::size_t>(part),
                  .ends_step = part + 1 == found.parts.count};
  block.messages.reserve(messages);
  add_part(block, schedule, part, bytes, actors);
  return block;
}

PlayBlock BlockMaker::block_of(const Schedule& schedule, double bytes,
                               const std::vector<int>& actors) const {
  const double chunk = cost::chunk_bytes(schedule, bytes);
  const double segments =
      options_.segment_bytes > 0 ? std::ceil(chunk / options_.segment_bytes) : 1;
  constexpr double kMostInChunk = 1e6;
  if (segments > kMostInChunk) {
    throw Error(ErrorCode::usage, "a chunk has more than 1000000 segments\nuse larger segments");
  }
  PlayBlock block{.has_needs = true};
  block.first_need.push_back(0);
  for (const UnrolledMessage& flat : unroll(schedule, std::max(1, static_cast<int>(segments)))) {
    add_message(block, actors[static_cast<std::size_t>(flat.from)],
                actors[static_cast<std::size_t>(flat.to)],
                {.sent = chunk * flat.chunks,
                 .reduced = chunk * flat.reduced,
                 .coded = chunk * flat.coded});
    block.needs.insert(block.needs.end(), flat.needs.begin(), flat.needs.end());
    block.first_need.push_back(static_cast<std::uint32_t>(block.needs.size()));
  }
  return block;
}

}  // namespace unisono::network_model
