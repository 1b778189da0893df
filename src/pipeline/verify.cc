#include "pipeline/verify.h"

#include <algorithm>

#include "pipeline/order_check.h"
#include "pipeline/run.h"
#include "pipeline/transfers.h"

namespace unisono::pipeline {
namespace {

// Returns the shortest cycle of ranks that wait for each other. If there is no cycle, returns a
// rank whose peer never answers. Each rank waits for one other rank, so a walk that marks visited
// ranks finds every cycle once. A cycle starts with its lowest rank, wherever the walk entered it.
std::vector<Waiting> shortest_wait(const std::vector<Waiting>& waiting, int ranks) {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<std::size_t> place(static_cast<std::size_t>(ranks), kNone);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    place[static_cast<std::size_t>(waiting[i].rank)] = i;
  }
  const auto next = [&](std::size_t at) {
    return waiting[at].peer < 0 ? kNone : place[static_cast<std::size_t>(waiting[at].peer)];
  };
  std::vector<Waiting> best;
  std::vector<std::size_t> walk_of(waiting.size(), kNone);
  for (std::size_t start = 0; start < waiting.size(); ++start) {
    std::size_t at = start;
    while (at != kNone && walk_of[at] == kNone) {
      walk_of[at] = start;
      at = next(at);
    }
    if (at == kNone || walk_of[at] != start) {
      continue;  // the walk ends, or joins an earlier one
    }
    std::vector<Waiting> circle = {waiting[at]};
    for (std::size_t i = next(at); i != at; i = next(i)) {
      circle.push_back(waiting[i]);
    }
    if (best.empty() || circle.size() < best.size()) {
      best = std::move(circle);
    }
  }
  std::rotate(best.begin(),
              std::min_element(best.begin(), best.end(),
                               [](const Waiting& a, const Waiting& b) { return a.rank < b.rank; }),
              best.end());
  if (best.empty()) {
    const auto in_vain = std::find_if(waiting.begin(), waiting.end(), [&](const Waiting& wait) {
      return wait.peer < 0 || place[static_cast<std::size_t>(wait.peer)] == kNone;
    });
    best.assign(in_vain, in_vain == waiting.end() ? in_vain : in_vain + 1);
  }
  return best;
}

Finding deadlock(const Pipeline& pipeline, const Run& run) {
  Finding finding{.kind = Finding::Kind::deadlock};
  for (const Waiting& wait : shortest_wait(run.waiting, pipeline.ranks)) {
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

// A pipeline that works with a capacity also works with a larger one.
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

// Tracks the memory of one rank while it does its actions.
class Holding {
 public:
  explicit Holding(const StageMemory& memory) : memory_(memory) {}

  // Adds the actions [first, end), which are done together: the results of a forward pass exist
  // before the other actions free anything, whatever their written order.
  void add(const Action* first, const Action* end) {
    for (const Action* action = first; action != end; ++action) {
      if (action->kind == ActionKind::forward) {
        bytes_ += memory_.activation_bytes[static_cast<std::size_t>(action->stage)];
        ++held_;
      }
    }
    peak_bytes_ = std::max(peak_bytes_, bytes_);
    peak_ = std::max(peak_, held_);
    for (const Action* action = first; action != end; ++action) {
      free(*action);
    }
    peak_bytes_ = std::max(peak_bytes_, bytes_);  // the kept part may exceed the activation
  }
  double peak_bytes() const { return peak_bytes_; }
  int peak() const { return peak_; }

 private:
  void free(const Action& action) {
    if (!is_compute(action.kind) || action.kind == ActionKind::forward) {
      return;
    }
    const auto stage = static_cast<std::size_t>(action.stage);
    const double all = memory_.activation_bytes[stage];
    const double kept = memory_.kept_bytes[stage];
    if (action.kind == ActionKind::backward_input) {
      bytes_ -= all - kept;
      return;
    }
    bytes_ -= action.kind == ActionKind::backward ? all : kept;
    --held_;
  }

  const StageMemory& memory_;
  double bytes_ = 0;
  double peak_bytes_ = 0;
  int held_ = 0;
  int peak_ = 0;
};

void measure_memory(const Pipeline& pipeline, Verdict& verdict) {
  for (const std::vector<Action>& actions : pipeline.actions) {
    Holding holding(pipeline.memory);
    for (std::size_t i = 0; i < actions.size(); i = after(actions, i)) {
      holding.add(actions.data() + i, actions.data() + after(actions, i));
    }
    verdict.peak_bytes.push_back(holding.peak_bytes());
    verdict.peak_activations.push_back(holding.peak());
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
