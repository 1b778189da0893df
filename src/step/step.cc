#include "step/step.h"

#include <algorithm>
#include <limits>
#include <set>

#include "unisono/error.hpp"
#include "unisono/parallel/placement.hpp"
#include "unisono/parallel/tensor_parallel.hpp"

namespace unisono::step {
namespace {

constexpr std::size_t kMostElements = std::size_t{1} << 40;
constexpr int kMostLayers = 100'000;

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The parts of rows: sequences, places in them, and what is cut as it comes.
std::size_t rows_extent(const Step& step, const parallel::MeshShape& mesh, const Dim& dim,
                        const std::vector<std::string>& axes, int rank) {
  std::size_t sequences = dim.batch;
  int ranks = 1;
  int place = 0;
  for (const std::string& axis : axes) {
    if (has(step.data_axes, axis)) {
      sequences =
          parallel::shard_range(sequences, mesh.size(axis), mesh.coordinate(rank, axis)).count;
    } else if (has(step.context_axes, axis)) {
      place = place * mesh.size(axis) + mesh.coordinate(rank, axis);
      ranks *= mesh.size(axis);
    }
  }
  const std::size_t length = dim.size / dim.batch;
  std::size_t rows =
      sequences *
      (ranks == 1 ? length : parallel::context_positions(step.order, length, ranks, place).size());
  for (const std::string& axis : axes) {
    if (!has(step.data_axes, axis) && !has(step.context_axes, axis)) {
      rows = parallel::shard_range(rows, mesh.size(axis), mesh.coordinate(rank, axis)).count;
    }
  }
  return rows;
}

std::size_t head_extent(const Step& step, const parallel::MeshShape& mesh, const Dim& dim,
                        const std::vector<std::string>& axes, int rank) {
  // Where several axes cut heads, the last one is the outermost.
  int ranks = 1;
  int place = 0;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    place = place * mesh.size(*axis) + mesh.coordinate(rank, *axis);
    ranks *= mesh.size(*axis);
  }
  const bool is_key_value = dim.cut == Cut::key_value_heads;
  const Dim& heads = is_key_value ? *step.find_dim(dim.like) : dim;
  std::size_t key_value = heads.size;
  for (const Dim& other : step.dims) {
    key_value =
        other.cut == Cut::key_value_heads && other.like == heads.name ? other.size : key_value;
  }
  const parallel::HeadShare share = parallel::head_share(heads.size, key_value, ranks, place);
  return is_key_value ? share.key_value.count : share.query.count;
}

std::string problem_of_dims(const Step& step) {
  std::set<std::string> seen;
  for (const Dim& dim : step.dims) {
    if (dim.name.empty() || !seen.insert(dim.name).second) {
      return "there are two dimensions \"" + dim.name + "\", or one without a name";
    }
    if (dim.size < 1 || dim.size > kMostElements || dim.batch < 1 || dim.size % dim.batch != 0) {
      return "dimension " + dim.name + " has a size that cannot be";
    }
    if (!dim.like.empty() && step.find_dim(dim.like) == nullptr) {
      return "dimension " + dim.name + " is cut as " + dim.like + ", which there is not";
    }
    if (dim.cut == Cut::key_value_heads && dim.like.empty()) {
      return "dimension " + dim.name + " does not say which heads it belongs to";
    }
  }
  return {};
}

std::string problem_of_placements(const Step& step, const parallel::MeshShape& mesh,
                                  const std::vector<std::string>& dims,
                                  const Placements& placements) {
  for (const auto& [axis, placement] : placements) {
    const auto& axes = mesh.axes();
    if (std::none_of(axes.begin(), axes.end(),
                     [&](const parallel::Axis& one) { return one.name == axis; })) {
      return "axis " + axis + " is not one of the mesh";
    }
    if (placement.kind == Placement::Kind::shard && !has(dims, placement.dim)) {
      return to_text(placement) + " cuts a dimension that it does not have";
    }
  }
  return step.dims.empty() ? "it has no dimensions" : std::string();
}

std::string problem_of_node(const Step& step, const parallel::MeshShape& mesh, const Node& node) {
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
  const bool passes = node.kind == Node::Kind::send || node.kind == Node::Kind::broadcast;
  if (node.writes.empty() || (passes && node.reads.size() != node.writes.size()) ||
      (node.kind != Node::Kind::compute && node.reads.size() < node.writes.size())) {
    return "what it reads and what it writes do not go together";
  }
  if (node.kind == Node::Kind::compute) {
    return {};
  }
  if ((node.kind == Node::Kind::send || node.kind == Node::Kind::broadcast)) {
    return step.stage_axis.empty() ? "there is one stage alone" : std::string();
  }
  for (const std::string& axis : axis_names(node.axes)) {
    const auto& axes = mesh.axes();
    if (std::none_of(axes.begin(), axes.end(),
                     [&](const parallel::Axis& one) { return one.name == axis; })) {
      return "axis " + axis + " is not one of the mesh";
    }
  }
  return node.axes.empty() ? "it says no axis" : std::string();
}

}  // namespace

std::string to_text(const Placement& placement) {
  switch (placement.kind) {
    case Placement::Kind::replicate:
      return "replicate";
    case Placement::Kind::shard:
      return "shard(" + placement.dim + ")";
    case Placement::Kind::partial:
      break;
  }
  return "partial";
}

int Step::stages() const {
  return stage_axis.empty() ? 1 : parallel::MeshShape::parse(mesh).size(stage_axis);
}

const Dim* Step::find_dim(std::string_view dim) const {
  const auto found =
      std::find_if(dims.begin(), dims.end(), [&](const Dim& one) { return one.name == dim; });
  return found == dims.end() ? nullptr : &*found;
}

const Tensor* Step::find_tensor(std::string_view tensor) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const Tensor& one) { return one.name == tensor; });
  return found == tensors.end() ? nullptr : &*found;
}

std::string canonical(const Step& step, const std::string& dim) {
  const Dim* const found = step.find_dim(dim);
  return found == nullptr || found->like.empty() ? dim : found->like;
}

Placement placement_on(const Placements& placements, const std::string& axis) {
  const auto found = placements.find(axis);
  return found == placements.end() ? Placement{} : found->second;
}

std::vector<std::string> axis_names(std::string_view axes) {
  std::vector<std::string> names;
  while (!axes.empty()) {
    const std::size_t end = std::min(axes.find(','), axes.size());
    names.emplace_back(axes.substr(0, end));
    axes.remove_prefix(std::min(end + 1, axes.size()));
  }
  return names;
}

std::vector<std::string> wide_axes(const parallel::MeshShape& mesh) {
  std::vector<std::string> names;
  for (const parallel::Axis& axis : mesh.axes()) {
    if (axis.size > 1) {
      names.push_back(axis.name);
    }
  }
  return names;
}

std::size_t extent(const Step& step, const parallel::MeshShape& mesh, const Dim& dim,
                   const Placements& placements, int rank) {
  std::vector<std::string> axes;
  for (const std::string& axis : wide_axes(mesh)) {
    if (placement_on(placements, axis) == shard(dim.name)) {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) {
    return dim.size;
  }
  switch (dim.cut) {
    case Cut::rows:
      return rows_extent(step, mesh, dim, axes, rank);
    case Cut::heads:
    case Cut::key_value_heads:
      return head_extent(step, mesh, dim, axes, rank);
    case Cut::even:
      break;
  }
  std::size_t size = dim.size;
  for (const std::string& axis : axes) {
    size = parallel::shard_range(size, mesh.size(axis), mesh.coordinate(rank, axis)).count;
  }
  return size;
}

double local_bytes(const Step& step, const parallel::MeshShape& mesh, const Tensor& tensor,
                   const Placements& placements, int rank) {
  double bytes = tensor.element_bytes;
  for (const std::string& name : tensor.dims) {
    bytes *= static_cast<double>(extent(step, mesh, *step.find_dim(name), placements, rank));
  }
  return bytes;
}

std::string problem_of(const Step& step) {
  const auto mesh = parallel::MeshShape::parse(step.mesh);
  if (std::string problem = problem_of_dims(step); !problem.empty()) {
    return problem;
  }
  std::set<std::string> seen;
  for (const Tensor& tensor : step.tensors) {
    if (tensor.name.empty() || !seen.insert(tensor.name).second) {
      return "there are two tensors \"" + tensor.name + "\", or one without a name";
    }
    for (const std::string& dim : tensor.dims) {
      if (step.find_dim(dim) == nullptr) {
        return "tensor " + tensor.name + ": there is no dimension " + dim;
      }
    }
    if (std::string problem = problem_of_placements(step, mesh, tensor.dims, tensor.placement);
        !problem.empty()) {
      return "tensor " + tensor.name + ": " + problem;
    }
  }
  for (const Section& section : step.sections) {
    const std::string where = "section " + section.name;
    if (section.stage < 0 || section.stage >= step.stages()) {
      return where + " is of a stage that there is not";
    }
    if (section.repeat < 1 || section.repeat > kMostLayers || section.first_layer < -1) {
      return where + " has a number of layers that cannot be";
    }
    for (const Node& node : section.nodes) {
      if (std::string problem = problem_of_node(step, mesh, node); !problem.empty()) {
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
