// The units of a model in training (the embedding, each layer, the head): how ZeRO gathers and
// reduces them, and the optimiser.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "step/training_parts.h"

namespace unisono::step {

inline constexpr const char* kNorm = "norm of gradients";

class Units {
 public:
  // Adds the weights and the optimiser's states. `parts` must outlive it.
  explicit Units(TrainingParts& parts);
  std::size_t last() const { return all_.size() - 1; }

  // With stage 3, gathers the weights of a unit.
  void gather(std::size_t unit);
  // Sums gradients that are partial over tp, and the gradients of data-parallel ranks.
  void reduce(std::size_t unit);
  // Adds the squared gradients of units begin to end - 1 to `sum`, for the norm by which gradients
  // are clipped. Gradients replicated on several ranks count once.
  void add_squares(std::size_t begin, std::size_t end, int stage, const std::string& sum);
  // Sums the norm's summands over ZeRO's axes, and over `axes` in a node with this name.
  void sum_norm(const std::string& name, const std::string& axes);
  void update(std::size_t begin, std::size_t end, int stage);

 private:
  using Names = std::vector<std::string>;

  // Expert weights are sharded over other axes than the other weights of a unit, and some along
  // another dimension, so they move separately. A shard keeps the dimensions of the weight.
  using NameOf = std::function<std::string(const UnitWeight&)>;
  void move(const std::string& node, std::size_t unit, const NameOf& read, const NameOf& written,
            Placement from, Placement to);
  bool is_sharded(const UnitWeight& weight) const;
  std::string stored_name(const UnitWeight& weight) const;
  void add(const UnitWeight& weight);
  void section(const std::string& name, std::size_t unit, int stage);
  void add_squares(const UnitWeight& weight, const std::string& made);
  void update(const UnitWeight& weight);

  TrainingParts& p_;
  StepBuilder& build_;
  std::vector<std::vector<UnitWeight>> all_;
};

}  // namespace unisono::step
