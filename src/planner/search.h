// Searches all layouts that a model, a cluster and a task allow, and ranks them.
#pragma once

#include <string>

#include "planner/ranking.h"
#include "planner/serving.h"
#include "planner/training.h"

namespace unisono::planner {

Ranking<TrainingEstimate> search_training(const ModelShape& shape, const TrainingTask& task,
                                          const Cluster& cluster,
                                          const SearchOptions& options = {});

struct ServingLimits {
  double first_token_s = 0;  // 0: no limit
  double token_s = 0;
};

// Ranks by tokens per second and device, among the layouts that keep the limits. A concurrency of 0
// is chosen for each layout: the most that memory and limits allow. If requests arrive at random,
// each layout has the fewest instances with which nine of ten requests keep the limits.
Ranking<ServingEstimate> search_serving(const ModelShape& shape, const ServingTask& task,
                                        const ServingLimits& limits, const Cluster& cluster,
                                        const SearchOptions& options = {});

// Returns one layout with its specified instances as a ranking; limits only determine the
// concurrency. REQUIRES: problem_of() is empty.
Ranking<ServingEstimate> rank_layout(const ModelShape& shape, const ServingLayout& layout,
                                     const ServingTask& task, const ServingLimits& limits,
                                     const Cluster& cluster);

// Names the part that causes most of the difference between the first and the second.
std::string reason(const TrainingEstimate& first, const TrainingEstimate& second);
std::string reason(const ServingEstimate& first, const ServingEstimate& second);

// Names the largest part of the step's time, which is the one to reduce first.
std::string binding(const TrainingEstimate& estimate);
std::string binding(const ServingEstimate& estimate);

}  // namespace unisono::planner
