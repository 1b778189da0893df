#include "step/ranks.h"

#include <algorithm>
#include <numeric>

namespace unisono::step {
namespace {

bool has_copies(const Step& step) {
  return step.pipeline && step.pipeline->chains.size() > 1;
}

// Returns the axes, with the stage axis divided into `copy` and the pairs.
std::string with_copies(const Step& step, const parallel::MeshShape& mesh) {
  std::string text;
  for (const parallel::Axis& axis : mesh.axes()) {
    text += text.empty() ? "" : ",";
    text += axis.name == step.stage_axis
                ? std::string(kCopyAxis) + "=2," + axis.name + "=" + std::to_string(axis.size / 2)
                : axis.name + "=" + std::to_string(axis.size);
  }
  return text;
}

}  // namespace

StepRanks::StepRanks(const Step& step)
    : mesh_(parallel::MeshShape::parse(step.mesh)),
      places_(has_copies(step) ? parallel::MeshShape::parse(with_copies(step, mesh_)) : mesh_),
      stage_axis_(step.stage_axis),
      step_(step) {
  if (step.pipeline) {
    stage_place_ = step.pipeline->stage_rank;
    around_ = neighbours(*step.pipeline);
  } else {
    stage_place_.resize(
        static_cast<std::size_t>(stage_axis_.empty() ? 1 : mesh_.size(stage_axis_)));
    std::iota(stage_place_.begin(), stage_place_.end(), 0);
  }
  for (const Tensor& tensor : step.tensors) {
    tensors_.emplace(tensor.name, &tensor);
  }
  int stride = count();
  for (const parallel::Axis& axis : places_.axes()) {
    stride /= axis.size;
    along_.push_back({.name = axis.name, .size = axis.size, .stride = stride});
    if (axis.size > 1) {
      wide_.push_back(axis.name);
    }
  }
  for (const int along : stage_place_) {
    std::vector<int>& ranks = rank_at_.emplace_back();
    for (int rank = 0; rank < count(); ++rank) {
      ranks.push_back(stage_axis_.empty()
                          ? rank
                          : mesh_.group(rank, stage_axis_)[static_cast<std::size_t>(along)]);
    }
  }
  place_of_.resize(static_cast<std::size_t>(count()));
  std::iota(place_of_.begin(), place_of_.end(), 0);
  rank_of_ = place_of_;
  if (!has_copies(step)) {
    return;
  }
  // A pair consists of the ranks that are equally far from the two ends of the pipeline. The second
  // rank of a pair counts its place from the end.
  for (int place = 0; place < count(); ++place) {
    const int pair = places_.coordinate(place, stage_axis_);
    const int along =
        places_.coordinate(place, kCopyAxis) == 0 ? pair : mesh_.size(stage_axis_) - 1 - pair;
    // Except for the stage axis, both meshes have the same coordinates in the same order.
    const int rank = mesh_.group(place, stage_axis_)[static_cast<std::size_t>(along)];
    place_of_[static_cast<std::size_t>(rank)] = place;
    rank_of_[static_cast<std::size_t>(place)] = rank;
  }
}

bool StepRanks::has_axis(std::string_view axis) const {
  const auto& axes = places_.axes();
  return std::any_of(axes.begin(), axes.end(),
                     [&](const parallel::Axis& one) { return one.name == axis; });
}

const StepRanks::Along* StepRanks::find_along(std::string_view axis) const {
  const auto found = std::find_if(along_.begin(), along_.end(),
                                  [&](const Along& one) { return one.name == axis; });
  return found == along_.end() ? nullptr : &*found;
}

// Most calls are about one axis, and parsing a text of axes is slow.
int StepRanks::size(std::string_view axes) const {
  const Along* const along = find_along(axes);
  return along != nullptr ? along->size : places_.size(axes);
}

int StepRanks::coordinate(int rank, std::string_view axes) const {
  const int place = place_of_[static_cast<std::size_t>(rank)];
  const Along* const along = find_along(axes);
  return along != nullptr ? place / along->stride % along->size : places_.coordinate(place, axes);
}

std::vector<int> StepRanks::group(int rank, std::string_view axes) const {
  std::vector<int> group = places_.group(place_of_[static_cast<std::size_t>(rank)], axes);
  for (int& member : group) {
    member = rank_of_[static_cast<std::size_t>(member)];
  }
  return group;
}

int StepRanks::sends_to(const Section& section) const {
  if (step_.pipeline) {
    const bool is_back = section.pass == StagePass::backward_input;
    return (is_back ? around_.before : around_.next)[static_cast<std::size_t>(section.stage)];
  }
  return section.stage + 1 < stages() ? section.stage + 1 : -1;
}

const std::vector<pipeline::Action>& StepRanks::actions_of(int rank) const {
  return step_.pipeline->actions[static_cast<std::size_t>(mesh_.coordinate(rank, stage_axis_))];
}

std::vector<int> StepRanks::pipeline_of(int rank) const {
  return stage_axis_.empty() ? std::vector<int>{rank} : mesh_.group(rank, stage_axis_);
}

}  // namespace unisono::step
