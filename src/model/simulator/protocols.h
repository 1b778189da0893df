// Which protocol of a topology an operation takes, and what its messages cost then.
#pragma once

#include <vector>

#include "model/simulator/paths.h"
#include "model/simulator/play.h"

namespace unisono::model {

// Chooses the protocol under which the blocks of an operation, alone on the topology, would end
// first. The estimate knows the longest chain of messages and the busiest rank, and no links that
// are shared.
class ProtocolChoice {
 public:
  // Keeps the reference.
  explicit ProtocolChoice(const PathTable& paths);

  // A block of the operation, before apply().
  void add(const PlayBlock& block);
  // What the protocol takes to start; 0 where there are none. After all blocks were added.
  double choose();
  // Adds what the protocol costs to the messages.
  void apply(PlayBlock& block) const;

 private:
  // What an operation does one after the other, whatever the protocol.
  struct Chain {
    double messages = 0;
    double fixed_us = 0;     // overhead, latency and reductions
    double transfer_us = 0;  // at the full bandwidth
  };
  void add_senders(const PlayBlock& block);
  Chain busiest_sender();

  const PathTable& paths_;
  std::vector<Chain> senders_;        // of a step, by actor; empty chains between steps
  std::vector<std::size_t> sending_;  // actors with a chain
  Chain sum_;
  const Protocol* chosen_ = nullptr;
};

}  // namespace unisono::model
