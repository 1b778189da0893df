// Hands the weights of a trainer to an engine on other ranks of one job, by a reshard.
//
// The trainer never waits for an answer: the engine's first rank reports when the engine has room
// for weights, and the trainer skips a step for which it has not.
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

// The trainer's names to the engine's, which are those of GGUF.
extern const char* const kNames;

// The model of the trainer, as the engine describes it.
llm::Shape engine_shape(const transformer::Config& config);

// The shape of the trainer's tensor: of a vector, one dimension.
std::vector<std::size_t> shape_of(const transformer::Weight& weight);

// Parts of matrices in the memory of a rank.
class HandedWeights : public llm::Weights {
 public:
  explicit HandedWeights(const llm::Shape& shape) : shape_(shape) {}
  // Makes memory for a part of a tensor: one range for each dimension.
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

// Comes with the weights.
struct News {
  std::int64_t step = 0;
  bool is_last = false;
};

class HandOver {
 public:
  // Collective over the world, whose first ranks train and whose other ranks are the engine, which
  // cuts weights over tp. Errors: those of Reshard::create().
  HandOver(unisono::Communicator& world, const transformer::Config& config,
           const transformer::Layout& layout);

  // Collective over the trainer's ranks. Returns true if the engine has room; waits for that if
  // `waits`. `trainers`: the group of these ranks. If a rank of the engine has died, it returns
  // true, and give() reports it on all ranks.
  bool is_wanted(unisono::Communicator& trainers, bool waits);
  // Collective over the world: the trainer gives, and the engine takes.
  // Errors: those of Reshard::run().
  void give(const transformer::Parts& parts, const News& news);
  News take(HandedWeights& weights);

  std::size_t bytes() const { return reshard_->plan().bytes_sent(); }

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
