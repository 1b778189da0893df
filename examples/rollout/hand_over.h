// Transfers a trainer's weights to an engine on other ranks of the same job by a reshard.
//
// The trainer never waits for answers. The engine's first rank reports when the engine is ready for
// weights, and the trainer skips steps at which the engine is not ready.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unisono/parallel/reshard.hpp>
#include <unisono/parallel/reshard_names.hpp>
#include <vector>

#include "llm/weights.h"
#include "transformer/train.h"

namespace rollout {

// Maps the trainer's names to the engine's names, which are GGUF's.
extern const char* const kNames;

// Returns the engine's description of the trainer's model.
llm::Shape engine_shape(const transformer::Config& config);

// Returns the shape of the trainer's tensor; a vector has one dimension.
std::vector<std::size_t> shape_of(const transformer::Weight& weight);

// Parts of matrices in a rank's memory.
class HandedWeights : public llm::Weights {
 public:
  explicit HandedWeights(const llm::Shape& shape) : shape_(shape) {}
  // Allocates memory for a part of a tensor, given as one range per dimension.
  unisono::parallel::Tensor add(const std::string& name,
                                const std::vector<unisono::parallel::Range>& part);
  llm::Shape shape() const override { return shape_; }
  bool has(const std::string& name) const override { return parts_.contains(name); }
  std::vector<float> read(const std::string& name, unisono::parallel::Range rows,
                          unisono::parallel::Range columns) const override;

 private:
  struct Part {
    unisono::parallel::Range rows;
    unisono::parallel::Range columns;
    std::vector<float> values;
  };
  llm::Shape shape_;
  std::map<std::string, Part> parts_;
};

// Sent with the weights.
struct News {
  std::int64_t step = 0;
  bool is_last = false;
};

class HandOver {
 public:
  // Collective over the world. Its first ranks are the trainer, its other ranks the engine, which
  // shards weights over tp. Errors: errors of Reshard::create().
  HandOver(unisono::Communicator& world, const transformer::Config& config,
           const transformer::Layout& layout);

  // Collective over the trainer's ranks. Returns true if the engine is ready for weights; waits for
  // that if `waits` is set. `trainers`: the group of the trainer's ranks. If a rank of the engine
  // has died, returns true, and give() reports the death on all ranks.
  bool is_wanted(unisono::Communicator& trainers, bool waits);
  // Collective over the world: the trainer calls give(), and the engine calls take(). Errors:
  // errors of Reshard::run().
  void give(const transformer::Parts& parts, const News& news);
  News take(HandedWeights& weights);

  const unisono::parallel::ReshardPlan& plan() const { return reshard_->plan(); }

 private:
  void expect_report();

  unisono::Communicator& world_;
  int trainers_ = 0;
  std::vector<unisono::parallel::NamedTarget> targets_;
  std::vector<unisono::parallel::NamedTensor> sources_;
  std::optional<unisono::parallel::Reshard> reshard_;
  std::array<std::int64_t, 2> news_ = {};
  std::byte report_ = {};
  std::optional<unisono::Request> reported_;  // on the trainer's first rank
};

}  // namespace rollout
