// The ranks of a step: where each is on the axes, and which stages it has.
//
// A pipeline of two chains (DualPipe) has the model twice: two of its ranks hold the same stages,
// each for half of the microbatches. There the stage axis counts such pairs, and an axis of its
// own, `copy`, the two of a pair, as if the mesh had both. Groups are of the ranks of the mesh.
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
  // The step must outlive it. Errors: as of MeshShape::parse(). REQUIRES: the pipeline, if any,
  // fits the mesh.
  explicit StepRanks(const Step& step);

  int count() const { return mesh_.ranks(); }
  bool has_axis(std::string_view axis) const;
  // As those of MeshShape.
  int size(std::string_view axes) const;
  int coordinate(int rank, std::string_view axes) const;
  std::vector<int> group(int rank, std::string_view axes) const;
  const std::vector<std::string>& wide_axes() const { return wide_; }  // of more than one rank
  // Like the step's own find_tensor(), but faster. REQUIRES: the tensor exists.
  const Tensor& tensor(const std::string& name) const { return *tensors_.at(name); }

  int stages() const { return static_cast<int>(stage_place_.size()); }
  bool has_stage(int rank, int stage) const { return rank_at(rank, stage) == rank; }
  // The rank that has the stage and differs from `rank` along the stage axis alone.
  int rank_at(int rank, int stage) const {
    return rank_at_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(rank)];
  }
  // The stage to which a section sends; -1: to none.
  int sends_to(const Section& section) const;
  // The neighbours of each stage. REQUIRES: there is a pipeline, as for actions_of().
  const pipeline::Neighbours& around() const { return around_; }
  // The rank's actions in the order of the pipeline.
  const std::vector<pipeline::Action>& actions_of(int rank) const;
  // All that differ from it along the stage axis alone, itself among them.
  std::vector<int> pipeline_of(int rank) const;

 private:
  parallel::MeshShape mesh_;    // as it is given
  parallel::MeshShape places_;  // with `copy`, where that is an axis
  std::string stage_axis_;
  // An axis of the mesh: places that differ by its stride are neighbours along it.
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
  std::vector<int> stage_place_;           // of each stage, along the stage axis of the mesh
  std::vector<int> place_of_;              // of each rank, in places_
  std::vector<int> rank_of_;               // the other way round
};

}  // namespace unisono::step
