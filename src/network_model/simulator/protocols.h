// Chooses the protocol of a topology for an operation, and applies its cost to the messages.
#pragma once

#include <vector>

#include "network_model/simulator/paths.h"
#include "network_model/simulator/play.h"

namespace unisono::network_model {

// Chooses the protocol under which the blocks of an operation, alone on the topology, would end
// first. The estimate uses the longest chain of messages and the busiest rank, and ignores sharing
// of links.
class ProtocolChoice {
 public:
  // Keeps the reference.
  explicit ProtocolChoice(const PathTable& paths);

  // Adds a block of the operation; call it before apply().
  void add(const PlayBlock& block);
  // Returns nullptr if there are no protocols. Call it after all blocks have been added.
  const Protocol* choose() { return choose(sum_.messages); }
  // Chooses as soon as the choice is certain. `messages`: the number of messages in sequence in all
  // blocks.
  const Protocol* choose(double messages);
  // Returns true if no more blocks are needed: more bytes only favour the protocol with the highest
  // bandwidth.
  bool is_certain(double messages) const;
  // Adds the protocol's costs to the messages.
  void apply(PlayBlock& block) const;

 private:
  // The sequential part of an operation, for any protocol.
  struct Chain {
    double messages = 0;
    double transfer_us = 0;  // at full bandwidth
  };
  void add_senders(const PlayBlock& block);
  Chain busiest_sender();
  const Protocol* quickest(double messages) const;

  const PathTable& paths_;
  std::vector<Chain> senders_;        // of the current step, by actor; empty between steps
  std::vector<std::size_t> sending_;  // actors with a chain
  double begun_us_ = 0;               // the longest transfer among them
  Chain sum_;                         // over the steps that have ended
  const Protocol* chosen_ = nullptr;
};

}  // namespace unisono::network_model
