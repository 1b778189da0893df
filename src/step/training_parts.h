// The common state of the parts of a training step: names, and how tensors move.
#pragma once

#include <string>
#include <vector>

#include "planner/shape.h"
#include "step/builder.h"
#include "step/training_task.h"
#include "unisono/exact_sum.hpp"

namespace unisono::step {

// A scalar that ranks sum exactly takes several words.
inline constexpr double kExactSumBytes = 8.0 * ExactSum::kWords;

// A weight of a unit (the embedding, a layer, the head), which ZeRO gathers and reduces together.
struct UnitWeight {
  std::string name = {};
  std::vector<std::string> dims = {};
  std::string cut = {};           // dimension that tp shards; empty: none
  bool is_summed = false;         // its gradient is partial over tp
  bool is_of_expert = false;      // sharded over ep, along which other weights are data-parallel
  std::string sharded = "width";  // dimension that ZeRO shards
};

class TrainingParts {
 public:
  TrainingParts(const planner::ModelShape& shape, const parallel::MeshShape& mesh,
                const TrainingTask& task);

  const planner::ModelShape& shape;
  const TrainingTask& task;
  StepBuilder build;
  std::vector<std::string> rows = {"sequences", "places"};
  // Several ranks of tp share a key-value head, whose weights are replicated on all of them.
  bool shares_keys = false;

  // Returns the sequences in one pass over all stages: all sequences, or, with a pipeline, one
  // microbatch of each chain.
  std::size_t sequences() const;
  std::vector<UnitWeight> embedding() const;
  bool is_expert_layer(int layer) const { return shape.kind(layer).has_experts; }
  std::vector<UnitWeight> layer(int number) const;
  // The input dimension of queries, and the last dimension of values.
  const char* query_from() const { return shape.latent.query_rank > 0 ? "query_latent" : "width"; }
  const char* value_dim() const { return shape.latent.is_used() ? "value_dim" : "dim"; }
  std::vector<UnitWeight> head() const;
  // The matrix from rows to logits: the embedding itself if the head is tied to it.
  const char* output() const { return shape.tied ? "embedding" : "output"; }

  std::vector<UnitWeight> attention(const std::string& prefix) const;
  std::vector<UnitWeight> latent_attention(const std::string& prefix) const;
  void activation(const std::string& name, std::vector<std::string> dims) {
    build.activation(name, std::move(dims));
  }
  // Returns the tensor with placement `to` along the axis: a new tensor, or the same one if the
  // axis is not wide.
  std::string moved(const std::string& name, const std::string& tensor, const std::string& to_name,
                    const std::string& axis, Placement from, Placement to);
};

}  // namespace unisono::step
