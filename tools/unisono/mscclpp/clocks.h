// Each thread block's knowledge about the others while a plan runs in one order.
#pragma once

#include <cstddef>
#include <memory>
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
  void run(std::size_t operation);
  // Joins the blocks that meet at a barrier.
  void join(const std::vector<std::size_t>& blocks);

  // About an operation of a counted block that has run, for the `next` one that does: does the
  // block of `next` know that its stretch is over? And are both of one stretch of one block?
  bool is_over(std::size_t operation, std::size_t next) const;
  bool is_same_stretch(std::size_t operation, std::size_t next) const;
  // Does the block know that a counted one has begun? And will it, when it has ended, know that the
  // stretch of an operation of a counted block is over?
  bool has_begun(std::size_t counted, std::size_t block) const;
  bool is_over_at_end(std::size_t operation, std::size_t block) const;

 private:
  // Never changes, so that who knows the same shares it. Null: nothing is known.
  using Clock = std::shared_ptr<const std::vector<int>>;
  struct Signals {           // of a counter
    int from_beginning = 0;  // what it counts that nobody has raised, in front
    std::size_t taken = 0;
    std::vector<Clock> clocks = {};
  };

  static Clock later(const Clock& one, const Clock& other);
  static Clock begun(const Clock& clock);
  int known(const Clock& clock, std::size_t of) const;
  Clock own(std::size_t block) const;
  void raise(std::size_t block, std::size_t counter, bool is_relaxed);
  void lower(std::size_t block, std::size_t counter, bool is_relaxed);

  const OperationTable& table_;
  const CounterTable& counters_;
  std::vector<std::size_t> index_;  // in a clock, of each block; none(): it does not count
  std::vector<Clock> known_;        // by each block
  std::vector<Clock> told_;         // known from the next nop on
  std::vector<int> stretches_;      // that each block is in, from 1
  std::vector<int> stretch_of_;     // each operation of a counted block
  std::vector<Signals> signals_;    // of each counter
};

}  // namespace unisono::mscclpp
