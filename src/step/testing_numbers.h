// Runs steps on numbers, each rank on its own data. For tests.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "step/step.h"
#include "unisono/parallel/mesh.hpp"

namespace unisono::step {

using Values = std::vector<double>;  // elements of a whole tensor; NaN: missing
using Held = std::map<std::string, Values>;

// Limits: dimensions must divide evenly, each along one axis; rings of gradients, and pipelines
// with schedules, are not supported.
class Interpreter {
 public:
  Interpreter(const Step& step, const parallel::MeshShape& mesh);
  // Returns the data of every rank at the end. Throws std::out_of_range if a tensor is missing.
  std::vector<Held> run();

 private:
  using Place = std::map<std::string, std::size_t>;  // position in each dimension
  using Names = std::vector<std::string>;

  Held& memory(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  std::size_t size(const std::string& dim) const;
  std::size_t count(const Tensor& tensor) const;
  int stage_of(int rank) const {
    return step_.stage_axis.empty() ? 0 : mesh_.coordinate(rank, step_.stage_axis);
  }
  void cut(Values& values, const Tensor& tensor, const std::string& axis,
           const Placement& placement, int rank) const;
  void run(const Section& section, const Node& node);
  Values moved(const Node& node, std::size_t i, const std::vector<Held>& before, int rank) const;
  Values routed(const Node& node, const Values& all) const;
  bool is_together(const Place& place) const;
  double element(const std::string& name, const Values& values, const Place& place) const;
  void for_each(const Names& dims, Place& place, const std::function<void()>& visit,
                std::size_t i = 0) const;
  Values compute(const Node& node, const Tensor& written, const std::vector<Held>& before,
                 int rank) const;
  double value(const Node& node, const Held& mine, const Place& out, const Names& summed,
               const Names& whole) const;
  double term(const Node& node, const Held& mine, const Place& place, const Names& whole) const;

  const Step& step_;
  const parallel::MeshShape& mesh_;
  std::vector<Held> ranks_;
  std::vector<Held> given_;  // the initial data
};

}  // namespace unisono::step
