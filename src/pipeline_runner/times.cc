// Collects the times of a step on all ranks, and compares them with the player's prediction.
#include <algorithm>
#include <cstring>
#include <map>

#include "base/json_text.h"
#include "base/quantile.h"
#include "pipeline/json.h"
#include "pipeline/run.h"
#include "pipeline_runner/runner.h"
#include "unisono/error.hpp"

namespace unisono::parallel::detail {
namespace {

using pipeline::ActionKind;
using Spans = std::vector<std::vector<pipeline::Span>>;

// Sets the costs of each stage to the medians of its computations. If the schedule has only B, it
// is divided equally between I and W.
void fit_costs(pipeline::Pipeline& plan, const Spans& spans) {
  std::vector<std::map<ActionKind, std::vector<double>>> taken(plan.stage_rank.size());
  for (std::size_t rank = 0; rank < spans.size(); ++rank) {
    for (std::size_t i = 0; i < spans[rank].size(); ++i) {
      const pipeline::Action& action = plan.actions[rank][i];
      if (is_compute(action.kind)) {
        taken[static_cast<std::size_t>(action.stage)][action.kind].push_back(spans[rank][i].end -
                                                                             spans[rank][i].start);
      }
    }
  }
  for (std::size_t stage = 0; stage < taken.size(); ++stage) {
    auto& of = taken[stage];
    plan.costs.forward[stage] = median(of[ActionKind::forward]);
    plan.costs.input[stage] = median(of[ActionKind::backward_input]);
    plan.costs.weight[stage] = median(of[ActionKind::backward_weight]);
    if (const double both = median(of[ActionKind::backward]); both > 0) {
      const double input = plan.costs.input[stage];
      plan.costs.input[stage] = input > 0 ? std::min(input, both) : both / 2;
      plan.costs.weight[stage] = both - plan.costs.input[stage];
    }
    plan.costs.transfer[stage] = 0;
  }
}

double makespan(const pipeline::Pipeline& plan, const Spans& spans) {
  double last = 0;
  for (std::size_t rank = 0; rank < spans.size(); ++rank) {
    for (std::size_t i = 0; i < spans[rank].size(); ++i) {
      if (is_compute(plan.actions[rank][i].kind)) {
        last = std::max(last, spans[rank][i].end);
      }
    }
  }
  return last;
}

std::string spans_json(const pipeline::Pipeline& plan, const Spans& spans) {
  std::string text = "[";
  for (std::size_t rank = 0; rank < spans.size(); ++rank) {
    text += rank == 0 ? "\n  [" : ",\n  [";
    for (std::size_t i = 0; i < spans[rank].size(); ++i) {
      text += (i == 0 ? "{\"action\": " : ",\n   {\"action\": ") +
              json_string(to_string(plan.actions[rank][i])) +
              ", \"start\": " + json_number(spans[rank][i].start) +
              ", \"end\": " + json_number(spans[rank][i].end) + "}";
    }
    text += "]";
  }
  return text + "]";
}

}  // namespace

std::string PipelineRunner::times_json() {
  expect_ready();
  const std::vector<ActionTime> mine = times();
  std::vector<double> numbers;
  for (const ActionTime& time : mine) {
    numbers.push_back(time.start_us);
    numbers.push_back(time.end_us);
  }
  std::vector<std::size_t> counts;
  std::size_t all = 0;
  for (const auto& actions : plan().actions) {
    counts.push_back(2 * actions.size());
    all += counts.back();
  }
  std::vector<double> gathered(all);
  comm_.all_gather_v(numbers, gathered, counts);
  Spans measured;
  const double* next = gathered.data();
  for (const auto& actions : plan().actions) {
    auto& spans = measured.emplace_back();
    for (std::size_t i = 0; i < actions.size(); ++i, next += 2) {
      spans.push_back({.start = next[0], .end = next[1]});
    }
  }
  pipeline::Pipeline fitted = plan();
  fit_costs(fitted, measured);
  const pipeline::Run predicted = pipeline::run(fitted);
  return "{\"schema\": \"unisono.pipeline_times/1\",\n \"name\": " + json_string(plan().name) +
         ",\n \"makespan\": " + json_number(makespan(plan(), measured)) +
         ",\n \"predicted_makespan\": " + json_number(predicted.makespan) +
         ",\n \"ranks\": " + spans_json(plan(), measured) +
         ",\n \"predicted\": " + spans_json(plan(), predicted.spans) +
         ",\n \"pipeline\": " + to_json(fitted) + "}\n";
}

}  // namespace unisono::parallel::detail
