// All layouts that a model, a cluster and a task allow, ranked.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/serving.h"
#include "planner/training.h"

namespace unisono::planner {

class Levels;

// Why layouts were refused, and how many.
struct Refusal {
  std::string why = {};
  std::int64_t layouts = 0;
};

template <typename Estimate>
struct Ranking {
  std::vector<Estimate> best = {};  // fastest first
  std::int64_t fitting = 0;
  std::int64_t tried = 0;
  std::vector<Refusal> refused = {};  // most layouts first
  double least_missing_bytes = 0;     // with nothing that fits: of the layout that misses least
  std::string least_missing = {};     // that layout
  // The one that misses limits of time least, of those that memory allows and these do not.
  std::optional<Estimate> nearest = {};
};

struct SearchOptions {
  std::size_t most = 10;  // kept
  bool tries_uly = true;
  bool tries_offload = false;      // to the host's memory, where nothing else fits
  const Levels* levels = nullptr;  // of training; null: the formula alone
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

Ranking<TrainingEstimate> search_training(const ModelShape& shape, const TrainingTask& task,
                                          const Cluster& cluster,
                                          const SearchOptions& options = {});

struct ServingLimits {
  double first_token_s = 0;  // 0: none
  double token_s = 0;
};

// By tokens a second and device, among the layouts that keep the limits. A concurrency of 0 is
// chosen for each layout: the most that memory and limits allow.
Ranking<ServingEstimate> search_serving(const ModelShape& shape, const ServingTask& task,
                                        const ServingLimits& limits, const Cluster& cluster,
                                        const SearchOptions& options = {});

// Why the first is before the second: the part that makes the most of the difference.
std::string reason(const TrainingEstimate& first, const TrainingEstimate& second);
std::string reason(const ServingEstimate& first, const ServingEstimate& second);

// What the step's time is mostly made of: what to change to make it shorter.
std::string binding(const TrainingEstimate& estimate);
std::string binding(const ServingEstimate& estimate);

}  // namespace unisono::planner
