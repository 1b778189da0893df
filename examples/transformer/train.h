// Trains the model under a layout, and says how it went.
#pragma once

#include <map>
#include <string>
#include <unisono/communicator.hpp>
#include <vector>

#include "model.h"

namespace transformer {

struct Trained {
  std::vector<double> losses;                         // of each step, the mean over all tokens
  std::map<std::string, std::vector<float>> weights;  // whole, on all ranks
  double step_ms = 0;                                 // the median
};

// All ranks of the communicator call it; the layout has as many.
Trained train(unisono::Communicator& world, const Layout& layout, const Config& config, int steps);

// The greatest differences between two trainings. Infinite where one is not a number, or where they
// have other weights.
struct Difference {
  double loss = 0;
  double weight = 0;
};
Difference difference(const Trained& a, const Trained& b);

}  // namespace transformer
