#include "experts/places.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

namespace unisono::experts {
namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

// Returns how many of the choices [begin, end) replica `index` of `replicas` serves; replicas take
// turns.
std::int64_t served(std::int64_t begin, std::int64_t end, std::size_t replicas, std::size_t index) {
  const auto n = static_cast<std::int64_t>(replicas);
  const std::int64_t before = n - 1 - static_cast<std::int64_t>(index);
  return (end + before) / n - (begin + before) / n;
}

// Calls visit(source, seat, rows) for all seats with the number of rows that the source has for
// each. `first`: by expert, the number of choices of lower ranks; filled for `rank`.
template <typename Visit>
void for_each_share(const ExchangeOptions& options, const Seats& seats,
                    std::span<const std::uint32_t> counts, int rank,
                    std::vector<std::int64_t>& first, std::vector<std::int64_t>& chosen,
                    const Visit& visit) {
  const std::size_t experts = seats.of_expert.size();
  const std::size_t ranks = seats.experts_of_rank.size();
  chosen.assign(experts, 0);
  for (std::size_t source = 0; source < ranks; ++source) {
    if (source == at(rank)) {
      first = chosen;
    }
    for (std::size_t expert = 0; expert < experts; ++expert) {
      const std::uint32_t count = counts[source * experts + expert];
      if (count == 0) {
        continue;
      }
      const auto taken = [&](std::int64_t number) {
        return options.capacity < 0 ? number : std::min(number, options.capacity);
      };
      const std::int64_t begin = taken(chosen[expert]);
      chosen[expert] += count;
      const std::int64_t end = taken(chosen[expert]);
      const auto& replicas = seats.of_expert[expert];
      for (std::size_t i = 0; i < replicas.size(); ++i) {
        visit(source, replicas[i], served(begin, end, replicas.size(), i));
      }
    }
  }
}

// Returns the first row of each seat among the rows of its rank, and the number of rows of `rank`.
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

}  // namespace

std::string find_mistake(const ExchangeOptions& options, int ranks) {
  if (options.experts < 1 || options.k < 1 || options.alignment < 1) {
    return "experts, k and alignment must be 1 or more";
  }
  if (options.capacity < -1) {
    return "capacity is " + std::to_string(options.capacity) + "; it is -1 (none), or 0 or more";
  }
  if (options.k > options.experts) {
    return "k is " + std::to_string(options.k) + ", and there are " +
           std::to_string(options.experts) + " experts";
  }
  constexpr std::size_t kMostChoices = std::numeric_limits<std::uint32_t>::max();
  if (options.max_tokens > kMostChoices / at(options.k)) {
    return "max_tokens is " + std::to_string(options.max_tokens) +
           ", and a rank can make 4294967295 choices at once";
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

std::vector<std::uint32_t> count_choices(const ExchangeOptions& options,
                                         std::span<const std::int32_t> choices) {
  std::vector<std::uint32_t> counts(at(options.experts), 0);
  for (const std::int32_t expert : choices) {
    if (expert >= 0) {
      ++counts[at(expert)];
    }
  }
  return counts;
}

Leaving place_choices(const ExchangeOptions& options, const Seats& seats,
                      std::span<const std::uint32_t> counts, std::span<const std::int32_t> choices,
                      int rank, Places& places) {
  const std::size_t ranks = seats.experts_of_rank.size();
  const bool by_expert = options.layout == ExpertLayout::expert_major;
  Leaving leaving;
  leaving.send.assign(ranks, 0);
  leaving.receive.assign(ranks, 0);
  std::vector<std::int64_t> first;  // by expert
  std::vector<std::int64_t> rows_of_seats(at(seats.first_of_rank.back()), 0);
  std::vector<std::int64_t> next_of_rank(ranks, 0);  // flat: this rank's first row there
  places.rows_of_ranks.assign(ranks, 0);
  std::int64_t all = 0;
  for_each_share(options, seats, counts, rank, first, places.chosen,
                 [&](std::size_t source, const Seats::Seat& seat, std::int64_t rows) {
                   all += rows;
                   rows_of_seats[at(seat.number)] += rows;
                   places.rows_of_ranks[at(seat.rank)] += rows;
                   if (static_cast<int>(source) < rank) {
                     next_of_rank[at(seat.rank)] += rows;
                   } else if (static_cast<int>(source) == rank) {
                     leaving.send[at(seat.rank)] += at(rows);
                   }
                   if (seat.rank == rank) {
                     leaving.receive[source] += at(rows);
                   }
                 });
  places.dropped =
      std::accumulate(places.chosen.begin(), places.chosen.end(), std::int64_t{0}) - all;
  const std::vector<std::int64_t> first_row = lay_out(options, seats, rank, rows_of_seats, places);
  if (!by_expert) {
    places.rows = places.rows_of_ranks[at(rank)];
  }

  const bool by_token = options.layout == ExpertLayout::rank_major;
  std::vector<std::size_t> latest(by_token ? ranks : 0, choices.size());  // token
  leaving.rows.assign(by_token ? ranks : 0, 0);
  std::vector<std::size_t> next_told(ranks, 0);
  std::exclusive_scan(leaving.send.begin(), leaving.send.end(), next_told.begin(), std::size_t{0});
  leaving.told.resize(std::accumulate(leaving.send.begin(), leaving.send.end(), std::size_t{0}));
  places.places.assign(choices.size(), {});
  for (std::size_t choice = 0; choice < choices.size(); ++choice) {
    if (choices[choice] < 0) {
      continue;
    }
    const auto expert = at(choices[choice]);
    const std::int64_t number = first[expert]++;
    if (options.capacity >= 0 && number >= options.capacity) {
      continue;
    }
    const auto& replicas = seats.of_expert[expert];
    const auto turn = std::lldiv(number, static_cast<std::int64_t>(replicas.size()));
    const Seats::Seat& seat = replicas[at(turn.rem)];
    leaving.told[next_told[at(seat.rank)]++] = {.choice = static_cast<std::uint32_t>(choice),
                                                .local = static_cast<std::uint32_t>(seat.local)};
    Place& place = places.places[choice];
    if (by_expert) {
      place = {.row = first_row[at(seat.number)] + turn.quot, .rank = seat.rank};
    } else if (!by_token) {
      place = {.row = next_of_rank[at(seat.rank)]++, .rank = seat.rank};
    } else if (const std::size_t token = choice / at(options.k); latest[at(seat.rank)] != token) {
      latest[at(seat.rank)] = token;
      place = {.row = leaving.rows[at(seat.rank)]++, .rank = seat.rank};
    }
  }
  return leaving;
}

void add_first_rows(std::span<const std::uint32_t> rows, int rank, Places& places) {
  const std::size_t ranks = places.rows_of_ranks.size();
  std::vector<std::int64_t> first(ranks, 0);
  places.rows_of_ranks.assign(ranks, 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    places.rows_of_ranks[i % ranks] += rows[i];
    if (static_cast<int>(i / ranks) < rank) {
      first[i % ranks] += rows[i];
    }
  }
  for (Place& place : places.places) {
    if (place.rank >= 0) {
      place.row += first[at(place.rank)];
    }
  }
  places.rows = places.rows_of_ranks[at(rank)];
}

void take_arrivals(const ExchangeOptions& options, const Leaving& leaving,
                   std::span<const Told> told, std::span<const Crossing> crossings,
                   Places& places) {
  const auto k = at(options.k);
  const bool by_token = options.layout == ExpertLayout::rank_major;
  std::vector<std::int64_t> next =  // by local expert; other layouts count all rows together
      options.layout == ExpertLayout::expert_major ? places.first_row : std::vector<std::int64_t>();
  std::int64_t rows = 0;
  places.experts.assign(at(places.rows) * (by_token ? k : 1), -1);
  places.sources.assign(at(places.rows), {});
  places.first_arrival.assign(leaving.receive.size() + 1, 0);
  places.arrivals.reserve(by_token ? at(places.rows) : told.size());
  for (std::size_t source = 0, i = 0; source < leaving.receive.size(); ++source) {
    std::int64_t latest = -1;
    for (const std::size_t end = i + leaving.receive[source]; i < end; ++i) {
      const Told& one = told[i];
      const auto token = static_cast<std::int64_t>(one.choice / k);
      const auto slot = static_cast<int>(one.choice % k);
      const bool is_new = !by_token || token != std::exchange(latest, token);
      const std::int64_t row = !next.empty() ? next[one.local]++ : (is_new ? rows++ : rows - 1);
      if (is_new) {
        places.arrivals.push_back({.token = token,
                                   .row = row,
                                   .source = static_cast<int>(source),
                                   .slot = slot,
                                   .crossing = crossings.empty() ? Crossing() : crossings[i]});
        places.sources[at(row)] = {.rank = static_cast<int>(source), .token = token, .slot = slot};
      }
      places.experts[by_token ? at(row) * k + at(slot) : at(row)] = static_cast<int>(one.local);
    }
    places.first_arrival[source + 1] = places.arrivals.size();
  }
}

}  // namespace unisono::experts
