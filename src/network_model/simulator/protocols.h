// The protocol of a topology that an operation takes, and the resulting cost of its messages.
#pragma once

#include <vector>

#include "network_model/simulator/paths.h"
#include "network_model/simulator/play.h"

namespace unisono::network_model {

// Chooses the protocol under which the blocks of an operation, alone on the topology, would end
// first. The estimate knows the longest chain of messages and the busiest rank, and no links that
// are shared.
class ProtocolChoice {
 public:
  // Keeps the reference.
  explicit ProtocolChoice(const PathTable& paths);

  // A block of the operation, before apply().
  void add(const PlayBlock& block);
  // nullptr if there are no protocols. Call it after all blocks have been added.
  const Protocol* choose() { return choose(sum_.messages); }
  // As early as it is certain, where so many messages come one after the other in all blocks.
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
    double transfer_us = 0;  // at the full bandwidth
  };
  void add_senders(const PlayBlock& block);
  Chain busiest_sender();
  const Protocol* quickest(double messages) const;

  const PathTable& paths_;
  std::vector<Chain> senders_;        // of a step, by actor; empty chains between steps
  std::vector<std::size_t> sending_;  // actors with a chain
  double begun_us_ = 0;               // the longest transfer of them
  Chain sum_;                         // of steps that have ended
  const Protocol* chosen_ = nullptr;
};

}  // namespace unisono::network_model
