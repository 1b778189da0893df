// Writes and simulates the step of an estimate.
#include <fmt/format.h>

#include <algorithm>

#include "cli/failure.h"
#include "cli/output_file.h"
#include "models/models.h"
#include "planner/step.h"

namespace unisono::cli {

void write_step(const ModelQuestion& question, const planner::TrainingTask& task,
                const planner::Layout& layout, const std::string& path) {
  const int count = static_cast<int>(std::min(microbatches(layout, task), 2.0 * layout.pp));
  const planner::Cluster cluster = at_level(question.cluster, question.levels(task).times(layout));
  write_output(path, to_json(make_step(question.shape, layout, task, cluster, count)));
}

void simulate_best(const ModelQuestion& question, const planner::TrainingTask& task, int count,
                   const Console& console, planner::Ranking<planner::TrainingEstimate>& ranking) {
  std::vector<planner::TrainingEstimate>& best = ranking.best;
  if (best.empty()) {
    return;
  }
  if (question.cluster.devices > planner::kMostStepRanks) {
    throw UsageError(fmt::format("--simulate plays at most {} devices, not {}",
                                 planner::kMostStepRanks, question.cluster.devices),
                     {}, "unisono help plan-model");
  }
  const auto end =
      best.begin() + std::min<std::ptrdiff_t>(count, static_cast<std::ptrdiff_t>(best.size()));
  const planner::Levels levels = question.levels(task);
  for (auto estimate = best.begin(); estimate != end; ++estimate) {
    console.progress(fmt::format("playing {}", text_of(estimate->layout)));
    estimate->simulated_s = simulated_step_s(
        question.shape, estimate->layout, task,
        at_level(question.cluster, levels.times(estimate->layout)), question.topology);
  }
  std::stable_sort(best.begin(), end,
                   [](const auto& a, const auto& b) { return a.simulated_s < b.simulated_s; });
}

}  // namespace unisono::cli
