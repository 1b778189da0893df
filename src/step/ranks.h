// The ranks of a step: their places on the axes, and their stages.
//
// A pipeline of two chains (DualPipe) has the model twice: two ranks hold the same stages, each for
// half of the microbatches. In this case the stage axis counts such pairs of ranks. A separate axis
// `copy` distinguishes the two ranks of a pair, as if the mesh had both axes. Groups consist of
// ranks of the mesh.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "step/step.h"

namespace unisono::step {

inline constexpr const char* kCopyAxis = "copy";

class StepRanks {
 public:
  // The step must outlive it. Errors: those of MeshShape::parse(). REQUIRES: the pipeline, if any,
  // fits the mesh.
  explicit StepRanks(const Step& step);

  int count() const { return mesh_.ranks(); }
  bool has_axis(std::string_view axis) const;
  // Like the functions of MeshShape.
  int size(std::string_view axes) const;
  int coordinate(int rank, std::string_view axes) const;
  std::vector<int> group(int rank, std::string_view axes) const;
  // The axes with more than one rank.
  const std::vector<std::string>& wide_axes() const { return wide_; }
  // Like the step's own find_tensor(), but faster. REQUIRES: the tensor exists.
  const Tensor& tensor(const std::string& name) const { return *tensors_.at(name); }

  int stages() const { return static_cast<int>(stage_place_.size()); }
  bool has_stage(int rank, int stage) const { return rank_at(rank, stage) == rank; }
  // Returns the rank that has the stage and differs from `rank` only along the stage axis.
  int rank_at(int rank, int stage) const {
    return rank_at_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(rank)];
  }
  // Returns the stage to which a section sends; -1 if there is none.
  int sends_to(const Section& section) const;
  // Returns the neighbours of each stage. REQUIRES: there is a pipeline, as for actions_of().
  const pipeline::Neighbours& around() const { return around_; }
  // Returns the rank's actions in the order of the pipeline.
  const std::vector<pipeline::Action>& actions_of(int rank) const;
  // Returns all ranks that differ from this rank only along the stage axis, including itself.
  std::vector<int> pipeline_of(int rank) const;

 private:
  parallel::MeshShape mesh_;    // as specified
  parallel::MeshShape places_;  // with the axis `copy`, if there is one
  std::string stage_axis_;
  // An axis of the mesh: places whose numbers differ by its stride are neighbours along it.
  struct Along {
    std::string name = {};
    int size = 1;
    int stride = 1;
  };
  const Along* find_along(std::string_view axis) const;

  const Step& step_;
  std::vector<Along> along_;
  std::vector<std::string> wide_;
  std::unordered_map<std::string_view, const Tensor*> tensors_;
  pipeline::Neighbours around_ = {};
  std::vector<std::vector<int>> rank_at_;  // by stage and rank
  std::vector<int> stage_place_;           // by stage: coordinate on the stage axis of the mesh
  std::vector<int> place_of_;              // by rank: place in places_
  std::vector<int> rank_of_;               // by place: rank
};

}  // namespace unisono::step
