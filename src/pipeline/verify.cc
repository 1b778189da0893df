#include "pipeline/verify.h"

#include <algorithm>

#include "pipeline/order_check.h"
#include "pipeline/run.h"
#include "pipeline/transfers.h"

namespace unisono::pipeline {
namespace {

// The shortest circle of ranks that wait for each other, else the first way to a rank that is
// waited for in vain.
std::vector<Waiting> shortest_wait(const std::vector<Waiting>& waiting) {
  const auto find = [&](int rank) {
    return std::find_if(waiting.begin(), waiting.end(),
                        [rank](const Waiting& wait) { return wait.rank == rank; });
  };
  std::vector<Waiting> best;
  bool has_circle = false;
  for (const Waiting& start : waiting) {
    std::vector<Waiting> way = {start};
    while (way.size() <= waiting.size()) {
      const auto next = find(way.back().peer);
      if (next == waiting.end() || next->rank == start.rank) {
        const bool is_circle = next != waiting.end();
        if (best.empty() || (is_circle && !has_circle) ||
            (is_circle == has_circle && way.size() < best.size())) {
          best = way;
          has_circle = is_circle;
        }
        break;
      }
      way.push_back(*next);
    }
  }
  return best;
}

Finding deadlock(const Pipeline& pipeline, const Run& run) {
  Finding finding{.kind = Finding::Kind::deadlock};
  for (const Waiting& wait : shortest_wait(run.waiting)) {
    const std::vector<Action>& actions = pipeline.actions[static_cast<std::size_t>(wait.rank)];
    Finding::Wait said{.rank = wait.rank, .peer = wait.peer, .has_head = wait.has_head};
    said.is_through = wait.action >= actions.size();
    said.action = said.is_through ? actions[wait.head] : actions[wait.action];
    if (wait.has_head) {
      said.head = actions[wait.head];
    }
    finding.waits.push_back(said);
  }
  if (!finding.waits.empty()) {
    finding.rank = finding.waits.front().rank;
    finding.action = finding.waits.front().action;
    finding.other_rank = finding.waits.front().peer;
  }
  return finding;
}

bool finishes(const Pipeline& pipeline, int capacity) {
  return run(pipeline, {.capacity = capacity}).finished();
}

// What works with a capacity works with a larger one.
int least_capacity(const Pipeline& pipeline) {
  int works = 0;
  while (!finishes(pipeline, works)) {
    if (works > static_cast<int>(kMostActions)) {
      return -1;
    }
    works = std::max(1, 2 * works);
  }
  int fails = works / 2;
  while (works > 1 && works - fails > 1) {
    const int middle = fails + (works - fails) / 2;
    (finishes(pipeline, middle) ? works : fails) = middle;
  }
  return works;
}

void measure_memory(const Pipeline& pipeline, Verdict& verdict) {
  for (const std::vector<Action>& actions : pipeline.actions) {
    double bytes = 0;
    double peak = 0;
    int held = 0;
    int most = 0;
    for (const Action& action : actions) {
      if (!is_compute(action.kind)) {
        continue;
      }
      const auto stage = static_cast<std::size_t>(action.stage);
      const double all = pipeline.memory.activation_bytes[stage];
      const double kept = pipeline.memory.kept_bytes[stage];
      if (action.kind == ActionKind::forward) {
        bytes += all;
        ++held;
      } else if (action.kind == ActionKind::backward_input) {
        bytes -= all - kept;
      } else {
        bytes -= action.kind == ActionKind::backward ? all : kept;
        --held;
      }
      peak = std::max(peak, bytes);
      most = std::max(most, held);
    }
    verdict.peak_bytes.push_back(peak);
    verdict.peak_activations.push_back(most);
  }
}

}  // namespace

Verdict verify(const Pipeline& given) {
  Pipeline pipeline = given;
  if (!has_transfers(pipeline)) {
    add_transfers(pipeline);
  }
  Verdict verdict;
  verdict.findings = check_order(pipeline);
  measure_memory(pipeline, verdict);
  if (!verdict.right()) {
    return verdict;
  }
  const Run unlimited = run(pipeline, {.capacity = kUnlimited});
  if (!unlimited.finished()) {
    verdict.findings.push_back(deadlock(pipeline, unlimited));
    return verdict;
  }
  verdict.least_capacity = least_capacity(pipeline);
  if (pipeline.capacity < verdict.least_capacity) {
    verdict.findings.push_back(deadlock(pipeline, run(pipeline)));
  }
  return verdict;
}

}  // namespace unisono::pipeline
