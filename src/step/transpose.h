// Derives the backward pass by transposing the forward pass: a product becomes two products, a
// redistribution its conjugate, and a pointwise node one pointwise node per input.
//
//   forward                       backward
//   y = x W                       dx = dy W', and dW = x' dy with the weights
//   y = x + z                     dx and dz are dy itself
//   partial -> replicate          nothing: each rank has the gradient of the sum
//   partial -> shard              shard -> replicate
//   shard -> replicate            partial -> shard: each rank contributes a summand
//   shard -> shard                the reverse
//   replicate, used by parts      partial -> replicate
//   ring                          ring_home
//   dispatch, combine             combine, dispatch
//
// Tensors keep their names: the gradient of `q` is `d q`, and summands of it from several nodes are
// `d q by NODE`. Nodes that do not depend on each other keep the order of the forward pass.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "step/forward.h"

namespace unisono::step {

class Backward {
 public:
  enum class Weights : std::uint8_t { with_inputs, behind };

  // The forward pass must outlive it.
  explicit Backward(const Forward& forward, Weights when = Weights::behind);
  const Forward& forward() const { return forward_; }

  // Sets the gradient from which the pass starts. Both names are names in the step.
  void start(const std::string& tensor, const std::string& gradient) {
    summands_[tensor].push_back(gradient);
  }
  // Sets the name of a weight's gradient, for a weight that also has another gradient.
  void call_weight(const std::string& weight, const std::string& gradient) {
    called_[weight] = gradient;
  }
  // Adds the gradients of all inputs, and those of gains, to the last section of the step.
  void inputs();
  // Adds the gradients of the weights of products. REQUIRES: inputs().
  void weights();

  // For nodes with their own backward pass: creates the gradient of a tensor that the node reads.
  std::string make(const std::string& node, const std::string& tensor);

 private:
  using Names = std::vector<std::string>;

  static Names inputs_of(const Recorded& recorded);
  std::vector<std::vector<const Recorded*>> groups() const;
  std::string short_name(const std::string& tensor) const;
  const Names& dims(const std::string& tensor) const;
  std::string total(const std::string& tensor);
  bool is_own(const std::string& tensor, const std::string& gradient) const;

  void transpose(const Recorded& recorded);
  void product(const Recorded& recorded, const std::string& gradient);
  void weight_gradient(const Recorded& recorded, const std::string& gradient);
  void pointwise(const Recorded& recorded, const std::string& gradient);
  void each(const Recorded& recorded, const std::string& gradient);
  void together(const Recorded& recorded, const std::string& gradient);
  void other_way(const Recorded& recorded, const std::string& gradient);
  void redistribute(const Recorded& recorded, const Names& gradients);

  const Forward& forward_;
  StepBuilder& build_;
  Weights when_;
  std::map<std::string, Names> summands_;
  std::map<std::string, std::string> called_;
  std::map<std::string, int> version_;               // by tensor: version of a tensor that is moved
                                                     // in place
  std::map<std::pair<std::string, int>, int> uses_;  // by tensor and version: number of nodes that
                                                     // read it
  std::vector<std::pair<const Recorded*, std::string>> weights_;  // products whose weight gradients
                                                                  // are still due, with their
                                                                  // gradients
};

}  // namespace unisono::step
