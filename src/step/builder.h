// Builds a step: adds tensors and nodes, and ignores axes that the mesh lacks.
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

  // Call it before any function that depends on the axes. The pipeline must fit the stage axis.
  void pipeline(std::string stage_axis, pipeline::Pipeline pipeline);
  // Returns true if one of the axes has more than one rank.
  bool is_wide(const std::string& axes) const;
  int size(const std::string& axis) const;
  // Returns true if a node of the last section's stage writes the tensor.
  bool is_written(const std::string& tensor) const;
  Step take() { return std::move(step_); }
  Step& step() { return step_; }
  const Step& step() const { return step_; }

  void dim(Dim dim) { step_.dims.push_back(std::move(dim)); }
  // Omits placements along axes that the mesh lacks, and does nothing for tensors that exist
  // already. Adds a tensor that exists with another placement again, which problem_of() then
  // reports.
  void weight(std::string name, std::vector<std::string> dims, const Placements& placement,
              bool is_layered);
  void tensor(Tensor::Kind kind, std::string name, std::vector<std::string> dims,
              const Placements& placement = {}, bool is_layered = false);
  void activation(std::string name, std::vector<std::string> dims) {
    tensor(Tensor::Kind::activation, std::move(name), std::move(dims));
  }
  void element_bytes(double bytes) { element_bytes_ = bytes; }

  void section(std::string name, int stage, int first_layer = -1, int repeat = 1);
  void pass(StagePass pass) {
    step_.sections.back().pass = pass;
  }  // sets the pass of the last section
  void compute(Node node) { add(std::move(node)); }
  // Like compute(), with flops per element of the pointwise and summed dimensions only.
  void compute_each(Node node);
  // Adds y = x W: pointwise in the dimensions of y, summed over all others. Counts 2 flops per
  // element.
  void product(std::string name, const std::string& x, const std::string& weight,
               const std::string& y);
  // Adds a node that computes each element of `dims` separately.
  void pointwise(std::string name, std::vector<std::string> reads, const std::string& write,
                 std::vector<std::string> dims, Node::Linear linear = Node::Linear::none);
  // Does nothing if the axis is not wide. With several axes, uses those that are wide.
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
  std::map<std::string, int> sizes_;  // by axis
  double element_bytes_ = 4;
};

// Errors: usage if an axis has more ranks than the model has experts.
void check_experts(const std::string& model, int experts, int ranks);

}  // namespace unisono::step
