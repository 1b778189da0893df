#include "step/builder.h"

#include <algorithm>
#include <set>

#include "step/ranks.h"
#include "unisono/error.hpp"

namespace unisono::step {

StepBuilder::StepBuilder(std::string name, const parallel::MeshShape& mesh) {
  step_.name = std::move(name);
  step_.mesh = mesh.text();
  for (const parallel::Axis& axis : mesh.axes()) {
    sizes_[axis.name] = axis.size;
  }
}

void StepBuilder::pipeline(std::string stage_axis, pipeline::Pipeline pipeline) {
  step_.stage_axis = std::move(stage_axis);
  step_.pipeline = std::move(pipeline);
  const StepRanks ranks(step_);
  for (const std::string& axis : {step_.stage_axis, std::string(kCopyAxis)}) {
    sizes_[axis] = ranks.has_axis(axis) ? ranks.size(axis) : 1;
  }
}

int StepBuilder::size(const std::string& axis) const {
  const auto found = sizes_.find(axis);
  return found == sizes_.end() ? 1 : found->second;
}

bool StepBuilder::is_wide(const std::string& axes) const {
  const std::vector<std::string> names = axis_names(axes);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& axis) { return size(axis) > 1; });
}

bool StepBuilder::is_written(const std::string& tensor) const {
  const int stage = step_.sections.back().stage;
  return std::any_of(step_.sections.begin(), step_.sections.end(), [&](const Section& section) {
    return section.stage == stage &&
           std::any_of(section.nodes.begin(), section.nodes.end(), [&](const Node& node) {
             return std::find(node.writes.begin(), node.writes.end(), tensor) != node.writes.end();
           });
  });
}

Placements StepBuilder::wide(const Placements& placement) const {
  Placements kept;
  for (const auto& [axis, one] : placement) {
    if (is_wide(axis) && one.kind != Placement::Kind::replicate) {
      kept[axis] = one;
    }
  }
  return kept;
}

void StepBuilder::tensor(Tensor::Kind kind, std::string name, std::vector<std::string> dims,
                         const Placements& placement, bool is_layered) {
  Tensor made{.name = std::move(name),
              .kind = kind,
              .dims = std::move(dims),
              .element_bytes = element_bytes_,
              .is_layered = is_layered,
              .placement = wide(placement)};
  const Tensor* const known = step_.find_tensor(made.name);
  if (known == nullptr || *known != made) {
    step_.tensors.push_back(std::move(made));
  }
}

void StepBuilder::weight(std::string name, std::vector<std::string> dims,
                         const Placements& placement, bool is_layered) {
  tensor(Tensor::Kind::weight, std::move(name), std::move(dims), placement, is_layered);
}

void StepBuilder::section(std::string name, int stage, int first_layer, int repeat) {
  step_.sections.push_back({.name = std::move(name),
                            .stage = stage,
                            .first_layer = first_layer,
                            .repeat = repeat,
                            .nodes = {}});
}

void StepBuilder::compute_each(Node node) {
  std::set<std::string> others;
  for (const auto* names : {&node.reads, &node.writes}) {
    for (const std::string& name : *names) {
      for (const std::string& dim : step_.find_tensor(name)->dims) {
        const auto is_counted = [&node](const std::string& one) {
          return has_name(node.pointwise, one) || has_name(node.summed, one);
        };
        if (!is_counted(dim) && !is_counted(step_.find_dim(dim)->like)) {
          others.insert(dim);
        }
      }
    }
  }
  for (const std::string& dim : others) {
    node.flops /= static_cast<double>(step_.find_dim(dim)->size);
  }
  add(std::move(node));
}

void StepBuilder::product(std::string name, const std::string& x, const std::string& weight,
                          const std::string& y) {
  Node node{.kind = Node::Kind::compute,
            .name = std::move(name),
            .reads = {x, weight},
            .writes = {y},
            .linear = Node::Linear::each,
            .flops = 2};
  const std::vector<std::string>& kept = step_.find_tensor(y)->dims;
  node.pointwise = kept;
  for (const std::string& read : node.reads) {
    for (const std::string& dim : step_.find_tensor(read)->dims) {
      const auto is_dim = [&](const std::string& one) { return one == dim; };
      if (std::none_of(kept.begin(), kept.end(), is_dim) &&
          std::none_of(node.summed.begin(), node.summed.end(), is_dim)) {
        node.summed.push_back(dim);
      }
    }
  }
  add(std::move(node));
}

void StepBuilder::pointwise(std::string name, std::vector<std::string> reads,
                            const std::string& write, std::vector<std::string> dims,
                            Node::Linear linear) {
  add({.kind = Node::Kind::compute,
       .name = std::move(name),
       .reads = std::move(reads),
       .writes = {write},
       .pointwise = std::move(dims),
       .linear = linear});
}

void StepBuilder::redistribute(std::string name, std::vector<std::string> reads,
                               std::vector<std::string> writes, const std::string& axes,
                               Placement from, Placement to, std::string by) {
  std::string kept;
  for (const std::string& axis : axis_names(axes)) {
    if (is_wide(axis)) {
      kept += (kept.empty() ? "" : ",") + axis;
    }
  }
  if (!kept.empty()) {
    add({.kind = Node::Kind::redistribute,
         .name = std::move(name),
         .reads = std::move(reads),
         .writes = std::move(writes),
         .axes = std::move(kept),
         .from = std::move(from),
         .to = std::move(to),
         .by = std::move(by)});
  }
}

void check_experts(const std::string& model, int experts, int ranks) {
  if (ranks > 1 && experts == 0) {
    throw Error(ErrorCode::usage, model + " has no experts\nremove ep");
  }
  if (ranks > 1 && ranks > experts) {
    throw Error(ErrorCode::usage, model + " has " + std::to_string(experts) +
                                      " experts, but ep is " + std::to_string(ranks) +
                                      "\nuse a smaller ep");
  }
}

}  // namespace unisono::step
