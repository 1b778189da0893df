// Builds the forward pass of a training step: adds nodes to the step and records them, so that
// transpose.h can derive the backward pass.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "step/training_parts.h"

namespace unisono::step {

class Backward;

// A node with its original names, and the data that its backward pass needs.
struct Recorded {
  Node node = {};
  std::string weight = {};  // the weight that the node reads
  // The dimension in which this rank itself divided the weight, which all ranks hold whole.
  std::string own_part = {};
  bool keeps_result = false;  // its derivative follows from its result, as for a softmax
  // Adds the node's own backward pass, from the gradient of the first tensor that it writes. Empty:
  // the pass is derived.
  std::function<void(Backward&, const std::string& gradient)> backward = {};
};

// Tensors and weights have names within the part of the model; `prefix` precedes them in the step.
// "out" is the result of the part.
class Forward {
 public:
  using Names = std::vector<std::string>;

  Forward(TrainingParts& parts, std::string prefix, std::string out)
      : parts_(&parts), prefix_(std::move(prefix)), out_(std::move(out)) {}

  TrainingParts& parts() const { return *parts_; }
  StepBuilder& build() const { return parts_->build; }
  const std::string& prefix() const { return prefix_; }
  const std::vector<Recorded>& recorded() const { return recorded_; }
  std::string full(const std::string& name) const { return name == "out" ? out_ : prefix_ + name; }
  // Returns the step's tensor for this full name: an earlier tensor if no move was necessary.
  std::string real(const std::string& full_name) const;
  const Names& dims(const std::string& name) const;

  void make(const std::string& name, Names dims) {
    parts_->activation(full(name), std::move(dims));
  }
  // Adds y = x W with the given dimensions; creates y.
  void product(const std::string& node, const std::string& x, const std::string& weight,
               const std::string& y, Names dims);
  // Normalises each row of x, with a gain per element; creates y.
  void norm(const std::string& node, const std::string& x, const std::string& gain,
            const std::string& y);
  // Computes each element of the dimensions `over` separately; creates `write`.
  void pointwise(const std::string& node, const Names& reads, const std::string& write, Names dims,
                 Names over, Node::Linear linear = Node::Linear::none);
  void sum(const std::string& node, const Names& reads, const std::string& write);
  // The derivative of the last node follows from its result, which may be partial.
  void keep_result() { recorded_.back().keeps_result = true; }
  void compute(const Node& node);  // with names within the part
  void move(Node node);            // a dispatch or combine
  // Returns the same tensors with placement `to` along one axis: new tensors, or the same ones if
  // the axis is not wide.
  std::string moved(const std::string& node, const std::string& tensor, const std::string& made,
                    const std::string& axis, Placement from, Placement to);
  void redistribute(const std::string& node, const Names& tensors, const std::string& axis,
                    Placement from, Placement to, const std::string& by = {});
  // Enters the region that tp divides, in which each rank computes a summand of the gradient;
  // leave() ends it.
  void enter(const std::string& x) { enter(x, x); }
  void enter(const std::string& x, const std::string& made);
  void leave(const std::string& y);
  // Records nodes that were added separately: their inputs, outputs and backward pass.
  void own(Recorded recorded);

 private:
  Names full(Names names) const;
  Names real(Names full_names) const;
  void add(Recorded recorded);

  TrainingParts* parts_;
  std::string prefix_;
  std::string out_;
  std::vector<Recorded> recorded_;
  std::map<std::string, std::string> real_;
};

}  // namespace unisono::step
