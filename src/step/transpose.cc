#include "step/transpose.h"

#include <algorithm>
#include <iterator>

namespace unisono::step {
namespace {

using Names = std::vector<std::string>;

bool have_common(const Names& some, const Names& others) {
  return std::any_of(some.begin(), some.end(),
                     [&](const std::string& name) { return has_name(others, name); });
}

Names without(const Names& names, const Names& left_out) {
  Names rest;
  std::copy_if(names.begin(), names.end(), std::back_inserter(rest),
               [&](const std::string& name) { return !has_name(left_out, name); });
  return rest;
}

Names common(const Names& names, const Names& others) {
  return without(names, without(names, others));
}

}  // namespace

Backward::Backward(const Forward& forward, Weights when)
    : forward_(forward), build_(forward.build()), when_(when) {
  for (const Recorded& recorded : forward.recorded()) {
    for (const std::string& read : inputs_of(recorded)) {
      ++uses_[{read, version_[read]}];
    }
    for (const std::string& write : recorded.node.writes) {
      ++version_[write];
    }
  }
}

// Excludes the weight, which has a separate gradient, and inputs that only define destinations,
// which have none.
Names Backward::inputs_of(const Recorded& recorded) {
  Names inputs = recorded.node.reads;
  if (recorded.node.kind != Node::Kind::compute) {
    inputs.resize(recorded.node.writes.size());
  } else if (!recorded.weight.empty()) {
    inputs.resize(1);
  }
  return inputs;
}

void Backward::inputs() {
  const auto all = groups();
  for (auto group = all.rbegin(); group != all.rend(); ++group) {
    for (const Recorded* recorded : *group) {
      transpose(*recorded);
    }
  }
  Names left;
  for (const auto& [tensor, summands] : summands_) {
    left.push_back(tensor);
  }
  for (const std::string& tensor : left) {
    total(tensor);
  }
}

void Backward::weights() {
  for (const auto& [recorded, gradient] : weights_) {
    weight_gradient(*recorded, gradient);
  }
}

// Returns runs of nodes that do not depend on each other.
std::vector<std::vector<const Recorded*>> Backward::groups() const {
  std::vector<std::vector<const Recorded*>> all;
  Names read;
  Names written;
  for (const Recorded& recorded : forward_.recorded()) {
    const Node& node = recorded.node;
    if (all.empty() || have_common(node.reads, written) || have_common(node.writes, read) ||
        have_common(node.writes, written)) {
      all.emplace_back();
      read.clear();
      written.clear();
    }
    all.back().push_back(&recorded);
    read.insert(read.end(), node.reads.begin(), node.reads.end());
    written.insert(written.end(), node.writes.begin(), node.writes.end());
  }
  return all;
}

std::string Backward::short_name(const std::string& tensor) const {
  const std::string& prefix = forward_.prefix();
  return tensor.starts_with(prefix) ? tensor.substr(prefix.size()) : tensor;
}

const Names& Backward::dims(const std::string& tensor) const {
  return build_.step().find_tensor(forward_.real(tensor))->dims;
}

bool Backward::is_own(const std::string& tensor, const std::string& gradient) const {
  return gradient == "d " + tensor || gradient.starts_with("d " + tensor + " by ");
}

std::string Backward::make(const std::string& node, const std::string& tensor) {
  const auto uses = uses_.find({tensor, version_[tensor]});
  const bool is_only = uses == uses_.end() || uses->second == 1;
  std::string made = "d " + tensor + (is_only ? "" : " by " + node);
  build_.activation(made, dims(tensor));
  summands_[tensor].push_back(made);
  return made;
}

// Returns the sum of a tensor's gradients, or its only gradient; empty if there is none.
std::string Backward::total(const std::string& tensor) {
  const auto found = summands_.find(tensor);
  if (found == summands_.end()) {
    return {};
  }
  const Names summands = std::move(found->second);
  summands_.erase(found);
  if (summands.size() == 1) {
    return summands.front();
  }
  std::string sum = "d " + tensor;
  build_.activation(sum, dims(tensor));
  build_.pointwise("added", summands, sum, dims(tensor), Node::Linear::together);
  return sum;
}

void Backward::transpose(const Recorded& recorded) {
  const Node& node = recorded.node;
  Names gradients;
  for (const std::string& write : node.writes) {
    gradients.push_back(total(write));
    --version_[write];
  }
  const std::string& gradient = gradients.front();
  if (recorded.backward) {
    recorded.backward(*this, gradient);
  } else if (node.kind == Node::Kind::redistribute) {
    redistribute(recorded, gradients);
  } else if (node.kind != Node::Kind::compute || !node.renamed.empty()) {
    other_way(recorded, gradient);
  } else if (node.linear == Node::Linear::together) {
    together(recorded, gradient);
  } else if (node.linear == Node::Linear::none) {
    pointwise(recorded, gradient);
  } else if (recorded.weight.empty()) {
    each(recorded, gradient);
  } else {
    product(recorded, gradient);
  }
}

void Backward::product(const Recorded& recorded, const std::string& gradient) {
  const Node& node = recorded.node;
  build_.product("d " + short_name(node.reads[0]), gradient, node.reads[1],
                 make(node.name, node.reads[0]));
  if (when_ == Weights::with_inputs) {
    weight_gradient(recorded, gradient);
  } else {
    weights_.emplace_back(&recorded, gradient);
  }
}

// Sums over the dimensions of the rows that the weight lacks. If a rank holds only a part of such a
// dimension, its result is a summand.
void Backward::weight_gradient(const Recorded& recorded, const std::string& gradient) {
  const std::string& x = recorded.node.reads[0];
  const Names all = dims(recorded.weight);
  const auto called = called_.find(recorded.weight);
  const std::string made = called == called_.end() ? "d " + recorded.weight : called->second;
  build_.activation(made, all);
  Node node{.kind = Node::Kind::compute,
            .name = "gradient of " + recorded.weight,
            .reads = {forward_.real(x), gradient},
            .writes = {made},
            .pointwise = all,
            .summed = without(dims(x), all),
            .linear = Node::Linear::each,
            .flops = 2};
  if (!recorded.own_part.empty()) {
    std::erase(node.pointwise, recorded.own_part);
    node.summed.push_back(recorded.own_part);
  }
  build_.compute(std::move(node));
}

// The derivative follows from the node's inputs, or from its result; in the latter case it is
// linear.
void Backward::pointwise(const Recorded& recorded, const std::string& gradient) {
  const Node& node = recorded.node;
  for (const std::string& input : inputs_of(recorded)) {
    Names reads;
    for (const std::string& read : recorded.keeps_result ? node.writes : node.reads) {
      reads.push_back(forward_.real(read));
    }
    reads.push_back(gradient);
    build_.pointwise("d " + node.name, std::move(reads), make(node.name, input), node.pointwise,
                     recorded.keeps_result ? Node::Linear::each : Node::Linear::none);
  }
  if (!recorded.weight.empty()) {
    const std::string& x = node.reads.front();
    const std::string made = "d " + recorded.weight;
    build_.activation(made, dims(recorded.weight));
    build_.compute({.name = "gradient of " + recorded.weight,
                    .reads = {forward_.real(x), gradient},
                    .writes = {made},
                    .summed = without(dims(x), dims(recorded.weight))});
  }
}

// Multiplies the gradient by all other factors.
void Backward::each(const Recorded& recorded, const std::string& gradient) {
  const Node& node = recorded.node;
  for (const std::string& input : node.reads) {
    Names reads = {gradient};
    for (const std::string& other : without(node.reads, {input})) {
      reads.push_back(forward_.real(other));
    }
    build_.compute({.name = "d " + short_name(input),
                    .reads = std::move(reads),
                    .writes = {make(node.name, input)},
                    .pointwise = common(node.pointwise, dims(input)),
                    .summed = without(node.pointwise, dims(input)),
                    .linear = Node::Linear::each});
  }
}

// Summands have the gradient of their sum. An input with other dimensions takes its part of the
// gradient, or sums the gradient over the dimensions that it lacks.
void Backward::together(const Recorded& recorded, const std::string& gradient) {
  const Node& node = recorded.node;
  for (const std::string& input : node.reads) {
    if (dims(input) == dims(node.writes.front())) {
      start(input, gradient);
      continue;
    }
    build_.compute({.name = "d " + short_name(input),
                    .reads = {gradient},
                    .writes = {make(node.name, input)},
                    .pointwise = common(node.pointwise, dims(input)),
                    .summed = without(node.pointwise, dims(input)),
                    .linear = Node::Linear::together});
  }
}

// Adds the node in the opposite direction: renames dimensions back, or sends rows back to their
// ranks.
void Backward::other_way(const Recorded& recorded, const std::string& gradient) {
  Node node = recorded.node;
  node.name = "d " + node.name;
  std::map<std::string, std::string> back;
  for (const auto& [from, to] : node.renamed) {
    back[to] = from;
  }
  for (std::string& dim : node.pointwise) {
    const auto from = node.renamed.find(dim);
    const auto to = back.find(dim);
    dim = from != node.renamed.end() ? from->second : to != back.end() ? to->second : dim;
  }
  node.renamed = std::move(back);
  if (node.kind != Node::Kind::compute) {
    node.kind = node.kind == Node::Kind::dispatch ? Node::Kind::combine : Node::Kind::dispatch;
    std::swap(node.from, node.to);
  }
  node.writes = {make(recorded.node.name, node.reads.front())};
  node.reads.front() = gradient;
  build_.add(std::move(node));
}

// If a tensor was only moved in place, its gradient is moved in place too, unless others also use
// the gradient.
void Backward::redistribute(const Recorded& recorded, const Names& gradients) {
  using Kind = Placement::Kind;
  const Node& node = recorded.node;
  const bool passes = node.from.kind == Kind::partial && node.to.kind == Kind::replicate;
  if (passes || !build_.is_wide(node.axes)) {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      start(node.reads[i], gradients[i]);
    }
    return;
  }
  // A tensor that all ranks use has a summand of its gradient on each rank.
  const auto dual = [](const Placement& placement) {
    return placement.kind == Kind::shard     ? placement
           : placement.kind == Kind::partial ? replicate()
                                             : partial();
  };
  const Placement from = dual(node.to);
  const Placement to = node.from == node.to ? replicate() : dual(node.from);
  Names made;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const bool is_in_place = from.kind == Kind::partial && is_own(node.writes[i], gradients[i]);
    if (is_in_place) {
      start(node.reads[i], gradients[i]);
      made.push_back(gradients[i]);
    } else {
      made.push_back(make(node.name, node.reads[i]));
    }
  }
  build_.redistribute("d " + node.name, gradients, made, node.axes, from, to,
                      node.by == "ring" ? "ring_home" : "");
}

}  // namespace unisono::step
