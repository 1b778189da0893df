// The choices stored for a tuned machine: the algorithm by size, the number of threads that move
// it, and the waiting policy.
//
// Rows are of one collective and rank count each; a row holds from its size up to the next one's.
// Calls of other rank counts take those of the nearest count (in proportion; of two, the smaller),
// if that is not farther than twice or half as many.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/wait_policy.h"
#include "unisono/types.hpp"

namespace unisono::network_model {

class Machine;

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

// The algorithm that runs when nobody says.
using DefaultAlgorithm = std::function<std::string_view(Collective, int ranks, double bytes)>;

// What is so much faster that it is chosen instead.
inline constexpr double kWorthChanging = 1.05;
inline constexpr double kBeyond = 4;

// The fastest of the measured algorithms, as the machine predicts them, for each collective and
// rank count that was measured, where they were measured; but the built-in default, or else the
// choice of the size below, stays unless another one is kWorthChanging faster, and by more than the
// noise of so many ranks. Beyond kBeyond times the largest measured size the built-in choice comes
// back.
std::vector<Choice> choose_algorithms(const Machine& machine,
                                      const DefaultAlgorithm& default_algorithm);

// A call that was timed with a policy.
struct TimedWait {
  WaitChoice wait = {};
  double bytes = 0;
  double time_s = 0;
};
// For each rank count the policy with the shortest times, all sizes counting alike; but the
// built-in one stays unless another one is kWorthChanging faster, and by more than the noise. Of
// several times of one size the quickest counts.
std::vector<WaitChoice> choose_waits(std::span<const TimedWait> timed);

// A call of ranks with so many threads each that was timed.
struct TimedThreads {
  ThreadChoice of = {};  // from_bytes: the size that was timed
  double time_s = 0;
};
// For each collective and rank count, by size, the fewest threads that are hardly slower than the
// quickest; but those of the size below stay (the fewest at first) unless others are kWorthChanging
// faster, and by more than the noise. The quickest of several times of one call counts.
std::vector<ThreadChoice> choose_threads(std::span<const TimedThreads> timed);

}  // namespace unisono::network_model
