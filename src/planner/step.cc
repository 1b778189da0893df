#include "planner/step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/json_text.h"
#include "network_model/simulator/simulate.h"
#include "pipeline/catalog.h"
#include "planner/layer_work.h"
#include "unisono/error.hpp"

namespace unisono::planner {
namespace {

using pipeline::ActionKind;

// The streams of a rank: computing and its collectives; forward sends; backward sends.
enum Stream : int { computing, forward_sends, backward_sends };

class StepMaker {
 public:
  StepMaker(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
            const Cluster& cluster, int count)
      : shape_(shape),
        layout_(layout),
        task_(task),
        times_(pass_times(shape, layout, task, cluster)),
        pipeline_(schedule(count)) {
    step_.ranks = layout.devices();
  }

  Step make();

 private:
  pipeline::Pipeline schedule(int count) const;
  int a_stage() const { return layout_.stage_ranks(); }
  std::vector<int> stage_ranks(int stage) const;
  std::vector<std::vector<int>> groups(int stage, int size, int apart) const;
  bool try_next(int rank);
  bool is_met(const pipeline::Action& action) const;
  void compute(const pipeline::Action& action);
  void send(const pipeline::Action& action);
  void exchange(int stage, const LayerWork& work, double layers, bool is_forward);
  void add_collectives(int stage, const char* name, const char* collective, const char* algorithm,
                       double bytes, int size, int apart, int repeat);
  void reduce_gradients();

  const ModelShape& shape_;
  const Layout& layout_;
  const TrainingTask& task_;
  PassTimes times_;
  pipeline::Pipeline pipeline_;
  Step step_;
  std::vector<std::size_t> next_;  // by pipeline rank
  std::set<std::string> done_;     // names of finished sends
};

std::string name_of(ActionKind kind, int stage, int microbatch) {
  return to_string(pipeline::Action{.kind = kind, .stage = stage, .microbatch = microbatch});
}

pipeline::Pipeline StepMaker::schedule(int count) const {
  const pipeline::Entry& entry =
      layout_.vp > 1 ? pipeline::interleaved : pipeline::one_forward_one_backward;
  const pipeline::PipelineSize shape{
      .ranks = layout_.pp, .chunks = layout_.vp, .microbatches = count};
  if (const std::string why = refusal(entry, shape); !why.empty()) {
    throw Error(ErrorCode::usage, why);
  }
  return build(entry, shape);
}

// Returns the ranks of all copies that hold the stage.
std::vector<int> StepMaker::stage_ranks(int stage) const {
  const int first = pipeline_.stage_rank[static_cast<std::size_t>(stage)] * a_stage();
  std::vector<int> ranks;
  for (int i = 0; i < a_stage(); ++i) {
    ranks.push_back(first + i);
  }
  return ranks;
}

// Returns its groups of `size` ranks at a distance of `apart`.
std::vector<std::vector<int>> StepMaker::groups(int stage, int size, int apart) const {
  std::vector<std::vector<int>> result;
  const std::vector<int> all = stage_ranks(stage);
  for (int first = 0; first < a_stage(); ++first) {
    if (first / apart % size != 0) {
      continue;
    }
    std::vector<int> group;
    for (int i = 0; i < size; ++i) {
      group.push_back(all[static_cast<std::size_t>(first + i * apart)]);
    }
    result.push_back(group);
  }
  return result;
}

bool StepMaker::is_met(const pipeline::Action& action) const {
  switch (action.kind) {
    case ActionKind::receive_forward:
      return done_.contains(name_of(ActionKind::send_forward, action.stage - 1, action.microbatch));
    case ActionKind::receive_backward:
      return done_.contains(
          name_of(ActionKind::send_backward, action.stage + 1, action.microbatch));
    default:
      return true;
  }
}

// All groups of the stage run the collective at the same time.
void StepMaker::add_collectives(int stage, const char* name, const char* collective,
                                const char* algorithm, double bytes, int size, int apart,
                                int repeat) {
  if (size < 2 || bytes <= 0 || repeat < 1) {
    return;
  }
  for (std::vector<int>& group : groups(stage, size, apart)) {
    step_.items.push_back({.name = name,
                           .ranks = std::move(group),
                           .collective = collective,
                           .algorithm = algorithm,
                           .bytes = bytes,
                           .repeat = repeat});
  }
}

void StepMaker::exchange(int stage, const LayerWork& work, double layers, bool is_forward) {
  const double row = local_tokens(layout_, task_) * shape_.hidden * weight_bytes(Precision::bf16);
  const int repeat = static_cast<int>(std::lround(layers));
  add_collectives(stage, "tensor", "all_reduce", "ring", row, layout_.tp, 1, 2 * repeat);
  const double heads = is_forward ? work.heads_bytes : work.backward_heads_bytes;
  add_collectives(stage, "heads", "all_to_all", "pairwise",
                  heads * layout_.uly / std::max(1, layout_.uly - 1), layout_.uly, layout_.tp,
                  repeat);
  if (work.expert_tokens > 0) {
    const double bytes = work.expert_tokens * shape_.experts_per_token * shape_.hidden *
                         weight_bytes(Precision::bf16);
    add_collectives(stage, "experts", "all_to_all", "pairwise", bytes, layout_.ep, 1, 2 * repeat);
  }
}

void StepMaker::compute(const pipeline::Action& action) {
  const bool is_forward = action.kind == ActionKind::forward;
  const bool is_last = action.stage == pipeline_.stages() - 1;
  double seconds = (is_forward ? times_.forward_s : times_.backward_s) / layout_.vp;
  if (is_last) {
    seconds += is_forward ? times_.head_forward_s : times_.head_backward_s;
  }
  StepItem item{
      .name = to_string(action), .ranks = stage_ranks(action.stage), .compute_us = seconds * 1e6};
  const std::string waited =
      is_forward ? name_of(ActionKind::send_forward, action.stage - 1, action.microbatch)
                 : name_of(ActionKind::send_backward, action.stage + 1, action.microbatch);
  if (done_.contains(waited)) {
    item.after.push_back(waited);
  }
  step_.items.push_back(item);
  const double layers = stage_layers(shape_, layout_) / layout_.vp;
  const double ways = !is_forward && layout_.recompute == Recompute::full ? 2 : 1;
  const bool has_experts = shape_.has_experts();
  exchange(action.stage, layer_work(shape_, layout_, task_, has_experts), layers * ways,
           is_forward);
  // The send of the result waits for all items above.
  step_.items.push_back(
      {.name = "end of " + to_string(action), .ranks = stage_ranks(action.stage), .compute_us = 0});
}

// Each rank sends to the rank at the same position in the other stage.
void StepMaker::send(const pipeline::Action& action) {
  const bool is_forward = action.kind == ActionKind::send_forward;
  const int other = action.stage + (is_forward ? 1 : -1);
  const std::vector<int> from = stage_ranks(action.stage);
  const std::vector<int> to = stage_ranks(other);
  const double share = layout_.sequence_parallel ? layout_.tp : 1;
  const double bytes =
      local_tokens(layout_, task_) * shape_.hidden * weight_bytes(Precision::bf16) / share;
  const std::string name = to_string(action);
  const std::string waited =
      "end of " + name_of(is_forward ? ActionKind::forward : ActionKind::backward, action.stage,
                          action.microbatch);
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[i]) {
      return;  // both stages are on the same ranks
    }
    step_.items.push_back({.name = name,
                           .ranks = {from[i], to[i]},
                           .stream = is_forward ? forward_sends : backward_sends,
                           .collective = "broadcast",
                           .algorithm = "binomial",
                           .bytes = bytes,
                           .after = {waited}});
  }
}

bool StepMaker::try_next(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  const std::vector<pipeline::Action>& actions = pipeline_.actions[at];
  if (next_[at] == actions.size() || !is_met(actions[next_[at]])) {
    return false;
  }
  const pipeline::Action& action = actions[next_[at]];
  ++next_[at];
  if (action.kind == ActionKind::forward || action.kind == ActionKind::backward) {
    compute(action);
  } else if (pipeline::is_send(action.kind)) {
    send(action);
    done_.insert(to_string(action));
  }
  return true;
}

void StepMaker::reduce_gradients() {
  const LocalWeights weights = local_weights(shape_, layout_);
  for (int rank = 0; rank < layout_.pp; ++rank) {
    add_collectives(rank, "gradients", "all_reduce", "ring",
                    kExposedData * weights.dense * weight_bytes(Precision::bf16), layout_.copies(),
                    layout_.tp, 1);
    add_collectives(rank, "gradients of experts", "all_reduce", "ring",
                    kExposedData * weights.experts * weight_bytes(Precision::bf16),
                    a_stage() / layout_.ep, layout_.ep, 1);
  }
}

Step StepMaker::make() {
  next_.assign(static_cast<std::size_t>(layout_.pp), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < layout_.pp; ++rank) {
      moved = try_next(rank) || moved;
    }
  }
  reduce_gradients();
  return std::move(step_);
}

// Operations with equally many ranks share a schedule.
class WorkloadMaker {
 public:
  explicit WorkloadMaker(const Step& step) : step_(step) { workload_.ranks = step.ranks; }

  network_model::Workload make() {
    for (const StepItem& item : step_.items) {
      add(item);
    }
    return std::move(workload_);
  }

 private:
  void add(const StepItem& item) {
    network_model::WorkItem made = item.collective.empty()
                                       ? network_model::WorkItem{.compute_us = item.compute_us}
                                       : operation_of(item);
    made.name = item.name;
    made.ranks = item.ranks;
    made.stream = item.stream;
    for (const std::string& name : item.after) {
      const std::vector<int>& named = named_[name];
      made.after.insert(made.after.end(), named.begin(), named.end());
    }
    workload_.items.insert(workload_.items.end(), static_cast<std::size_t>(item.repeat), made);
    named_[item.name].push_back(static_cast<int>(workload_.items.size()) - 1);
  }

  network_model::WorkItem operation_of(const StepItem& item) {
    const auto ranks = static_cast<int>(item.ranks.size());
    auto known = operations_.find({item.collective, ranks});
    if (known == operations_.end()) {
      const Algorithm* const algorithm =
          find_algorithm(*parse_collective(item.collective), item.algorithm);
      known = operations_
                  .emplace(std::pair(item.collective, ranks),
                           network_model::operation(*algorithm, {.ranks = ranks}, item.bytes))
                  .first;
    }
    network_model::WorkItem made = known->second;
    made.bytes = item.bytes;
    return made;
  }

  const Step& step_;
  network_model::Workload workload_;
  std::map<std::string, std::vector<int>> named_;
  std::map<std::pair<std::string, int>, network_model::WorkItem> operations_;
};

}  // namespace

network_model::Workload workload_of(const Step& step) {
  return WorkloadMaker(step).make();
}

Step make_step(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
               const Cluster& cluster, int count) {
  if (layout.devices() > kMostStepRanks) {
    throw Error(ErrorCode::usage, "a step is written for at most " +
                                      std::to_string(kMostStepRanks) + " ranks, not for " +
                                      std::to_string(layout.devices()));
  }
  return StepMaker(shape, layout, task, cluster, count).make();
}

double simulated_step_s(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
                        const Cluster& cluster, const Topology& topology) {
  const int all = static_cast<int>(microbatches(layout, task));
  const auto seconds = [&](int count) {
    const Step step = make_step(shape, layout, task, cluster, count);
    return network_model::simulate(workload_of(step), topology).total_us * 1e-6;
  };
  const int few = std::min(all, std::max(2, layout.pp));
  const int more = std::min(all, few + std::max(2, layout.pp));
  const double first = seconds(few);
  const double optimiser = estimate_training(shape, layout, task, cluster).parts.optimiser;
  if (more == few) {
    return first + optimiser;
  }
  const double second = seconds(more);
  return second + (second - first) / (more - few) * (all - more) + optimiser;
}

std::string to_json(const Step& step) {
  std::string text = "{\"format\": \"" + std::string(network_model::kWorkloadFormat) +
                     "\", \"ranks\": " + std::to_string(step.ranks) + ",\n \"items\": [";
  const auto number = [](double value) { return std::to_string(static_cast<std::int64_t>(value)); };
  bool is_first = true;
  for (const StepItem& item : step.items) {
    text += is_first ? "\n  {" : ",\n  {";
    is_first = false;
    text += "\"name\": " + json_string(item.name);
    if (item.collective.empty()) {
      text += ", \"compute_us\": " + number(std::round(item.compute_us));
    } else {
      text += ", \"collective\": " + json_string(item.collective) +
              ", \"algorithm\": " + json_string(item.algorithm) +
              ", \"bytes\": " + number(item.bytes);
    }
    text += ", \"group\": [";
    for (std::size_t i = 0; i < item.ranks.size(); ++i) {
      text += (i == 0 ? "" : ", ") + std::to_string(item.ranks[i]);
    }
    text += "]";
    if (item.stream != 0) {
      text += ", \"stream\": " + std::to_string(item.stream);
    }
    if (item.repeat != 1) {
      text += ", \"repeat\": " + std::to_string(item.repeat);
    }
    if (!item.after.empty()) {
      text += ", \"after\": [";
      for (std::size_t i = 0; i < item.after.size(); ++i) {
        text += (i == 0 ? "" : ", ") + json_string(item.after[i]);
      }
      text += "]";
    }
    text += "}";
  }
  return text + "\n]}\n";
}

}  // namespace unisono::planner
