#include "pipeline/orders.h"

#include <algorithm>

#include "pipeline/transfers.h"

namespace unisono::pipeline {

Tasks::Tasks(const Pipeline& pipeline)
    : pipeline_(pipeline),
      around_(neighbours(pipeline)),
      stages_(pipeline.stage_rank.size()),
      microbatches_(static_cast<std::size_t>(pipeline.microbatches)) {
  for (std::size_t stage = 0; stage < stages_; ++stage) {
    durations_.push_back(pipeline.costs.forward[stage]);
    durations_.push_back(pipeline.costs.input[stage]);
    durations_.push_back(pipeline.costs.weight[stage]);
  }
}

Tasks::Needs Tasks::needs(const Task& task) const {
  const auto stage = static_cast<std::size_t>(task.stage);
  Needs needs;
  if (task.kind == 2) {
    needs.near = {task.stage, task.microbatch, 1};
    return needs;
  }
  const int other = task.kind == 0 ? around_.before[stage] : around_.next[stage];
  if (task.kind == 1) {
    needs.near = {task.stage, task.microbatch, 0};
  }
  if (other >= 0) {
    needs.far = {other, task.microbatch, task.kind};
    if (rank_of(other) != rank_of(task.stage)) {
      const auto link = static_cast<std::size_t>(task.kind == 0 ? other : task.stage);
      needs.travel = pipeline_.costs.transfer[link];
    }
  }
  return needs;
}

Task Tasks::follower(const Task& task) const {
  const auto stage = static_cast<std::size_t>(task.stage);
  if (task.kind == 2) {
    return {.stage = -1};
  }
  return {task.kind == 0 ? around_.next[stage] : around_.before[stage], task.microbatch, task.kind};
}

double Tasks::ready(const Task& task, const std::vector<double>& end) const {
  const Needs need = needs(task);
  double time = 0;
  if (need.near.stage >= 0) {
    const double near = end[id(need.near)];
    if (near < 0) {
      return -1;
    }
    time = near;
  }
  if (need.far.stage >= 0) {
    const double far = end[id(need.far)];
    if (far < 0) {
      return -1;
    }
    time = std::max(time, far + need.travel);
  }
  return time;
}

void Tasks::time(const Orders& orders, Timing& timing) const {
  timing.start.assign(count(), -1);
  timing.end.assign(count(), -1);
  timing.makespan = 0;
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<double> now(orders.size(), 0);
  std::vector<int> awake;
  for (std::size_t rank = orders.size(); rank-- > 0;) {
    awake.push_back(static_cast<int>(rank));
  }
  std::size_t done = 0;
  std::size_t all = 0;
  for (const std::vector<Task>& order : orders) {
    all += order.size();
  }
  while (!awake.empty()) {
    const auto rank = static_cast<std::size_t>(awake.back());
    awake.pop_back();
    for (; next[rank] < orders[rank].size(); ++next[rank], ++done) {
      const Task& task = orders[rank][next[rank]];
      const double ready = this->ready(task, timing.end);
      if (ready < 0) {
        break;
      }
      const double start = std::max(now[rank], ready);
      now[rank] = start + duration(task);
      timing.start[id(task)] = start;
      timing.end[id(task)] = now[rank];
      const Task after = follower(task);
      if (after.stage >= 0 && rank_of(after.stage) != static_cast<int>(rank)) {
        const auto other = static_cast<std::size_t>(rank_of(after.stage));
        if (next[other] < orders[other].size() && orders[other][next[other]] == after) {
          awake.push_back(static_cast<int>(other));
        }
      }
    }
    timing.makespan = std::max(timing.makespan, now[rank]);
  }
  if (done < all) {
    timing.makespan = std::numeric_limits<double>::infinity();
  }
}

double Tasks::peak_bytes(const std::vector<Task>& order) const {
  double bytes = 0;
  double peak = 0;
  for (const Task& task : order) {
    const auto stage = static_cast<std::size_t>(task.stage);
    const double all = pipeline_.memory.activation_bytes[stage];
    const double kept = pipeline_.memory.kept_bytes[stage];
    bytes += task.kind == 0 ? all : task.kind == 1 ? kept - all : -kept;
    peak = std::max(peak, bytes);
  }
  return peak;
}

Orders orders_of(const Pipeline& pipeline) {
  Orders orders;
  for (const std::vector<Action>& actions : pipeline.actions) {
    std::vector<Task>& order = orders.emplace_back();
    for (const Action& action : actions) {
      if (action.kind == ActionKind::forward) {
        order.push_back({action.stage, action.microbatch, 0});
      }
      if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_input) {
        order.push_back({action.stage, action.microbatch, 1});
      }
      if (action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight) {
        order.push_back({action.stage, action.microbatch, 2});
      }
    }
  }
  return orders;
}

Pipeline with_orders(const Pipeline& frame, const Orders& orders) {
  constexpr ActionKind kKinds[] = {ActionKind::forward, ActionKind::backward_input,
                                   ActionKind::backward_weight};
  Pipeline pipeline = frame;
  pipeline.actions.clear();
  for (const std::vector<Task>& order : orders) {
    std::vector<Action>& actions = pipeline.actions.emplace_back();
    for (const Task& task : order) {
      actions.push_back({kKinds[task.kind], task.stage, task.microbatch});
    }
  }
  add_transfers(pipeline);
  return pipeline;
}

}  // namespace unisono::pipeline
