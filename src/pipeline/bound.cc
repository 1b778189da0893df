#include "pipeline/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace unisono::pipeline {
namespace {

struct Rank {
  double first_forward = std::numeric_limits<double>::infinity();
  double first_input = std::numeric_limits<double>::infinity();
  double work = 0;
  double forward_work = 0;
  double forward_per_byte = 0;  // of the stage with the most work per byte of memory
  int stages = 0;
  double forward = 0;  // of its only stage; 0 if it has several
  double bytes = 0;
};

// Returns how much of F a rank can do before anything is freed.
double most_ahead(const Rank& rank, double most_bytes) {
  constexpr double kRounding = 1e-9;
  const double ahead = rank.stages == 1 && rank.bytes > 0
                           ? std::floor(most_bytes / rank.bytes * (1 + kRounding)) * rank.forward
                           : most_bytes * rank.forward_per_byte * (1 + kRounding);
  return std::min(rank.forward_work, ahead);
}

void add_chain(const Tasks& tasks, const Chain& chain, std::vector<Rank>& ranks) {
  const auto travel = [&](std::size_t place) {
    return tasks.rank_of(chain.stages[place]) == tasks.rank_of(chain.stages[place + 1])
               ? 0.0
               : tasks.pipeline().costs.transfer[static_cast<std::size_t>(chain.stages[place])];
  };
  const auto rank_of = [&](std::size_t place) -> Rank& {
    return ranks[static_cast<std::size_t>(tasks.rank_of(chain.stages[place]))];
  };
  double way = 0;
  for (std::size_t i = 0; i < chain.stages.size(); ++i) {
    const int stage = chain.stages[i];
    Rank& rank = rank_of(i);
    rank.first_forward = std::min(rank.first_forward, way);
    rank.forward = tasks.duration({stage, 0, 0});
    rank.bytes = tasks.pipeline().memory.activation_bytes[static_cast<std::size_t>(stage)];
    ++rank.stages;
    rank.forward_work += chain.count * rank.forward;
    rank.forward_per_byte =
        std::max(rank.forward_per_byte, rank.bytes > 0 ? rank.forward / rank.bytes
                                                       : std::numeric_limits<double>::infinity());
    for (const int kind : {0, 1, 2}) {
      rank.work += chain.count * tasks.duration({stage, 0, kind});
    }
    way += rank.forward + (i + 1 < chain.stages.size() ? travel(i) : 0);
  }
  for (std::size_t i = chain.stages.size(); i-- > 0;) {
    Rank& rank = rank_of(i);
    rank.first_input = std::min(rank.first_input, way);
    way += tasks.duration({chain.stages[i], 0, 1}) + (i > 0 ? travel(i - 1) : 0);
  }
}

}  // namespace

double least_makespan(const Tasks& tasks, double most_bytes) {
  std::vector<Rank> ranks(static_cast<std::size_t>(tasks.pipeline().ranks));
  for (const Chain& chain : tasks.pipeline().chains) {
    if (chain.count > 0) {
      add_chain(tasks, chain, ranks);
    }
  }
  double least = 0;
  for (const Rank& rank : ranks) {
    if (rank.stages > 0) {
      least = std::max({least, rank.first_forward + rank.work,
                        rank.first_input + rank.work - most_ahead(rank, most_bytes)});
    }
  }
  return least;
}

}  // namespace unisono::pipeline
