// Trains the model under a layout.
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
  std::vector<double> losses;                         // per step: mean over all tokens
  std::map<std::string, std::vector<float>> weights;  // whole, on all ranks
  double step_ms = 0;                                 // median
};

// This rank's parts of weights, by name; held_weights() describes them.
using Parts = std::map<std::string, std::span<const float>>;
// Called on all ranks after each step; the first step is 1. Calling `parts` is optional and
// collective; its memory is valid until this function returns.
using AfterStep = std::function<void(int step, double loss, const std::function<Parts()>& parts)>;

// Collective. The layout must have as many ranks as the communicator.
Trained train(unisono::Communicator& world, const Layout& layout, const Config& config, int steps,
              const AfterStep& after = {});

// Does the same for a layout with a pipeline.
Trained train_pipeline(unisono::Communicator& world, const Layout& layout, const Config& config,
                       int steps, const AfterStep& after);

// Describes the ranks that hold a weight: consecutive ranks in equal tensor-parallel groups. Each
// group has the whole weight, sharded as `weight` specifies. Ranks of a second pipeline may also
// hold the weight.
struct HeldWeight {
  Weight weight;
  int first_rank = 0;
  int groups = 1;
  int tp = 1;
};
// Local. Returns all weights of the model.
std::vector<HeldWeight> held_weights(const Config& config, const Layout& layout);
// Returns the first pipeline rank that has a unit.
int pipeline_rank_of(const Config& config, const Layout& layout, std::size_t unit);

// Returns the most frequent next token in the data.
std::size_t next_token(std::size_t token, std::size_t vocabulary);
// Returns a step's sequences, equal on all ranks, with length + 1 tokens each.
std::vector<std::int32_t> draw_tokens(const Config& config, int step);
// Runs `steps` steps; step() returns the loss. Step times do not include `after`.
Trained run_steps(int steps, const std::function<double(int)>& step, const AfterStep& after,
                  const std::function<Parts()>& parts);

// The axes over which gradients are summed, and the axes with other parameters (`model`).
struct Axes {
  unisono::Communicator& data;
  unisono::Communicator* replicas = nullptr;
  unisono::Communicator* model = nullptr;
  unisono::Communicator& tp;
  std::vector<unisono::Leaves> leaves = {};  // see ShardedOptions
};
std::unique_ptr<unisono::parallel::ShardedState> make_state(
    const Config& config, int stage, const std::vector<std::vector<Weight>>& lists,
    const Axes& axes);
// Sums gradients that are partial over the tensor-parallel ranks, then passes the unit's gradients
// to `state`.
void reduce_unit(unisono::parallel::ShardedState& state, std::size_t unit,
                 const std::vector<Weight>& list, unisono::Communicator& tp);
// Adds this rank's parts of a unit's weights to `parts`; they are valid until the unit's release().
void add_parts(unisono::parallel::ShardedState& state, std::size_t unit,
               const std::vector<Weight>& list, unisono::Communicator& tp, Parts& parts);
// Adds a unit's whole weights to `all`, by name. Collective over tp and the state's ranks.
void join_unit(unisono::parallel::ShardedState& state, std::size_t unit,
               const std::vector<Weight>& list, unisono::Communicator& tp,
               std::map<std::string, std::vector<float>>& all);

// Greatest differences between two training runs. Infinite if a value is NaN or if weights differ
// in shape.
struct Difference {
  double loss = 0;
  double weight = 0;
};
Difference difference(const Trained& a, const Trained& b);

}  // namespace transformer
