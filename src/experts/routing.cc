// Where each row goes, from all ranks' choices: one pass that counts, one that places.
#include <algorithm>
#include <numeric>
#include <utility>

#include "experts/state.h"

namespace unisono::parallel {
namespace detail {
namespace {

// The same choices are dropped on all ranks, because all see all in one order.
void drop_beyond_capacity(const ExchangeOptions& options, std::vector<std::int32_t>& choices,
                          RoutingState& state) {
  state.loads.assign(static_cast<std::size_t>(options.experts), 0);
  for (std::int32_t& expert : choices) {
    if (expert < 0) {
      continue;
    }
    std::int64_t& load = state.loads[static_cast<std::size_t>(expert)];
    if (options.capacity > 0 && load == options.capacity) {
      expert = -1;
      ++state.dropped;
    } else {
      ++load;
    }
  }
}

// The first row of each expert of this rank, by expert of all; and offsets of this rank's.
std::vector<std::size_t> first_rows(const ExchangeOptions& options, int rank, RoutingState& state) {
  std::vector<std::size_t> first(static_cast<std::size_t>(options.experts), 0);
  std::int64_t row = 0;
  for (std::size_t expert = 0; expert < first.size(); ++expert) {
    if (options.places[expert] != rank) {
      continue;
    }
    first[expert] = static_cast<std::size_t>(row);
    state.offsets.push_back(row);
    const std::int64_t blocks = (state.loads[expert] + options.alignment - 1) / options.alignment;
    row += blocks * options.alignment;
  }
  state.offsets.push_back(row);
  state.sources.resize(static_cast<std::size_t>(row));
  return first;
}

// The distinct ranks of one token's choices, in the order of their first choice.
class Visits {
 public:
  explicit Visits(int ranks) : last_(static_cast<std::size_t>(ranks), 0) {}
  void next_token() { ++token_; }
  bool first(int rank) {
    std::uint64_t& last = last_[static_cast<std::size_t>(rank)];
    return std::exchange(last, token_) != token_;
  }

 private:
  std::vector<std::uint64_t> last_;
  std::uint64_t token_ = 0;
};

struct Placing {
  const ExchangeOptions& options;
  int rank;
  std::vector<std::size_t> next;             // expert_major: the next row of each expert
  std::vector<std::vector<std::size_t>> to;  // own tokens by rank that they go to
  std::vector<std::int64_t> home_rank;       // by own token and choice
  std::size_t arrivals = 0;
};

// A choice of an expert of this rank.
void receive(Placing& placing, RoutingState& state, const RowSource& source, std::int32_t expert,
             bool first) {
  const auto from = static_cast<std::size_t>(source.rank);
  const bool by_token = placing.options.layout == ExpertLayout::rank_major;
  if (first) {
    ++state.recv_counts[from];
    ++placing.arrivals;
  }
  if (by_token && !first) {
    return;
  }
  std::size_t row = state.placed.size();
  if (placing.options.layout == ExpertLayout::expert_major) {
    row = placing.next[static_cast<std::size_t>(expert)]++;
    state.sources[row] = source;
  } else {
    state.sources.push_back(
        {.rank = source.rank, .choice = by_token ? -1 : source.choice, .token = source.token});
  }
  state.placed.push_back({.arrival = placing.arrivals - 1, .row = row});
  ++state.back_counts[from];
}

// A choice of a token of this rank.
void leave(Placing& placing, RoutingState& state, std::size_t token, std::size_t slot, int to,
           bool first) {
  const auto target = static_cast<std::size_t>(to);
  if (first) {
    placing.to[target].push_back(token);
  }
  if (first || placing.options.layout != ExpertLayout::rank_major) {
    placing.home_rank[slot] = to;
    state.home[slot] = static_cast<std::int64_t>(state.home_counts[target]++);
  }
}

void finish_home(const Placing& placing, RoutingState& state) {
  for (const std::vector<std::size_t>& tokens : placing.to) {
    state.send_counts.push_back(tokens.size());
    state.sent_tokens.insert(state.sent_tokens.end(), tokens.begin(), tokens.end());
  }
  std::vector<std::size_t> before(state.home_counts.size(), 0);
  std::exclusive_scan(state.home_counts.begin(), state.home_counts.end(), before.begin(),
                      std::size_t{0});
  for (std::size_t slot = 0; slot < state.home.size(); ++slot) {
    if (state.home[slot] >= 0) {
      state.home[slot] +=
          static_cast<std::int64_t>(before[static_cast<std::size_t>(placing.home_rank[slot])]);
    }
  }
}

}  // namespace

std::vector<std::size_t> scaled(std::span<const std::size_t> counts, std::size_t bytes) {
  std::vector<std::size_t> result;
  for (const std::size_t count : counts) {
    result.push_back(count * bytes);
  }
  return result;
}

RoutingState make_routing(const ExchangeOptions& options, int rank,
                          std::span<const std::size_t> tokens, std::vector<std::int32_t> choices) {
  RoutingState state;
  const std::size_t ranks = tokens.size();
  const auto k = static_cast<std::size_t>(options.k);
  const std::size_t own = tokens[static_cast<std::size_t>(rank)];
  state.tokens = static_cast<std::int64_t>(own);
  state.recv_counts.assign(ranks, 0);
  state.back_counts.assign(ranks, 0);
  state.home_counts.assign(ranks, 0);
  state.home.assign(own * k, -1);
  drop_beyond_capacity(options, choices, state);
  Placing placing{.options = options,
                  .rank = rank,
                  .next = {},
                  .to = std::vector<std::vector<std::size_t>>(ranks),
                  .home_rank = std::vector<std::int64_t>(own * k, -1)};
  if (options.layout == ExpertLayout::expert_major) {
    placing.next = first_rows(options, rank, state);
  }
  Visits visits(static_cast<int>(ranks));
  const std::int32_t* choice = choices.data();
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t token = 0; token < tokens[from]; ++token) {
      visits.next_token();
      for (std::size_t j = 0; j < k; ++j, ++choice) {
        if (*choice < 0) {
          continue;
        }
        const int to = options.places[static_cast<std::size_t>(*choice)];
        const bool first = visits.first(to);
        if (to == rank) {
          receive(placing, state,
                  {.rank = static_cast<int>(from),
                   .choice = static_cast<int>(j),
                   .token = static_cast<std::int64_t>(token)},
                  *choice, first);
        }
        if (static_cast<int>(from) == rank) {
          leave(placing, state, token, token * k + j, to, first);
        }
      }
    }
  }
  finish_home(placing, state);
  return state;
}

}  // namespace detail

Routing::Routing(std::unique_ptr<const detail::RoutingState> state) : state_(std::move(state)) {}
Routing::Routing(Routing&&) noexcept = default;
Routing& Routing::operator=(Routing&&) noexcept = default;
Routing::~Routing() = default;
std::int64_t Routing::tokens() const {
  return state_->tokens;
}
std::int64_t Routing::rows() const {
  return static_cast<std::int64_t>(state_->sources.size());
}
std::span<const RowSource> Routing::sources() const {
  return state_->sources;
}
std::span<const std::int64_t> Routing::expert_offsets() const {
  return state_->offsets;
}
std::span<const std::int64_t> Routing::loads() const {
  return state_->loads;
}
std::int64_t Routing::dropped() const {
  return state_->dropped;
}

}  // namespace unisono::parallel
