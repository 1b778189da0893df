#include "model/simulator/protocols.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace unisono::model {
namespace {

// What an operation does one after the other, whatever the protocol.
struct Chain {
  double messages = 0;
  double fixed_us = 0;     // overhead, latency and reductions
  double transfer_us = 0;  // at the full bandwidth
};

double transfer_us(const PlayMessage& message, double bytes, const PathTable& paths) {
  const double rate = paths.path(message.path).bytes_per_us;
  return message.is_local() || rate <= 0 ? 0 : bytes / rate;
}

// The messages of one repeat that a rank sends one after the other, of the busiest one.
Chain busiest_sender(const PlayBlock& block, const PathTable& paths) {
  std::unordered_map<int, Chain> senders;
  for (const PlayMessage& message : block.messages) {
    if (!message.is_local()) {
      const MessageCost& cost = block.cost_of(message);
      Chain& chain = senders[message.from];
      chain.messages += 1;
      chain.fixed_us = std::max(chain.fixed_us, cost.overhead_us + cost.latency_us);
      chain.transfer_us += transfer_us(message, cost.bytes, paths);
    }
  }
  Chain busiest;
  for (const auto& [sender, chain] : senders) {
    busiest.messages = std::max(busiest.messages, chain.messages);
    busiest.fixed_us = std::max(busiest.fixed_us, chain.fixed_us);
    busiest.transfer_us = std::max(busiest.transfer_us, chain.transfer_us);
  }
  return busiest;
}

// How many messages follow from each other at most.
double longest_chain(const PlayBlock& block) {
  std::vector<int> depth(block.messages.size(), 0);
  int longest = 0;
  for (std::size_t i = 0; i < block.messages.size(); ++i) {
    for (const std::uint32_t need : block.needs_of(i)) {
      depth[i] = std::max(depth[i], depth[need]);
    }
    depth[i] += block.messages[i].is_local() ? 0 : 1;
    longest = std::max(longest, depth[i]);
  }
  return longest;
}

Chain chain_of(const std::vector<PlayBlock>& blocks, const PathTable& paths) {
  Chain sum;
  for (const PlayBlock& block : blocks) {
    const Chain busiest = busiest_sender(block, paths);
    const auto repeats = static_cast<double>(block.repeats);
    const double messages =
        block.has_needs ? std::max(longest_chain(block), busiest.messages) : busiest.messages;
    sum.messages += repeats * messages;
    sum.fixed_us += repeats * messages * busiest.fixed_us;
    sum.transfer_us += repeats * busiest.transfer_us;
  }
  return sum;
}

}  // namespace

double choose_protocol(std::vector<PlayBlock>& blocks, const PathTable& paths) {
  const Chain chain = chain_of(blocks, paths);
  const Protocol* chosen = nullptr;
  double least = HUGE_VAL;
  for (const Protocol& protocol : paths.protocols()) {
    const double time = protocol.start_us + chain.fixed_us + chain.messages * protocol.message_us +
                        chain.transfer_us / protocol.share;
    if (time < least) {
      least = time;
      chosen = &protocol;
    }
  }
  for (PlayBlock& block : blocks) {
    PlayBlock changed;
    changed.messages.reserve(block.messages.size());
    for (const PlayMessage& message : block.messages) {
      MessageCost cost = block.cost_of(message);
      if (!message.is_local()) {
        cost.overhead_us +=
            chosen->message_us + transfer_us(message, cost.bytes, paths) * (1 / chosen->share - 1);
      }
      changed.add(message, cost);
    }
    block.messages = std::move(changed.messages);
    block.costs = std::move(changed.costs);
  }
  return chosen->start_us;
}

}  // namespace unisono::model
