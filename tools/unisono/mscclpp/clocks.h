// What each thread block knows of the others, while a plan runs in one order.
#pragma once

#include <cstddef>
#include <list>
#include <unordered_map>
#include <vector>

#include "mscclpp/order.h"

namespace unisono::mscclpp {

// A stretch is what a block does between two nops: its operations are in no order. A block's clock
// has, for each block that counts, how many of its stretches are over; -1: not even that it has
// begun.
class Clocks {
 public:
  // `counted`: the blocks that count. The others only pass on what they know.
  Clocks(const OperationTable& table, const CounterTable& counters,
         const std::vector<std::size_t>& counted);

  // REQUIRES: operations come in an order in which they can run.
  void run(std::size_t index);
  // Those that meet at a barrier.
  void join(const std::vector<std::size_t>& blocks);

  // The stretch that the block is in, from 1.
  int stretch(std::size_t block) const { return stretches_[block]; }
  // Does `block` know, in this stretch, that that stretch of a counted block is over?
  bool knows(std::size_t block, std::size_t of, int stretch) const;
  // As it will when it has ended.
  bool knows_at_end(std::size_t block, std::size_t of, int stretch) const;

 private:
  using Clock = std::vector<int>;

  Clock own(std::size_t block) const;
  static void take(Clock& into, const Clock& from);

  const OperationTable& table_;
  const CounterTable& counters_;
  std::unordered_map<std::size_t, std::size_t> index_;  // of the counted blocks
  std::vector<Clock> known_;
  std::vector<Clock> told_;  // known from the next nop on
  std::vector<int> stretches_;
  std::vector<std::list<Clock>> messages_;  // of each counter
  std::vector<int> from_beginning_;         // what it counts that nobody has raised, in front
};

}  // namespace unisono::mscclpp
