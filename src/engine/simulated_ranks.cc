#include "engine/simulated_ranks.h"

#include <algorithm>

#include "engine/executor.h"

namespace unisono::engine {
namespace {

// A poll may prepare the progress of the next poll and still return idle.
constexpr int kIdlePolls = 2;

class Driver {
 public:
  Driver(sim::SimNetwork& network, const std::vector<Executor*>& executors, const Next& next,
         PollOrder order, std::uint64_t seed)
      : network_(network),
        executors_(executors),
        next_(next),
        order_(order),
        random_(seed),
        ends_(executors.size()),
        idle_(executors.size()) {
    for (std::size_t rank = 0; rank < executors.size(); ++rank) {
      live_.push_back(rank);
    }
    starved_ = random_.below(executors.size());
  }

  std::vector<RankEnd> run() {
    while (!live_.empty()) {
      find_ready();
      if (ready_.empty()) {
        if (!network_.pass_to_next_change()) {
          break;
        }
        look_again();
        continue;
      }
      poll(pick(ready_));
      if (network_.pass(1)) {
        look_again();
      }
    }
    for (const std::size_t rank : live_) {
      ends_[rank].waits = executors_[rank]->waits();
    }
    return std::move(ends_);
  }

 private:
  // Finds the ranks that may be able to advance.
  void find_ready() {
    ready_.clear();
    for (const std::size_t rank : live_) {
      if (idle_[rank] < kIdlePolls) {
        ready_.push_back(rank);
      }
    }
  }
  std::size_t pick(const std::vector<std::size_t>& ready) {
    switch (order_) {
      case PollOrder::in_turn: {
        const auto next = std::upper_bound(ready.begin(), ready.end(), latest_);
        return next == ready.end() ? ready.front() : *next;
      }
      case PollOrder::greedy:
        if (std::find(ready.begin(), ready.end(), latest_) != ready.end()) {
          return latest_;
        }
        break;
      case PollOrder::starving:
        if (ready.size() > 1) {
          const std::size_t rank = ready[random_.below(ready.size())];
          return rank != starved_ ? rank : rank == ready.front() ? ready.back() : ready.front();
        }
        break;
      case PollOrder::random:
        break;
    }
    return ready[random_.below(ready.size())];
  }
  void poll(std::size_t rank) {
    latest_ = rank;
    const Progress progress = executors_[rank]->poll();
    RankEnd& end = ends_[rank];
    if (network_.stopped(static_cast<int>(rank))) {
      end.end = End::stopped;
    } else if (progress == Progress::finished) {
      end.end = next_(rank) ? End::waits : End::finished;
    } else if (progress == Progress::failed) {
      end.end = End::failed;
      end.fault = executors_[rank]->fault();
    }
    if (end.end != End::waits) {
      std::erase(live_, rank);
    }
    if (progress == Progress::idle) {
      ++idle_[rank];
    } else {
      look_again();
    }
  }
  void look_again() { std::fill(idle_.begin(), idle_.end(), 0); }

  sim::SimNetwork& network_;
  const std::vector<Executor*>& executors_;
  const Next& next_;
  PollOrder order_;
  sim::Random random_;
  std::vector<RankEnd> ends_;
  std::vector<int> idle_;  // polls since something changed
  std::vector<std::size_t> live_;
  std::vector<std::size_t> ready_;
  std::size_t latest_ = 0;
  std::size_t starved_ = 0;
};

}  // namespace

std::vector<RankEnd> drive(sim::SimNetwork& network, const std::vector<Executor*>& executors,
                           PollOrder order, std::uint64_t seed, const Next& next) {
  return Driver(network, executors, next, order, seed).run();
}

std::string describe(const std::vector<RankEnd>& ends) {
  std::string text;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const RankEnd& end = ends[rank];
    if (end.end == End::finished) {
      continue;
    }
    text += (text.empty() ? "rank " : "; rank ") + std::to_string(rank);
    if (end.end == End::stopped) {
      text += " has stopped";
    } else if (end.end == End::failed) {
      text += " received a message from rank " + std::to_string(end.fault.from) +
              " that it does not expect, at step " + std::to_string(end.fault.step);
    } else {
      text += " waits for ";
      for (const Wait& wait : end.waits) {
        text += (&wait == &end.waits.front() ? "rank " : ", ") + std::to_string(wait.rank) +
                " at step " + std::to_string(wait.step);
      }
      text += end.waits.empty() ? "nobody" : "";
    }
  }
  return text;
}

}  // namespace unisono::engine
