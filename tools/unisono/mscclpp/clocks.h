// Tracks what each thread block knows about the others while a plan runs in one order.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "mscclpp/order.h"

namespace unisono::mscclpp {

// A stretch is the work of a block between two nops; its operations are unordered. A block's clock
// holds, for each counted block, how many of its stretches are known to be over; -1: not even its
// start is known.
class Clocks {
 public:
  // `counted`: the blocks whose progress is tracked. The other blocks only forward knowledge.
  Clocks(const OperationTable& table, const CounterTable& counters,
         const std::vector<std::size_t>& counted);

  // REQUIRES: operations arrive in an order in which they can run.
  void run(std::size_t operation);
  // Joins the blocks that meet at a barrier.
  void join(const std::vector<std::size_t>& blocks);

  // For an operation of a counted block that has run, and the `next` one: does the block of `next`
  // know that its stretch is over? And do both belong to one stretch of one block?
  bool is_over(std::size_t operation, std::size_t next) const;
  bool is_same_stretch(std::size_t operation, std::size_t next) const;
  // Does the block know that a counted block has started? And will it know at its end that the
  // stretch of a counted block's operation is over?
  bool has_begun(std::size_t counted, std::size_t block) const;
  bool is_over_at_end(std::size_t operation, std::size_t block) const;

 private:
  // Immutable, so that blocks with the same knowledge share it. Null: nothing is known.
  using Clock = std::shared_ptr<const std::vector<int>>;
  struct Signals {           // signals of a counter
    int from_beginning = 0;  // initial count, before any signal
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
  std::vector<std::size_t> index_;  // place of each block in a clock; none(): not counted
  std::vector<Clock> known_;        // by block
  std::vector<Clock> told_;         // known after the next nop
  std::vector<int> stretches_;      // current stretch of each block, from 1
  std::vector<int> stretch_of_;     // by operation of a counted block
  std::vector<Signals> signals_;    // by counter
};

}  // namespace unisono::mscclpp
