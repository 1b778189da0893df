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

// This rank's parts of weights, by name, as held_weights() describes them.
using Parts = std::map<std::string, std::span<const float>>;
// Called on all ranks after a step, the first of which is 1. `parts` is collective, if called at
// all; its memory is valid until the call returns.
using AfterStep = std::function<void(int step, double loss, const std::function<Parts()>& parts)>;

// All ranks of the communicator call it; the layout has as many.
Trained train(unisono::Communicator& world, const Layout& layout, const Config& config, int steps,
              const AfterStep& after = {});

// The same for a layout with a pipeline.
Trained train_pipeline(unisono::Communicator& world, const Layout& layout, const Config& config,
                       int steps, const AfterStep& after);

// Describes the ranks that hold a weight: consecutive ones, in equal groups of tensor-parallel
// ranks that each have all of it, cut as the weight says. Ranks of a second pipeline may have it as
// well.
struct HeldWeight {
  Weight weight;
  int first_rank = 0;
  int groups = 1;
  int tp = 1;
};
// Local. Returns all weights of the model.
std::vector<HeldWeight> held_weights(const Config& config, const Layout& layout);
// Returns the rank of the pipeline that has a unit, the first of them.
int pipeline_rank_of(const Config& config, const Layout& layout, std::size_t unit);

// The token that follows most often in the data.
std::size_t next_token(std::size_t token, std::size_t vocabulary);
// A step's sequences, the same on all ranks, each of length + 1 tokens.
std::vector<std::int32_t> draw_tokens(const Config& config, int step);
// Does so many steps, each of which gives its loss. `after` is not part of their time.
Trained run_steps(int steps, const std::function<double(int)>& step, const AfterStep& after,
                  const std::function<Parts()>& parts);

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
// Adds this rank's parts of a unit's weights, which are valid until release() of the unit.
void add_parts(unisono::parallel::ShardedState& state, std::size_t unit,
               const std::vector<Weight>& list, unisono::Communicator& tp, Parts& parts);
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
