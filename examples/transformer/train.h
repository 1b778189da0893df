// Trains the model under a layout, and says how it went.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unisono/communicator.hpp>
#include <unisono/parallel/sharded_state.hpp>
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

// The same for a layout with a pipeline.
Trained train_pipeline(unisono::Communicator& world, const Layout& layout, const Config& config,
                       int steps);

// A step's sequences, the same on all ranks, each of length + 1 tokens.
std::vector<std::int32_t> draw_tokens(const Config& config, int step);
// Does so many steps, each of which gives its loss.
Trained run_steps(int steps, const std::function<double(int)>& step);

// The optimiser's input, for units of these weights, which get their initial values. Gradients are
// summed over the axes; `model`: the axes with other parameters.
struct Axes {
  unisono::Communicator& data;
  unisono::Communicator* replicas = nullptr;
  unisono::Communicator* model = nullptr;
  unisono::Communicator& tp;
  std::vector<unisono::Leaves> leaves = {};  // as in ShardedOptions
};
std::unique_ptr<unisono::parallel::ShardedState> make_state(
    const Config& config, int stage, const std::vector<std::vector<Weight>>& lists,
    const Axes& axes);
// Sums the gradients that are partial over the tensor-parallel ranks, and passes on the gradients
// of a unit.
void reduce_unit(unisono::parallel::ShardedState& state, std::size_t unit,
                 const std::vector<Weight>& list, unisono::Communicator& tp);
// The weights of a unit, whole, by their names. All ranks of tp and of the state call it.
void join_unit(unisono::parallel::ShardedState& state, std::size_t unit,
               const std::vector<Weight>& list, unisono::Communicator& tp,
               std::map<std::string, std::vector<float>>& all);

// The greatest differences between two trainings. Infinite if a value is not a number, or if the
// weights differ in shape.
struct Difference {
  double loss = 0;
  double weight = 0;
};
Difference difference(const Trained& a, const Trained& b);

}  // namespace transformer
