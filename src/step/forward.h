// A forward pass of a training step: added to the step, and recorded, so that transpose.h derives
// its backward pass.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "step/training_parts.h"

namespace unisono::step {

class Backward;

// A node with the names that it was described with, and what its backward pass needs besides.
struct Recorded {
  Node node = {};
  std::string weight = {};  // the weight that it reads
  // The dimension of that weight that this rank cut itself, from one that all ranks have whole.
  std::string own_part = {};
  bool keeps_result = false;  // its derivative follows from its result, as that of a softmax does
  // Its own backward pass, from the gradient of the first tensor that it writes. Empty: derived.
  std::function<void(Backward&, const std::string& gradient)> backward = {};
};

// Tensors and weights go by their names within the part of the model: `prefix` stands before them
// in the step. "out" is the tensor that the part hands on.
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
  // The tensor of the step that has this full name: an earlier one where nothing had to move.
  std::string real(const std::string& full_name) const;
  const Names& dims(const std::string& name) const;

  void make(const std::string& name, Names dims) {
    parts_->activation(full(name), std::move(dims));
  }
  // y = x W, as the dimensions say; makes y.
  void product(const std::string& node, const std::string& x, const std::string& weight,
               const std::string& y, Names dims);
  // Each row of x by itself, with a gain for each of its elements; makes y.
  void norm(const std::string& node, const std::string& x, const std::string& gain,
            const std::string& y);
  // Computes each element of the dimensions `over` by itself; makes `write`.
  void pointwise(const std::string& node, const Names& reads, const std::string& write, Names dims,
                 Names over, Node::Linear linear = Node::Linear::none);
  void sum(const std::string& node, const Names& reads, const std::string& write);
  // The derivative of the last node follows from its result, and may be of a summand.
  void keep_result() { recorded_.back().keeps_result = true; }
  void compute(const Node& node);  // with names within the part
  void move(Node node);            // a dispatch or combine
  // The same tensors along one axis as `to` says: new ones, or themselves where it is not wide.
  std::string moved(const std::string& node, const std::string& tensor, const std::string& made,
                    const std::string& axis, Placement from, Placement to);
  void redistribute(const std::string& node, const Names& tensors, const std::string& axis,
                    Placement from, Placement to, const std::string& by = {});
  // Into what tp cuts, where each rank makes a summand of the gradient; and out of it.
  void enter(const std::string& x) { enter(x, x); }
  void enter(const std::string& x, const std::string& made);
  void leave(const std::string& y);
  // Records nodes that were added by themselves: what they read and write, and their backward pass.
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
