// Simulates a pipeline whose messages share the links of a topology.
//
// Converts the player's actions, in their order, to a workload of the simulator: computations on
// the first stream of their ranks, and a separate stream for each lane, whose messages keep their
// order.
#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "network_model/simulator/simulate.h"
#include "pipelines/pipelines.h"
#include "topo/topo.h"

namespace unisono::cli {
namespace {

using pipeline::Action;
using pipeline::ActionKind;

constexpr int kNothing = -1;

struct Lane {
  int from = 0;
  int to = 0;
  int stream = 0;
  struct Send {
    std::size_t action;
    int after;
  };
  std::vector<Send> sends = {};
  std::vector<Send> receives = {};  // `after`: the rank's previous action
  std::vector<int> items = {};      // the items of the messages that have left
};

class Sharing {
 public:
  Sharing(const pipeline::Pipeline& plan, const pipeline::Run& alone, double bytes)
      : plan_(plan), alone_(alone), around_(neighbours(plan)) {
    message_ = network_model::operation(*find_algorithm(Collective::broadcast, "binomial"),
                                        {.ranks = 2}, bytes, true);
    const auto ranks = static_cast<std::size_t>(plan.ranks);
    workload_.ranks = plan.ranks;
    next_.assign(ranks, 0);
    last_.assign(ranks, kNothing);
    for (const auto& actions : plan.actions) {
      item_of_.emplace_back(actions.size(), kNothing);
    }
    // Each turn makes progress, because the player has completed with this capacity.
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        while (next_[rank] < plan.actions[rank].size() && step(rank)) {
          moved = true;
        }
      }
      for (auto& [key, lane] : lanes_) {
        while (lane.items.size() < lane.sends.size() && leave(lane)) {
          moved = true;
        }
      }
    }
  }

  pipeline::Run play(const Topology& topology) const {
    const network_model::SimulationResult result =
        simulate(workload_, topology, {.rank_times = false, .records = workload_.items.size()});
    pipeline::Run run{.spans = alone_.spans, .busy = alone_.busy};
    const auto end_of = [&](int item) {
      return item == kNothing ? 0.0 : result.item_end_us[static_cast<std::size_t>(item)];
    };
    for (std::size_t rank = 0; rank < item_of_.size(); ++rank) {
      double now = 0;
      for (std::size_t i = 0; i < item_of_[rank].size(); ++i) {
        pipeline::Span& span = run.spans[rank][i];
        if (item_of_[rank][i] != kNothing) {
          // The parts of an overlap keep their distance in time.
          const double later = end_of(item_of_[rank][i]) - end_alone(rank, i);
          span = {.start = span.start + later, .end = span.end + later};
          now = std::max(now, span.end);
        } else {
          span = {.start = now, .end = now};
        }
      }
      run.makespan = std::max(run.makespan, now);
    }
    std::vector<double> starts(workload_.items.size(), 0);
    for (const network_model::MessageRecord& record : result.records) {
      starts[static_cast<std::size_t>(record.item)] = record.start_us;
    }
    for (const auto& [key, lane] : lanes_) {
      for (std::size_t k = 0; k < lane.items.size(); ++k) {
        const double end = end_of(lane.items[k]);
        run.spans[static_cast<std::size_t>(lane.from)][lane.sends[k].action] = {
            .start = starts[static_cast<std::size_t>(lane.items[k])], .end = end};
        const double begun = end_of(lane.receives[k].after);
        run.spans[static_cast<std::size_t>(lane.to)][lane.receives[k].action] = {
            .start = begun, .end = std::max(begun, end)};
      }
    }
    return run;
  }

 private:
  // Returns the end of the computation of `index` in the run without sharing.
  double end_alone(std::size_t rank, std::size_t index) const {
    double end = 0;
    for (std::size_t i = index; i < item_of_[rank].size(); ++i) {
      if (item_of_[rank][i] != item_of_[rank][index]) {
        break;
      }
      end = std::max(end, alone_.spans[rank][i].end);
    }
    return end;
  }

  Lane& lane_of(int from, int to, bool is_forward) {
    const int which = plan_.lanes == 2 && !is_forward ? 1 : 0;
    const auto [at, is_new] = lanes_.try_emplace({from, to, which});
    if (is_new) {
      at->second = {.from = from, .to = to, .stream = static_cast<int>(lanes_.size())};
    }
    return at->second;
  }

  int rank_of(int stage) const { return plan_.stage_rank[static_cast<std::size_t>(stage)]; }

  bool step(std::size_t rank) {
    const std::vector<Action>& actions = plan_.actions[rank];
    const std::size_t index = next_[rank];
    const Action& action = actions[index];
    const int own = static_cast<int>(rank);
    const auto stage = static_cast<std::size_t>(std::max(action.stage, 0));
    if (is_send(action.kind) || is_receive(action.kind)) {
      const bool is_next =
          action.kind == ActionKind::send_forward || action.kind == ActionKind::receive_backward;
      const int peer = rank_of((is_next ? around_.next : around_.before)[stage]);
      const bool is_forward = is_forward_lane(action.kind);
      if (is_send(action.kind)) {
        lane_of(own, peer, is_forward).sends.push_back({index, last_[rank]});
      } else {
        lane_of(peer, own, is_forward).receives.push_back({index, last_[rank]});
      }
    } else if (is_compute(action.kind) || action.kind == ActionKind::overlap) {
      if (!compute(rank, index, after(actions, index))) {
        return false;
      }
    }
    next_[rank] = after(actions, index);
    return true;
  }

  bool compute(std::size_t rank, std::size_t first, std::size_t end) {
    const std::vector<Action>& actions = plan_.actions[rank];
    network_model::WorkItem item{.ranks = {static_cast<int>(rank)}};
    for (std::size_t i = first; i < end; ++i) {
      const Action& action = actions[i];
      if (action.kind != ActionKind::overlap) {
        item.compute_us += alone_.spans[rank][i].end - alone_.spans[rank][i].start;
      }
      if (action.kind == ActionKind::overlap || action.kind == ActionKind::backward_weight) {
        continue;
      }
      const bool is_forward = action.kind == ActionKind::forward;
      const int other =
          (is_forward ? around_.before : around_.next)[static_cast<std::size_t>(action.stage)];
      if (other >= 0 && rank_of(other) != static_cast<int>(rank)) {
        const auto arrival = arrivals_.find({is_forward, action.stage, action.microbatch});
        if (arrival == arrivals_.end()) {
          return false;
        }
        item.after.push_back(arrival->second);
      }
    }
    last_[rank] = add(std::move(item));
    std::fill(item_of_[rank].begin() + static_cast<std::ptrdiff_t>(first),
              item_of_[rank].begin() + static_cast<std::ptrdiff_t>(end), last_[rank]);
    return true;
  }

  // Sends the next message of a lane if there is room for it.
  bool leave(Lane& lane) {
    const std::size_t message = lane.items.size();
    const auto capacity = static_cast<std::size_t>(plan_.capacity);
    const Lane::Send& send = lane.sends[message];
    network_model::WorkItem item = message_;
    item.ranks = {lane.from, lane.to};
    item.stream = lane.stream;
    if (send.after != kNothing) {
      item.after.push_back(send.after);
    }
    if (message >= capacity) {
      const std::size_t freed = capacity == 0 ? message : message - capacity;
      if (freed >= lane.receives.size()) {
        return false;
      }
      if (lane.receives[freed].after != kNothing) {
        item.after.push_back(lane.receives[freed].after);
      }
    }
    lane.items.push_back(add(std::move(item)));
    const Action& action = plan_.actions[static_cast<std::size_t>(lane.from)][send.action];
    const bool is_forward = is_forward_lane(action.kind);
    const auto& to = is_forward ? around_.next : around_.before;
    arrivals_[{is_forward, to[static_cast<std::size_t>(action.stage)], action.microbatch}] =
        lane.items.back();
    return true;
  }

  int add(network_model::WorkItem item) {
    workload_.items.push_back(std::move(item));
    return static_cast<int>(workload_.items.size()) - 1;
  }

  const pipeline::Pipeline& plan_;
  const pipeline::Run& alone_;
  const pipeline::Neighbours around_;
  network_model::WorkItem message_;
  network_model::Workload workload_;
  std::vector<std::size_t> next_;  // by rank: its next action
  std::vector<int> last_;          // by rank: the previous computation
  std::vector<std::vector<int>> item_of_;
  std::map<std::tuple<int, int, int>, Lane> lanes_;
  std::map<std::tuple<bool, int, int>, int> arrivals_;  // F or its gradient, stage, microbatch
};

}  // namespace

pipeline::Run on_shared_links(const pipeline::Pipeline& pipeline, const pipeline::Run& alone,
                              const Arguments& arguments) {
  const auto bytes = static_cast<double>(arguments.bytes("message"));
  Topology topology = load_topology(arguments.text("on"));
  // The time of a single message (costs.cc) depends only on the links; protocols apply only to
  // collectives.
  topology.protocols.clear();
  return Sharing(pipeline, alone, bytes).play(topology);
}

}  // namespace unisono::cli
