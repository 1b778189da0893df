#include "experts/places.h"

#include <algorithm>
#include <numeric>

namespace unisono::experts {
namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

// Goes through the choices of all ranks in their order, (rank, token, slot), and calls
// visit(rank, token, slot, seat) for those that are served.
template <typename Visit>
void for_each_choice(const ExchangeOptions& options, const Seats& seats,
                     std::span<const Choices> choices, std::vector<std::int64_t>& chosen,
                     const Visit& visit) {
  chosen.assign(at(options.experts), 0);
  for (std::size_t source = 0; source < choices.size(); ++source) {
    std::int64_t token = 0;
    int slot = 0;
    for (const std::int32_t expert : choices[source]) {
      if (expert >= 0) {
        const std::int64_t before = chosen[at(expert)]++;
        if (options.capacity < 0 || before < options.capacity) {
          const auto& replicas = seats.of_expert[at(expert)];
          const Seats::Seat& seat =
              replicas.size() == 1 ? replicas[0] : replicas[at(before) % replicas.size()];
          visit(static_cast<int>(source), token, slot, seat);
        }
      }
      if (++slot == options.k) {
        slot = 0;
        ++token;
      }
    }
  }
}

// The first row of each seat among the rows of its rank, and the rows of the rank.
std::vector<std::int64_t> lay_out(const ExchangeOptions& options, const Seats& seats, int rank,
                                  std::span<const std::int64_t> rows_of_seats, Places& places) {
  std::vector<std::int64_t> first(rows_of_seats.size(), 0);
  const std::int64_t step = options.layout == ExpertLayout::expert_major ? options.alignment : 1;
  for (std::size_t r = 0; r + 1 < seats.first_of_rank.size(); ++r) {
    std::int64_t next = 0;
    for (int seat = seats.first_of_rank[r]; seat < seats.first_of_rank[r + 1]; ++seat) {
      first[at(seat)] = next;
      const std::int64_t rows = rows_of_seats[at(seat)];
      next += (rows + step - 1) / step * step;
      if (static_cast<int>(r) == rank) {
        places.first_row.push_back(first[at(seat)]);
        places.rows_of.push_back(rows);
      }
    }
    if (static_cast<int>(r) == rank) {
      places.rows = next;
    }
  }
  return first;
}

// Gives each served choice its row. Rows of expert_major are counted by seat, others by rank.
class Placing {
 public:
  Placing(const ExchangeOptions& options, const Seats& seats, int rank, Places& places)
      : options_(options), rank_(rank), places_(places) {
    const std::size_t ranks = seats.experts_of_rank.size();
    if (options.layout == ExpertLayout::rank_major) {
      latest_.assign(ranks, {});
      places.experts.assign(at(places.rows) * at(options.k), -1);
    } else {
      places.experts.assign(at(places.rows), -1);
    }
    places.sources.assign(at(places.rows), {});
  }

  void place(int source, std::int64_t token, int slot, const Seats::Seat& seat,
             std::vector<std::int64_t>& next) {
    const std::size_t counted =
        at(options_.layout == ExpertLayout::expert_major ? seat.number : seat.rank);
    std::int64_t row = 0;
    bool first = true;
    if (options_.layout == ExpertLayout::rank_major) {
      Latest& latest = latest_[at(seat.rank)];
      first = latest.source != source || latest.token != token;
      if (first) {
        latest = {.source = source, .token = token, .row = next[counted]++};
      }
      row = latest.row;
    } else {
      row = next[counted]++;
    }
    if (source == rank_ && first) {
      places_.places[at(token * options_.k + slot)] = {.row = row, .rank = seat.rank};
    }
    if (seat.rank != rank_) {
      return;
    }
    if (first) {
      places_.arrivals.push_back({.token = token, .row = row, .source = source, .slot = slot});
      places_.sources[at(row)] = {.rank = source, .token = token, .slot = slot};
      ++places_.first_arrival[at(source) + 1];
    }
    const bool many = options_.layout == ExpertLayout::rank_major;
    places_.experts[at(many ? row * options_.k + slot : row)] = seat.local;
  }

 private:
  struct Latest {
    int source = -1;
    std::int64_t token = -1;
    std::int64_t row = -1;
  };
  const ExchangeOptions& options_;
  int rank_;
  Places& places_;
  std::vector<Latest> latest_;  // rank_major, by rank: the token that got its latest row
};

}  // namespace

std::string find_mistake(const ExchangeOptions& options, int ranks) {
  if (options.experts < 1 || options.k < 1 || options.alignment < 1) {
    return "experts, k and alignment must be 1 or more";
  }
  if (options.k > options.experts) {
    return "k is " + std::to_string(options.k) + ", and there are " +
           std::to_string(options.experts) + " experts";
  }
  if (options.experts_of_rank.empty()) {
    return {};
  }
  if (options.experts_of_rank.size() != static_cast<std::size_t>(ranks)) {
    return "experts_of_rank has " + std::to_string(options.experts_of_rank.size()) +
           " ranks, and there are " + std::to_string(ranks);
  }
  std::vector<int> held(at(options.experts), 0);
  for (std::size_t rank = 0; rank < options.experts_of_rank.size(); ++rank) {
    std::vector<int> experts = options.experts_of_rank[rank];
    std::sort(experts.begin(), experts.end());
    for (std::size_t i = 0; i < experts.size(); ++i) {
      if (experts[i] < 0 || experts[i] >= options.experts) {
        return "experts_of_rank gives expert " + std::to_string(experts[i]) + " to rank " +
               std::to_string(rank) + ", and there are " + std::to_string(options.experts);
      }
      if (i > 0 && experts[i] == experts[i - 1]) {
        return "experts_of_rank gives expert " + std::to_string(experts[i]) + " to rank " +
               std::to_string(rank) + " twice";
      }
      ++held[at(experts[i])];
    }
  }
  const auto nobody = std::find(held.begin(), held.end(), 0);
  return nobody == held.end() ? std::string()
                              : "no rank holds expert " + std::to_string(nobody - held.begin());
}

Seats seats_of(const ExchangeOptions& options, int ranks) {
  Seats seats;
  seats.experts_of_rank = options.experts_of_rank;
  if (seats.experts_of_rank.empty()) {
    seats.experts_of_rank.resize(at(ranks));
    const int each = options.experts / ranks;
    const int larger = options.experts % ranks;
    for (int rank = 0, next = 0; rank < ranks; ++rank) {
      auto& experts = seats.experts_of_rank[at(rank)];
      experts.resize(at(each + (rank < larger ? 1 : 0)));
      std::iota(experts.begin(), experts.end(), next);
      next += static_cast<int>(experts.size());
    }
  }
  seats.of_expert.resize(at(options.experts));
  seats.first_of_rank.push_back(0);
  int number = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    int local = 0;
    for (const int expert : seats.experts_of_rank[at(rank)]) {
      seats.of_expert[at(expert)].push_back({.rank = rank, .local = local++, .number = number++});
    }
    seats.first_of_rank.push_back(number);
  }
  return seats;
}

Places find_places(const ExchangeOptions& options, const Seats& seats,
                   std::span<const Choices> choices, int rank) {
  Places places;
  const std::size_t ranks = choices.size();
  std::vector<std::int64_t> rows_of_seats(at(seats.first_of_rank.back()), 0);
  std::vector<std::int64_t> row_of_ranks(ranks, 0);
  std::vector<std::int64_t> latest(ranks, -1);  // rank_major: (source, token) as one number
  std::int64_t token_number = 0;
  std::int64_t seen_token = -1;
  int seen_source = -1;
  for_each_choice(options, seats, choices, places.chosen,
                  [&](int source, std::int64_t token, int, const Seats::Seat& seat) {
                    ++rows_of_seats[at(seat.number)];
                    if (options.layout != ExpertLayout::rank_major) {
                      ++row_of_ranks[at(seat.rank)];
                      return;
                    }
                    if (source != seen_source || token != seen_token) {
                      seen_source = source;
                      seen_token = token;
                      ++token_number;
                    }
                    if (latest[at(seat.rank)] != token_number) {
                      latest[at(seat.rank)] = token_number;
                      ++row_of_ranks[at(seat.rank)];
                    }
                  });
  const std::int64_t served =
      std::accumulate(rows_of_seats.begin(), rows_of_seats.end(), std::int64_t{0});
  places.dropped =
      std::accumulate(places.chosen.begin(), places.chosen.end(), std::int64_t{0}) - served;
  std::vector<std::int64_t> next = lay_out(options, seats, rank, rows_of_seats, places);
  if (options.layout != ExpertLayout::expert_major) {
    places.rows = row_of_ranks[at(rank)];
    next.assign(ranks, 0);
  }
  places.places.assign(choices[at(rank)].size(), {});
  places.first_arrival.assign(ranks + 1, 0);
  places.arrivals.reserve(at(row_of_ranks[at(rank)]));
  Placing placing(options, seats, rank, places);
  for_each_choice(options, seats, choices, places.chosen,
                  [&](int source, std::int64_t token, int slot, const Seats::Seat& seat) {
                    placing.place(source, token, slot, seat, next);
                  });
  std::partial_sum(places.first_arrival.begin(), places.first_arrival.end(),
                   places.first_arrival.begin());
  places.rows_of_ranks = std::move(row_of_ranks);
  return places;
}

}  // namespace unisono::experts
