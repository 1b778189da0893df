// The choices stored for a tuned machine: the algorithm by size, the number of threads that move
// the data, and the waiting policy.
//
// Each row is for one collective and one rank count. It applies to message sizes from its own size
// up to the size of the next row. Calls with other rank counts use the rows of the rank count with
// the nearest ratio; of two equally near counts, the smaller one. If this ratio is larger than 2,
// no row applies.
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

// The best number of threads per rank for calls from a given size on.
struct ThreadChoice {
  Collective collective = Collective::barrier;
  int ranks = 1;
  double from_bytes = 0;  // as in cost.h
  int threads = 1;
  friend bool operator==(const ThreadChoice&, const ThreadChoice&) = default;
};

// The best waiting policy for a rank count.
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

  // Sorted by collective, ranks and size.
  const std::vector<Choice>& rows() const { return rows_; }
  // Returns nullptr if no row covers the collective and a near rank count. Sizes below the first
  // row use the first row.
  const Choice* find(Collective collective, int ranks, double bytes) const;

  const std::vector<ThreadChoice>& threads() const { return threads_; }
  // Like find().
  const ThreadChoice* find_threads(Collective collective, int ranks, double bytes) const;

  const std::vector<WaitChoice>& waits() const { return waits_; }
  // Returns the choice for the nearest rank count with the same value of `oversubscribed`; nullptr
  // if there is none.
  const WaitChoice* find_wait(int ranks, bool oversubscribed) const;

 private:
  std::vector<Choice> rows_;
  std::vector<WaitChoice> waits_;
  std::vector<ThreadChoice> threads_;
};

}  // namespace unisono::cost
