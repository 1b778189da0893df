#include "pipeline/greedy.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <set>
#include <utility>

namespace unisono::pipeline {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Greedy {
 public:
  Greedy(const Tasks& tasks, double most_bytes, const GreedyRule& rule)
      : tasks_(tasks),
        most_bytes_(most_bytes),
        rule_(rule),
        ranks_(static_cast<std::size_t>(tasks.pipeline().ranks)),
        end_(tasks.count(), -1) {
    const Pipeline& pipeline = tasks.pipeline();
    for (const Chain& chain : pipeline.chains) {
      left_ += 3 * chain.stages.size() * static_cast<std::size_t>(chain.count);
      for (std::size_t i = chain.stages.size(); i-- > 0;) {  // later stages first
        const int stage = chain.stages[i];
        Rank& rank = ranks_[static_cast<std::size_t>(tasks.rank_of(stage))];
        // F of a stage must leave memory for the later stages of the chain on this rank.
        double reserve = 0;
        for (const Stage& other : rank.stages) {
          reserve = std::max(reserve, bytes_of(other.stage));
        }
        rank.stages.push_back({.stage = stage,
                               .next_forward = chain.first,
                               .next_input = chain.first,
                               .end = chain.first + chain.count,
                               .reserve = reserve});
      }
    }
  }

  std::optional<Orders> run() {
    Orders orders(ranks_.size());
    std::vector<Choice> choices(ranks_.size());
    std::set<std::pair<double, std::size_t>> next;  // by the time at which each rank would begin
                                                    // its choice
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      choices[rank] = choose(rank);
      next.emplace(choices[rank].start, rank);
    }
    const auto choose_again = [&](std::size_t rank) {
      next.erase({choices[rank].start, rank});
      choices[rank] = choose(rank);
      next.emplace(choices[rank].start, rank);
    };
    for (; left_ > 0; --left_) {
      const auto [start, rank] = *next.begin();
      if (start == kNever) {
        return std::nullopt;
      }
      const Choice best = choices[rank];
      orders[rank].push_back(best.task);
      commit(ranks_[rank], best);
      // This choice cannot affect another rank's choice.
      choose_again(rank);
      if (const Task after = tasks_.follower(best.task); after.stage >= 0) {
        choose_again(static_cast<std::size_t>(tasks_.rank_of(after.stage)));
      }
    }
    return orders;
  }

 private:
  struct Stage {
    int stage = 0;
    int next_forward = 0;
    int next_input = 0;
    int end = 0;
    double reserve = 0;
  };
  struct Rank {
    std::vector<Stage> stages = {};
    std::deque<Task> weights = {};  // tasks whose I is done
    double now = 0;
    double bytes = 0;
    int open = 0;  // tasks whose F is done, but not their I
  };
  struct Choice {
    Task task = {};
    double start = kNever;
  };

  double bytes_of(int stage) const {
    return tasks_.pipeline().memory.activation_bytes[static_cast<std::size_t>(stage)];
  }

  // Returns the F or I (by `kind`) that can begin earliest.
  Choice earliest(const Rank& rank, int kind) const {
    Choice best;
    for (const Stage& stage : rank.stages) {
      const int microbatch = kind == 0 ? stage.next_forward : stage.next_input;
      if (microbatch >= stage.end || (kind == 1 && microbatch >= stage.next_forward)) {
        continue;
      }
      const Task task{stage.stage, microbatch, kind};
      if (kind == 0 && rank.bytes + bytes_of(stage.stage) + stage.reserve > most_bytes_) {
        continue;
      }
      const double ready = tasks_.ready(task, end_);
      if (ready >= 0 && std::max(rank.now, ready) < best.start) {
        best = {.task = task, .start = std::max(rank.now, ready)};
      }
    }
    return best;
  }

  int most_open(std::size_t rank) const {
    const auto to_end = static_cast<double>(ranks_.size() - rank);
    const auto stages = static_cast<double>(ranks_[rank].stages.size());
    return std::max(1, static_cast<int>(rule_.ahead * to_end * stages) + rule_.more);
  }

  Choice choose(std::size_t index) const {
    const Rank& rank = ranks_[index];
    Choice input = earliest(rank, 1);
    Choice forward = rank.open < most_open(index) ? earliest(rank, 0) : Choice{};
    Choice first = input.start <= forward.start ? input : forward;
    if (rule_.forward_first && forward.start <= rank.now) {
      first = forward;
    }
    if (!rank.weights.empty()) {
      const Task& weight = rank.weights.front();
      if (first.start - rank.now >= rule_.fill * tasks_.duration(weight) &&
          first.start > rank.now) {
        return {.task = weight, .start = rank.now};
      }
    }
    if (first.start == kNever && rank.open >= most_open(index)) {
      return earliest(rank, 0);  // otherwise the rule would stop here forever
    }
    return first;
  }

  void commit(Rank& rank, const Choice& choice) {
    const Task& task = choice.task;
    rank.now = choice.start + tasks_.duration(task);
    end_[tasks_.id(task)] = rank.now;
    const auto stage = static_cast<std::size_t>(task.stage);
    const StageMemory& memory = tasks_.pipeline().memory;
    if (task.kind == 2) {
      rank.weights.pop_front();
      rank.bytes -= memory.kept_bytes[stage];
      return;
    }
    const auto mine = std::find_if(rank.stages.begin(), rank.stages.end(),
                                   [&](const Stage& one) { return one.stage == task.stage; });
    if (task.kind == 0) {
      ++mine->next_forward;
      ++rank.open;
      rank.bytes += memory.activation_bytes[stage];
    } else {
      ++mine->next_input;
      --rank.open;
      rank.bytes += memory.kept_bytes[stage] - memory.activation_bytes[stage];
      rank.weights.push_back({task.stage, task.microbatch, 2});
    }
  }

  const Tasks& tasks_;
  const double most_bytes_;
  const GreedyRule& rule_;
  std::vector<Rank> ranks_;
  std::vector<double> end_;
  std::size_t left_ = 0;
};

}  // namespace

std::optional<Orders> greedy_orders(const Tasks& tasks, double most_bytes, const GreedyRule& rule) {
  return Greedy(tasks, most_bytes, rule).run();
}

}  // namespace unisono::pipeline
