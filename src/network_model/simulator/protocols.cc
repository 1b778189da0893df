#include "network_model/simulator/protocols.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace unisono::network_model {
namespace {

double transfer_us(const PlayMessage& message, double bytes, const PathTable& paths) {
  const double rate = paths.path(message.path).bytes_per_us;
  return message.is_local() || rate <= 0 ? 0 : bytes / rate;
}

// Returns the length of the longest dependency chain.
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

}  // namespace

ProtocolChoice::ProtocolChoice(const PathTable& paths) : paths_(paths) {}

void ProtocolChoice::add(const PlayBlock& block) {
  add_senders(block);
  if (!block.ends_step) {
    return;
  }
  const Chain busiest = busiest_sender();
  const auto repeats = static_cast<double>(block.repeats);
  const double messages =
      block.has_needs ? std::max(longest_chain(block), busiest.messages) : busiest.messages;
  sum_.messages += repeats * messages;
  sum_.transfer_us += repeats * busiest.transfer_us;
}

void ProtocolChoice::add_senders(const PlayBlock& block) {
  for (const PlayMessage& message : block.messages) {
    if (message.is_local()) {
      continue;
    }
    const auto sender = static_cast<std::size_t>(message.from);
    senders_.resize(std::max(senders_.size(), sender + 1));
    const MessageCost& cost = block.cost_of(message);
    Chain& chain = senders_[sender];
    if (chain.messages == 0) {
      sending_.push_back(sender);
    }
    chain.messages += 1;
    chain.transfer_us += transfer_us(message, cost.bytes, paths_);
    begun_us_ = std::max(begun_us_, chain.transfer_us * static_cast<double>(block.repeats));
  }
}

// Returns the largest number of messages, and the longest transfer time, that one rank sends in one
// repeat.
ProtocolChoice::Chain ProtocolChoice::busiest_sender() {
  Chain busiest;
  for (const std::size_t sender : sending_) {
    Chain& chain = senders_[sender];
    busiest.messages = std::max(busiest.messages, chain.messages);
    busiest.transfer_us = std::max(busiest.transfer_us, chain.transfer_us);
    chain = {};
  }
  sending_.clear();
  begun_us_ = 0;
  return busiest;
}

// Overhead, latency and reductions are equal under all protocols.
const Protocol* ProtocolChoice::quickest(double messages) const {
  const Protocol* quickest = nullptr;
  double least = HUGE_VAL;
  for (const Protocol& protocol : paths_.protocols()) {
    const double time = protocol.start_us + messages * protocol.message_us +
                        (sum_.transfer_us + begun_us_) / protocol.share;
    if (time < least) {
      least = time;
      quickest = &protocol;
    }
  }
  return quickest;
}

bool ProtocolChoice::is_certain(double messages) const {
  const Protocol* chosen = quickest(messages);
  const auto protocols = paths_.protocols();
  return std::none_of(protocols.begin(), protocols.end(),
                      [chosen](const Protocol& other) { return other.share > chosen->share; });
}

const Protocol* ProtocolChoice::choose(double messages) {
  senders_ = {};
  chosen_ = quickest(messages);
  return chosen_;
}

void ProtocolChoice::apply(PlayBlock& block) const {
  if (chosen_ == nullptr) {
    return;
  }
  PlayBlock changed;
  changed.messages.reserve(block.messages.size());
  for (const PlayMessage& message : block.messages) {
    MessageCost cost = block.cost_of(message);
    if (!message.is_local()) {
      cost.overhead_us +=
          chosen_->message_us + transfer_us(message, cost.bytes, paths_) * (1 / chosen_->share - 1);
    }
    changed.add(message, cost);
  }
  block.messages = std::move(changed.messages);
  block.costs = std::move(changed.costs);
}

}  // namespace unisono::network_model
