#include "pipeline/search.h"

#include <algorithm>
#include <random>
#include <utility>

namespace unisono::pipeline {
namespace {

struct Place {
  std::size_t rank = 0;
  std::size_t index = 0;
};

class Search {
 public:
  Search(const Tasks& tasks, Orders& orders, double most_bytes, std::uint64_t seed)
      : tasks_(tasks), orders_(orders), most_bytes_(most_bytes), random_(seed) {
    tasks_.time(orders_, timing_);
    place_.resize(tasks.count());
    for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
      note_places(rank);
    }
  }

  void run(double work, double enough) {
    std::size_t all = 1;
    for (const std::vector<Task>& order : orders_) {
      all += order.size();
    }
    const auto rounds = static_cast<std::size_t>(work / static_cast<double>(all));
    find_blocked();
    double least = timing_.makespan;
    Orders best = orders_;
    // Also accepts slightly longer orders, less and less often, to leave local minima.
    constexpr double kLonger = 0.003;
    for (std::size_t round = 0; round < rounds && !blocked_.empty() && least > enough; ++round) {
      const double left = 1 - static_cast<double>(round) / static_cast<double>(rounds);
      const Place place = blocked_[random_() % blocked_.size()];
      try_move(place, least * (1 + kLonger * left));
      if (timing_.makespan < least) {
        least = timing_.makespan;
        best = orders_;
      }
    }
    orders_ = std::move(best);
  }

 private:
  void note_places(std::size_t rank) {
    for (std::size_t i = 0; i < orders_[rank].size(); ++i) {
      place_[tasks_.id(orders_[rank][i])] = {.rank = rank, .index = i};
    }
  }

  // Finds the tasks on the longest path that begin when their rank's previous task ends, although
  // all their inputs were available earlier.
  void find_blocked() {
    blocked_.clear();
    Place at;
    double last = -1;
    for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
      if (!orders_[rank].empty() && timing_.end[tasks_.id(orders_[rank].back())] > last) {
        at = {.rank = rank, .index = orders_[rank].size() - 1};
        last = timing_.end[tasks_.id(orders_[rank].back())];
      }
    }
    while (true) {
      const Task& task = orders_[at.rank][at.index];
      const double start = timing_.start[tasks_.id(task)];
      const double ready = tasks_.ready(task, timing_.end);
      if (start > ready && at.index > 0) {
        blocked_.push_back(at);
        --at.index;
        continue;
      }
      if (start <= 0) {
        return;
      }
      const Tasks::Needs needs = tasks_.needs(task);
      const bool is_far =
          needs.far.stage >= 0 && timing_.end[tasks_.id(needs.far)] + needs.travel >= ready;
      at = place_[tasks_.id(is_far ? needs.far : needs.near)];
    }
  }

  // Moves either the blocked task some places ahead, or one of the tasks before it behind it.
  void try_move(const Place& place, double longest) {
    std::vector<Task>& order = orders_[place.rank];
    constexpr std::size_t kFar = 12;
    const std::size_t far = 1 + random_() % std::min(place.index, kFar);
    std::size_t from = place.index;
    std::size_t to = place.index - far;
    if (random_() % 2 == 0) {
      std::swap(from, to);
      const std::size_t room = order.size() - 1 - to;
      to += room == 0 ? 0 : random_() % (std::min(room, kFar) + 1);
    }
    move(order, from, to);
    if (is_in_order(order, from, to) && tasks_.peak_bytes(order) <= most_bytes_) {
      tasks_.time(orders_, trial_);
      if (trial_.makespan <= longest) {
        std::swap(timing_, trial_);
        note_places(place.rank);
        find_blocked();
        return;
      }
    }
    move(order, to, from);
  }

  static void move(std::vector<Task>& order, std::size_t from, std::size_t to) {
    const auto begin = order.begin();
    const auto at = [&](std::size_t i) { return begin + static_cast<std::ptrdiff_t>(i); };
    if (from < to) {
      std::rotate(at(from), at(from) + 1, at(to) + 1);
    } else {
      std::rotate(at(to), at(from), at(from) + 1);
    }
  }

  // F, I and W of a microbatch of a stage keep their order, and so do microbatches of one kind.
  static bool is_in_order(const std::vector<Task>& order, std::size_t from, std::size_t to) {
    const Task& moved = order[to];
    const std::size_t first = std::min(from, to);
    const std::size_t last = std::max(from, to);
    for (std::size_t i = first; i <= last; ++i) {
      const Task& other = order[i];
      if (i == to || other.stage != moved.stage) {
        continue;
      }
      const bool is_behind = i > to;
      if (other.kind == moved.kind && (other.microbatch > moved.microbatch) != is_behind) {
        return false;
      }
      if (other.microbatch == moved.microbatch && (other.kind > moved.kind) != is_behind) {
        return false;
      }
    }
    return true;
  }

  const Tasks& tasks_;
  Orders& orders_;
  const double most_bytes_;
  std::mt19937_64 random_;
  Timing timing_;
  Timing trial_;
  std::vector<Place> place_;  // by task
  std::vector<Place> blocked_;
};

}  // namespace

void better(const Tasks& tasks, Orders& orders, const SearchLimits& limits, std::uint64_t seed) {
  Search(tasks, orders, limits.most_bytes, seed).run(limits.work, limits.enough);
}

}  // namespace unisono::pipeline
