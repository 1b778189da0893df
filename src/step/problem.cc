#include "step/problem.h"

#include <algorithm>
#include <set>

#include "step/ranks.h"

namespace unisono::step {
namespace {

constexpr std::size_t kMostElements = std::size_t{1} << 40;
constexpr int kMostLayers = 100'000;

std::string problem_of_dims(const Step& step) {
  std::set<std::string> seen;
  for (const Dim& dim : step.dims) {
    if (dim.name.empty() || !seen.insert(dim.name).second) {
      return "two dimensions are named \"" + dim.name + "\", or one without a name";
    }
    if (dim.size < 1 || dim.size > kMostElements || dim.batch < 1 || dim.size % dim.batch != 0) {
      return "dimension " + dim.name + " has an invalid size";
    }
    if (!dim.like.empty() && step.find_dim(dim.like) == nullptr) {
      return "dimension " + dim.name + " is cut as " + dim.like + ", which does not exist";
    }
    if (dim.cut == Cut::key_value_heads && dim.like.empty()) {
      return "dimension " + dim.name + " does not name its heads";
    }
  }
  return {};
}

std::string problem_of_placements(const Step& step, const StepRanks& ranks,
                                  const std::vector<std::string>& dims,
                                  const Placements& placements) {
  for (const auto& [axis, placement] : placements) {
    if (!ranks.has_axis(axis)) {
      return "axis " + axis + " is not one of the mesh";
    }
    if (placement.kind == Placement::Kind::shard && !has_name(dims, placement.dim)) {
      return to_text(placement) + " cuts a dimension that the tensor does not have";
    }
  }
  return step.dims.empty() ? "it has no dimensions" : std::string();
}

std::string problem_of_node(const Step& step, const StepRanks& ranks, const Node& node) {
  for (const auto* names : {&node.reads, &node.writes}) {
    for (const std::string& name : *names) {
      if (step.find_tensor(name) == nullptr) {
        return "there is no tensor " + name;
      }
    }
  }
  for (const auto* names : {&node.pointwise, &node.summed}) {
    for (const std::string& name : *names) {
      if (step.find_dim(name) == nullptr) {
        return "there is no dimension " + name;
      }
    }
  }
  const bool passes = node.kind == Node::Kind::send || node.kind == Node::Kind::broadcast ||
                      node.kind == Node::Kind::sum_stages;
  if (node.writes.empty() || (passes && node.reads.size() != node.writes.size()) ||
      (node.kind != Node::Kind::compute && node.reads.size() < node.writes.size())) {
    return "its reads and writes do not match";
  }
  if (node.kind == Node::Kind::compute) {
    return {};
  }
  for (std::size_t k = 0; node.kind == Node::Kind::sum_stages && k < node.reads.size(); ++k) {
    if (node.reads[k] == node.writes[k]) {
      return "a sum of stages needs its own name, to distinguish it from one stage's tensor";
    }
  }
  if (passes) {
    return step.stage_axis.empty() ? "there is only one stage" : std::string();
  }
  for (const std::string& axis : axis_names(node.axes)) {
    if (!ranks.has_axis(axis)) {
      return "axis " + axis + " is not one of the mesh";
    }
  }
  return node.axes.empty() ? "it names no axis" : std::string();
}

// Returns true if two chains are one model and its copy, placed on the ranks in reverse order.
bool is_mirrored(const pipeline::Pipeline& pipeline) {
  const auto place_of = [&](int stage) {
    return pipeline.stage_rank[static_cast<std::size_t>(stage)];
  };
  const std::vector<int>& there = pipeline.chains[0].stages;
  const std::vector<int>& back = pipeline.chains[1].stages;
  bool is_right = pipeline.chains.size() == 2 && there.size() == back.size() &&
                  pipeline.chains[0].count == pipeline.chains[1].count && pipeline.ranks % 2 == 0;
  for (std::size_t i = 0; is_right && i < there.size(); ++i) {
    is_right = place_of(there[i]) + place_of(back[i]) == pipeline.ranks - 1;
  }
  return is_right;
}

std::string problem_of_pipeline(const Step& step) {
  if (!step.pipeline) {
    return {};
  }
  const auto mesh = parallel::MeshShape::parse(step.mesh);
  const auto& axes = mesh.axes();
  const auto has_axis = [&](const std::string& name) {
    return std::any_of(axes.begin(), axes.end(),
                       [&](const parallel::Axis& one) { return one.name == name; });
  };
  if (!has_axis(step.stage_axis) || mesh.size(step.stage_axis) != step.pipeline->ranks) {
    return "the pipeline has " + std::to_string(step.pipeline->ranks) +
           " ranks, but there is no stage axis of that size";
  }
  if (step.pipeline->chains.size() > 1 &&
      (!is_mirrored(*step.pipeline) || has_axis(kCopyAxis) || !mesh.folded().empty())) {
    return "the pipeline's chains are not a model and its mirrored copy, or the mesh has folded "
           "axes or an axis " +
           std::string(kCopyAxis);
  }
  return {};
}

// Checks the nodes of a pass, and the nodes outside of passes.
std::string problem_of_pass(const Step& step, const Section& section) {
  const bool is_pass = section.pass != StagePass::none;
  const bool is_of_all = section.stage == kAllStages;
  if (is_pass && (!step.pipeline || is_of_all)) {
    return "a pass must belong to one stage of a pipeline";
  }
  const bool may_send =
      !step.pipeline ||
      ((section.pass == StagePass::forward || section.pass == StagePass::backward_input) &&
       section.repeat == 1);
  for (const Node& node : section.nodes) {
    if (node.kind == Node::Kind::sum_stages && !is_of_all) {
      return node.name + ": sum_stages belongs into a section of all stages";
    }
    if ((node.kind == Node::Kind::send || node.kind == Node::Kind::broadcast) && is_of_all) {
      return node.name + ": only one stage can send, not all stages";
    }
    if (node.kind == Node::Kind::send && !may_send) {
      return node.name +
             ": with a pipeline, only forward passes and input-gradient passes can send";
    }
    for (const std::string& name : node.writes) {
      const Tensor* const tensor = step.find_tensor(name);
      if (is_pass && tensor != nullptr && tensor->kind != Tensor::Kind::activation) {
        return node.name + " writes " + name + " in a pass, once for each microbatch";
      }
    }
  }
  return {};
}

}  // namespace

std::string problem_of(const Step& step) {
  if (std::string problem = problem_of_pipeline(step); !problem.empty()) {
    return problem;
  }
  const StepRanks ranks(step);
  if (std::string problem = problem_of_dims(step); !problem.empty()) {
    return problem;
  }
  std::set<std::string> seen;
  for (const Tensor& tensor : step.tensors) {
    if (tensor.name.empty() || !seen.insert(tensor.name).second) {
      return "two tensors are named \"" + tensor.name + "\", or one without a name";
    }
    for (const std::string& dim : tensor.dims) {
      if (step.find_dim(dim) == nullptr) {
        return "tensor " + tensor.name + ": there is no dimension " + dim;
      }
    }
    if (std::string problem = problem_of_placements(step, ranks, tensor.dims, tensor.placement);
        !problem.empty()) {
      return "tensor " + tensor.name + ": " + problem;
    }
  }
  for (const Section& section : step.sections) {
    const std::string where = "section " + section.name;
    if (section.stage < kAllStages || section.stage >= ranks.stages()) {
      return where + " belongs to a stage that does not exist";
    }
    if (std::string problem = problem_of_pass(step, section); !problem.empty()) {
      return where + ": " + problem;
    }
    if (section.repeat < 1 || section.repeat > kMostLayers || section.first_layer < -1) {
      return where + " has an invalid number of layers";
    }
    for (const Node& node : section.nodes) {
      if (std::string problem = problem_of_node(step, ranks, node); !problem.empty()) {
        return where + ", " + node.name + ": " + problem;
      }
    }
  }
  for (const Step::Result& result : step.results) {
    if (step.find_tensor(result.tensor) == nullptr) {
      return "there is no tensor " + result.tensor;
    }
  }
  return {};
}

}  // namespace unisono::step
