// Writes a step down: tensors and nodes with the axes that are there.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "step/step.h"

namespace unisono::step {

class StepBuilder {
 public:
  StepBuilder(std::string name, const parallel::MeshShape& mesh);

  // Before anything that depends on the axes; it fits the stage axis.
  void pipeline(std::string stage_axis, pipeline::Pipeline pipeline);
  bool is_wide(const std::string& axes) const;  // the mesh has it, with more than one rank
  int size(const std::string& axis) const;
  // Returns whether a node of the last section's stage writes the tensor.
  bool is_written(const std::string& tensor) const;
  Step take() { return std::move(step_); }
  Step& step() { return step_; }
  const Step& step() const { return step_; }

  void dim(Dim dim) { step_.dims.push_back(std::move(dim)); }
  // Leaves out placements along axes that are not there, and a tensor that is there already. One
  // that is there and lies otherwise comes a second time, and problem_of() says so.
  void weight(std::string name, std::vector<std::string> dims, const Placements& placement,
              bool is_layered);
  void tensor(Tensor::Kind kind, std::string name, std::vector<std::string> dims,
              const Placements& placement = {}, bool is_layered = false);
  void activation(std::string name, std::vector<std::string> dims) {
    tensor(Tensor::Kind::activation, std::move(name), std::move(dims));
  }
  void element_bytes(double bytes) { element_bytes_ = bytes; }

  void section(std::string name, int stage, int first_layer = -1, int repeat = 1);
  void pass(StagePass pass) { step_.sections.back().pass = pass; }  // that the last section is
  void compute(Node node) { add(std::move(node)); }
  // The same, where its flops are those of each element of what is pointwise or summed.
  void compute_each(Node node);
  // y = x W: pointwise in what y has, summed over all else. 2 flops an element.
  void product(std::string name, const std::string& x, const std::string& weight,
               const std::string& y);
  // Computes each element of `dims` by itself.
  void pointwise(std::string name, std::vector<std::string> reads, const std::string& write,
                 std::vector<std::string> dims, Node::Linear linear = Node::Linear::none);
  // Nothing where the axis is not wide. Over several axes: over those that are.
  void redistribute(std::string name, std::vector<std::string> reads,
                    std::vector<std::string> writes, const std::string& axes, Placement from,
                    Placement to, std::string by = {});
  void redistribute(std::string name, const std::string& tensor, const std::string& axes,
                    Placement from, Placement to) {
    redistribute(std::move(name), {tensor}, {tensor}, axes, std::move(from), std::move(to));
  }
  void add(Node node) { step_.sections.back().nodes.push_back(std::move(node)); }

 private:
  Placements wide(const Placements& placement) const;

  Step step_;
  std::map<std::string, int> sizes_;  // of the axes
  double element_bytes_ = 4;
};

// Errors: usage, for an axis of more ranks than the model has experts.
void check_experts(const std::string& model, int experts, int ranks);

}  // namespace unisono::step
