#include "pipeline/run.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

namespace unisono::pipeline {
namespace {

struct Posted {
  std::size_t action;
  double time;
};

// One rank's end of a lane.
struct Queue {
  int rank;
  int peer;
  std::size_t other;  // the peer's end
  std::vector<Posted> posted = {};
  std::size_t head = 0;
  double turn = 0;                    // earliest time of the head
  std::vector<double> arrivals = {};  // arrival times at the peer of the messages sent here
  std::vector<double> received = {};  // receive times of the messages that arrive here
};

double uniform(std::uint64_t seed, std::uint64_t rank, std::uint64_t action) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15ULL + rank * 0xbf58476d1ce4e5b9ULL + action + 1;
  for (int round = 0; round < 3; ++round) {
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  }
  return static_cast<double>(x >> 11U) * 0x1p-52 - 1;  // in -1 to 1
}

class Player {
 public:
  Player(const Pipeline& pipeline, const RunOptions& options)
      : pipeline_(pipeline),
        options_(options),
        capacity_(options.capacity < 0 ? pipeline.capacity : options.capacity),
        around_(neighbours(pipeline)),
        ranks_(static_cast<std::size_t>(pipeline.ranks)) {
    const std::size_t cells =
        pipeline.stage_rank.size() * static_cast<std::size_t>(pipeline.microbatches);
    for (std::vector<double>* times : {&forward_, &backward_, &input_, &gradient_}) {
      times->assign(cells, -1);
    }
  }

  Run play() {
    result_.busy.assign(ranks_.size(), 0);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      result_.spans.emplace_back(pipeline_.actions[rank].size());
      wake(static_cast<int>(rank));
    }
    while (!awake_.empty()) {
      const int rank = awake_.front();
      awake_.pop_front();
      ranks_[static_cast<std::size_t>(rank)].is_awake = false;
      advance(rank);
    }
    for (int rank = 0; rank < pipeline_.ranks; ++rank) {
      note_waiting(rank);
    }
    return std::move(result_);
  }

 private:
  struct Rank {
    std::size_t next = 0;
    double now = 0;
    std::vector<std::size_t> stirred = {};  // its queues that may make progress
    bool is_awake = false;
  };

  std::size_t cell(const Action& action) const { return cell(action.stage, action.microbatch); }
  std::size_t cell(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(pipeline_.microbatches) +
           static_cast<std::size_t>(microbatch);
  }
  int rank_of(int stage) const { return pipeline_.stage_rank[static_cast<std::size_t>(stage)]; }

  void wake(int rank) {
    Rank& state = ranks_[static_cast<std::size_t>(rank)];
    if (!state.is_awake) {
      state.is_awake = true;
      awake_.push_back(rank);
    }
  }

  // Examines only queues with a new event: a rank may have thousands of queues.
  void stir(std::size_t queue) {
    const int rank = queues_[queue].rank;
    ranks_[static_cast<std::size_t>(rank)].stirred.push_back(queue);
    wake(rank);
  }

  // Returns the other stage of a transfer; -1 if the chain ends there.
  int partner(const Action& action) const {
    const bool next =
        action.kind == ActionKind::send_forward || action.kind == ActionKind::receive_backward;
    return (next ? around_.next : around_.before)[static_cast<std::size_t>(action.stage)];
  }

  std::size_t queue_of(int rank, int peer, bool is_forward) {
    const int lane = pipeline_.lanes == 2 && !is_forward ? 1 : 0;
    const auto known = index_.find({{rank, peer}, lane});
    if (known != index_.end()) {
      return known->second;
    }
    const std::size_t mine = queues_.size();
    queues_.push_back({.rank = rank, .peer = peer, .other = mine + 1});
    queues_.push_back({.rank = peer, .peer = rank, .other = mine});
    index_[{{rank, peer}, lane}] = mine;
    index_[{{peer, rank}, lane}] = mine + 1;
    return mine;
  }

  const Action& action_at(const Queue& queue, std::size_t posted) const {
    return pipeline_.actions[static_cast<std::size_t>(queue.rank)][queue.posted[posted].action];
  }

  bool is_receive_at_head(const Queue& queue) const {
    return queue.head < queue.posted.size() && is_receive(action_at(queue, queue.head).kind);
  }

  // Returns when the lane has room for the message that the head sends; negative if not yet.
  double room_at(const Queue& queue) const {
    const std::size_t message = queue.arrivals.size();
    const Queue& other = queues_[queue.other];
    const auto capacity = static_cast<std::size_t>(capacity_);
    if (message < capacity) {
      return 0;
    }
    if (capacity > 0) {
      return message - capacity < other.received.size() ? other.received[message - capacity] : -1;
    }
    if (is_receive_at_head(other) && other.received.size() == message) {
      return std::max(other.turn, other.posted[other.head].time);
    }
    return -1;
  }

  double transfer_time(const Action& action) const {
    const int stage = action.kind == ActionKind::send_forward ? action.stage : partner(action);
    return pipeline_.costs.transfer[static_cast<std::size_t>(stage)];
  }

  bool transfer(Queue& queue) {
    const Posted& head = queue.posted[queue.head];
    const Action& action = action_at(queue, queue.head);
    const double begun = std::max(queue.turn, head.time);
    Span& span = result_.spans[static_cast<std::size_t>(queue.rank)][head.action];
    if (is_send(action.kind)) {
      const double room = room_at(queue);
      if (room < 0) {
        return false;
      }
      queue.turn = std::max(begun, room);
      queue.arrivals.push_back(queue.turn + transfer_time(action));
      span = {.start = queue.turn, .end = queue.arrivals.back()};
    } else {
      const Queue& other = queues_[queue.other];
      const std::size_t message = queue.received.size();
      if (message >= other.arrivals.size()) {
        return false;
      }
      queue.turn = std::max(begun, other.arrivals[message]);
      queue.received.push_back(queue.turn);
      span = {.start = begun, .end = queue.turn};
      (action.kind == ActionKind::receive_forward ? input_ : gradient_)[cell(action)] = queue.turn;
    }
    ++queue.head;
    stir(queue.other);
    return true;
  }

  void post(int rank, std::size_t index, const Action& action) {
    Rank& state = ranks_[static_cast<std::size_t>(rank)];
    const int stage = partner(action);
    if (stage < 0 || rank_of(stage) == rank) {
      return;  // verify() reports this
    }
    const std::size_t queue = queue_of(rank, rank_of(stage), is_forward_lane(action.kind));
    queues_[queue].posted.push_back({.action = index, .time = state.now});
    if (queues_[queue].head + 1 == queues_[queue].posted.size()) {
      state.stirred.push_back(queue);
      stir(queues_[queue].other);  // the peer's send may wait for a receive to begin
    }
  }

  // Returns when the input of a computation is available; negative if not yet.
  double ready(int rank, const Action& action) const {
    const std::size_t here = cell(action);
    const auto from = [&](int stage, const std::vector<double>& made,
                          const std::vector<double>& received) {
      if (stage < 0) {
        return 0.0;
      }
      return rank_of(stage) == rank ? made[cell(stage, action.microbatch)] : received[here];
    };
    const auto stage = static_cast<std::size_t>(action.stage);
    switch (action.kind) {
      case ActionKind::forward:
        return from(around_.before[stage], forward_, input_);
      case ActionKind::backward:
      case ActionKind::backward_input: {
        const double gradient = from(around_.next[stage], backward_, gradient_);
        return forward_[here] < 0 || gradient < 0 ? -1 : std::max(forward_[here], gradient);
      }
      default:
        return backward_[here];
    }
  }

  double duration(int rank, std::size_t index, const Action& action) const {
    const auto stage = static_cast<std::size_t>(action.stage);
    const Costs& costs = pipeline_.costs;
    double time = costs.forward[stage];
    if (action.kind == ActionKind::backward) {
      time = costs.input[stage] + costs.weight[stage];
    } else if (action.kind != ActionKind::forward) {
      time = action.kind == ActionKind::backward_input ? costs.input[stage] : costs.weight[stage];
    }
    if (action.stage == options_.slow_stage) {
      time *= options_.slow_factor;
    }
    if (options_.jitter > 0) {
      time *= 1 + options_.jitter * uniform(options_.seed, static_cast<std::uint64_t>(rank), index);
    }
    return time;
  }

  void note_result(const Action& action, double time) {
    if (action.kind == ActionKind::forward) {
      forward_[cell(action)] = time;
    } else if (action.kind != ActionKind::backward_weight) {
      backward_[cell(action)] = time;
    }
  }

  // Runs the computations [first, end): one, or the parts of an overlap.
  bool compute(int rank, std::size_t first, std::size_t end) {
    const std::vector<Action>& actions = pipeline_.actions[static_cast<std::size_t>(rank)];
    Rank& state = ranks_[static_cast<std::size_t>(rank)];
    double now = state.now;
    for (std::size_t i = first; i < end; ++i) {
      const double input = ready(rank, actions[i]);
      if (input < 0) {
        return false;
      }
      now = std::max(now, input);
    }
    for (std::size_t i = first; i < end; ++i) {
      const double time = duration(rank, i, actions[i]);
      result_.spans[static_cast<std::size_t>(rank)][i] = {.start = now, .end = now + time};
      result_.busy[static_cast<std::size_t>(rank)] += time;
      now += time;
    }
    for (std::size_t i = first; i < end; ++i) {
      note_result(actions[i], now);
    }
    state.now = now;
    result_.makespan = std::max(result_.makespan, now);
    return true;
  }

  bool step(int rank) {
    Rank& state = ranks_[static_cast<std::size_t>(rank)];
    const std::vector<Action>& actions = pipeline_.actions[static_cast<std::size_t>(rank)];
    const Action& action = actions[state.next];
    const std::size_t end = after(actions, state.next);
    if (is_send(action.kind) || is_receive(action.kind)) {
      post(rank, state.next, action);
    } else if (is_compute(action.kind) || action.kind == ActionKind::overlap) {
      const std::size_t first = state.next + (action.parts > 0 ? 1 : 0);
      if (!compute(rank, first, end)) {
        return false;
      }
      std::vector<Span>& spans = result_.spans[static_cast<std::size_t>(rank)];
      spans[state.next] = {.start = spans[first].start, .end = state.now};
    } else {
      result_.spans[static_cast<std::size_t>(rank)][state.next] = {.start = state.now,
                                                                   .end = state.now};
    }
    state.next = end;
    return true;
  }

  void advance(int rank) {
    Rank& state = ranks_[static_cast<std::size_t>(rank)];
    bool moved = true;
    while (moved) {
      moved = false;
      while (!state.stirred.empty()) {
        const std::size_t queue = state.stirred.back();
        state.stirred.pop_back();
        while (queues_[queue].head < queues_[queue].posted.size() && transfer(queues_[queue])) {
          moved = true;
        }
      }
      while (state.next < pipeline_.actions[static_cast<std::size_t>(rank)].size() && step(rank)) {
        moved = true;
      }
    }
  }

  void note_waiting(int rank) {
    const Rank& state = ranks_[static_cast<std::size_t>(rank)];
    const std::vector<Action>& actions = pipeline_.actions[static_cast<std::size_t>(rank)];
    Waiting waiting{.rank = rank, .action = state.next};
    if (state.next < actions.size()) {
      std::size_t blocked = state.next;
      while (actions[blocked].kind == ActionKind::overlap || ready(rank, actions[blocked]) >= 0) {
        ++blocked;  // report the part of an overlap that lacks its input
      }
      waiting.action = blocked;
      const Action& action = actions[blocked];
      const bool is_forward = action.kind == ActionKind::forward;
      const int stage =
          (is_forward ? around_.before : around_.next)[static_cast<std::size_t>(action.stage)];
      if (action.kind != ActionKind::backward_weight && stage >= 0 && rank_of(stage) != rank) {
        waiting.peer = rank_of(stage);
        note_head(queues_[queue_of(rank, waiting.peer, is_forward)], waiting);
      }
      result_.waiting.push_back(waiting);
      return;
    }
    for (auto at = index_.lower_bound({{rank, 0}, 0});
         at != index_.end() && at->first.first.first == rank; ++at) {
      const Queue& queue = queues_[at->second];
      if (queue.head < queue.posted.size()) {
        waiting.peer = queue.peer;
        note_head(queue, waiting);
        result_.waiting.push_back(waiting);
        return;
      }
    }
  }

  static void note_head(const Queue& queue, Waiting& waiting) {
    if (queue.head < queue.posted.size()) {
      waiting.head = queue.posted[queue.head].action;
      waiting.has_head = true;
    }
  }

  const Pipeline& pipeline_;
  const RunOptions& options_;
  const int capacity_;
  const Neighbours around_;
  std::vector<Rank> ranks_;
  std::map<std::pair<std::pair<int, int>, int>, std::size_t> index_;  // by rank, peer and lane
  std::vector<Queue> queues_;
  // When each stage has done a microbatch, and when its input has arrived; negative if not yet.
  std::vector<double> forward_, backward_, input_, gradient_;
  std::deque<int> awake_;
  Run result_;
};

}  // namespace

Run run(const Pipeline& pipeline, const RunOptions& options) {
  return Player(pipeline, options).play();
}

}  // namespace unisono::pipeline
