// The choices stored for a tuned machine: the algorithm by size, the number of threads that move
// it, and the waiting policy.
//
// Rows are of one collective and rank count each; a row holds from its size up to the next one's.
// Calls of other rank counts take those of the nearest count (in proportion; of two, the smaller),
// if that is not farther than twice or half as many.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/wait_policy.h"
#include "unisono/types.hpp"

namespace unisono::cost {

struct Choice {
  Collective collective = Collective::barrier;  // a plain form
  int ranks = 1;
  double from_bytes = 0;       // as in cost.h
  std::string algorithm = {};  // with its parameters; "": the built-in choice
  friend bool operator==(const Choice&, const Choice&) = default;
};

// The best number of threads per rank for a call, from a size on.
struct ThreadChoice {
  Collective collective = Collective::barrier;
  int ranks = 1;
  double from_bytes = 0;  // as in cost.h
  int threads = 1;
  friend bool operator==(const ThreadChoice&, const ThreadChoice&) = default;
};

// The best waiting policy for a number of ranks.
struct WaitChoice {
  int ranks = 1;
  bool oversubscribed = false;  // more ranks than CPUs
  WaitPolicy policy = {};
  friend bool operator==(const WaitChoice&, const WaitChoice&) = default;
};

class Choices {
 public:
  Choices() = default;
  explicit Choices(std::vector<Choice> rows, std::vector<WaitChoice> waits = {},
                   std::vector<ThreadChoice> threads = {});

  // By collective, ranks and size.
  const std::vector<Choice>& rows() const { return rows_; }
  // nullptr: nothing is known of the collective and such rank counts. Sizes below the first row
  // get that one.
  const Choice* find(Collective collective, int ranks, double bytes) const;

  const std::vector<ThreadChoice>& threads() const { return threads_; }
  // As find().
  const ThreadChoice* find_threads(Collective collective, int ranks, double bytes) const;

  const std::vector<WaitChoice>& waits() const { return waits_; }
  // The choice for the nearest rank count, with as little or as much room on the CPUs; nullptr: not
  // known.
  const WaitChoice* find_wait(int ranks, bool oversubscribed) const;

 private:
  std::vector<Choice> rows_;
  std::vector<WaitChoice> waits_;
  std::vector<ThreadChoice> threads_;
};

}  // namespace unisono::cost
