// Which algorithm from which size on: what is kept of a tuned machine for every call.
//
// Rows are of one collective and rank count each; a row holds from its size up to the next one's.
// Calls of other rank counts take those of the nearest count (in proportion; of two, the smaller).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "unisono/types.hpp"

namespace unisono::model {

class Machine;

struct Choice {
  Collective collective = Collective::barrier;  // a plain form
  int ranks = 1;
  double from_bytes = 0;       // as in cost.h
  std::string algorithm = {};  // with its parameters
  friend bool operator==(const Choice&, const Choice&) = default;
};

class Choices {
 public:
  Choices() = default;
  explicit Choices(std::vector<Choice> rows);

  // By collective, ranks and size.
  const std::vector<Choice>& rows() const { return rows_; }
  // nullptr: nothing is known of the collective. Of sizes below the first row, that one.
  const Choice* find(Collective collective, int ranks, double bytes) const;

 private:
  std::vector<Choice> rows_;
};

// The algorithm that runs when nobody says.
using DefaultAlgorithm = std::function<std::string_view(Collective, int ranks, double bytes)>;

// What is so much faster that it is chosen instead.
inline constexpr double kWorthChanging = 1.05;

// The fastest of the measured algorithms, as the machine predicts them, for each collective and
// rank count that was measured, where they were measured; but the built-in default, or else the
// choice of the size below, stays unless another one is kWorthChanging faster.
Choices make_choices(const Machine& machine, const DefaultAlgorithm& default_algorithm);

}  // namespace unisono::model
