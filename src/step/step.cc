#include "step/step.h"

#include <algorithm>

namespace unisono::step {

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

bool has_name(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
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

}  // namespace unisono::step
