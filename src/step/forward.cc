#include "step/forward.h"

#include <algorithm>

namespace unisono::step {

std::string Forward::real(const std::string& full_name) const {
  const auto found = real_.find(full_name);
  return found == real_.end() ? full_name : real(found->second);
}

Forward::Names Forward::full(Names names) const {
  std::transform(names.begin(), names.end(), names.begin(),
                 [&](const std::string& name) { return full(name); });
  return names;
}

Forward::Names Forward::real(Names full_names) const {
  std::transform(full_names.begin(), full_names.end(), full_names.begin(),
                 [&](const std::string& name) { return real(name); });
  return full_names;
}

const Forward::Names& Forward::dims(const std::string& name) const {
  return build().step().find_tensor(real(full(name)))->dims;
}

// The step itself never contains a tensor that is only another name of an earlier one.
void Forward::add(Recorded recorded) {
  Node node = recorded.node;
  node.reads = real(std::move(node.reads));
  build().add(std::move(node));
  recorded_.push_back(std::move(recorded));
}

void Forward::own(Recorded recorded) {
  recorded.node.reads = full(std::move(recorded.node.reads));
  recorded.node.writes = full(std::move(recorded.node.writes));
  recorded_.push_back(std::move(recorded));
}

// If several ranks of tp use one key-value head, its weights are replicated on all of them, and
// each rank uses the rows of its own heads.
void Forward::product(const std::string& node, const std::string& x, const std::string& weight,
                      const std::string& y, Names dims) {
  make(y, std::move(dims));
  Recorded recorded{.weight = full(weight)};
  std::string used = recorded.weight;
  if (parts_->shares_keys && has_name(this->dims(weight), "kv_heads")) {
    recorded.own_part = "kv_heads";
    used = parts_->moved("own heads", used, used + " here", "tp", replicate(), shard("kv_heads"));
  }
  build().product(node, real(full(x)), used, full(y));
  recorded.node = build().step().sections.back().nodes.back();
  recorded.node.reads.front() = full(x);
  recorded_.push_back(std::move(recorded));
}

void Forward::norm(const std::string& node, const std::string& x, const std::string& gain,
                   const std::string& y) {
  Names rows = dims(x);
  make(y, rows);
  rows.pop_back();
  add({.node = {.name = node,
                .reads = {full(x), full(gain)},
                .writes = {full(y)},
                .pointwise = std::move(rows)},
       .weight = full(gain)});
}

void Forward::pointwise(const std::string& node, const Names& reads, const std::string& write,
                        Names dims, Names over, Node::Linear linear) {
  make(write, std::move(dims));
  compute({.name = node,
           .reads = reads,
           .writes = {write},
           .pointwise = std::move(over),
           .linear = linear});
}

void Forward::sum(const std::string& node, const Names& reads, const std::string& write) {
  const Names all = dims(reads.front());
  pointwise(node, reads, write, all, all, Node::Linear::together);
}

void Forward::compute(const Node& node) {
  Recorded recorded{.node = node};
  recorded.node.reads = full(node.reads);
  recorded.node.writes = full(node.writes);
  add(std::move(recorded));
}

void Forward::move(Node node) {
  compute(node);
}

std::string Forward::moved(const std::string& node, const std::string& tensor,
                           const std::string& made, const std::string& axis, Placement from,
                           Placement to) {
  if (!build().is_wide(axis)) {
    return tensor;
  }
  make(made, dims(tensor));
  compute({.kind = Node::Kind::redistribute,
           .name = node,
           .reads = {tensor},
           .writes = {made},
           .axes = axis,
           .from = std::move(from),
           .to = std::move(to)});
  return made;
}

void Forward::redistribute(const std::string& node, const Names& tensors, const std::string& axis,
                           Placement from, Placement to, const std::string& by) {
  if (build().is_wide(axis)) {
    compute({.kind = Node::Kind::redistribute,
             .name = node,
             .reads = tensors,
             .writes = tensors,
             .axes = axis,
             .from = std::move(from),
             .to = std::move(to),
             .by = by});
  }
}

// Without sequence parallelism nothing moves on entry: the ranks have whole rows.
void Forward::enter(const std::string& x, const std::string& made) {
  const bool is_cut = parts_->task.sequence && build().is_wide("tp");
  Recorded recorded{.node = {.kind = Node::Kind::redistribute,
                             .name = "rows gathered",
                             .reads = {full(x)},
                             .writes = {full(made)},
                             .axes = "tp",
                             .from = is_cut ? shard("places") : replicate(),
                             .to = replicate()}};
  if (!is_cut) {
    if (made != x) {
      real_[full(made)] = full(x);
    }
    recorded_.push_back(std::move(recorded));
    return;
  }
  if (made != x) {
    make(made, dims(x));
  }
  add(std::move(recorded));
}

void Forward::leave(const std::string& y) {
  redistribute("summed", {y}, "tp", partial(),
               parts_->task.sequence ? shard("places") : replicate());
}

}  // namespace unisono::step
