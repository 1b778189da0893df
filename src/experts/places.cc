#include "experts/places.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

#include "base/as_size.h"

namespace unisono::experts {
namespace {

// Returns how many of the choices [begin, end) replica `index` serves. Replicas take turns.
std::int64_t served(std::int64_t begin, std::int64_t end, std::size_t replicas, std::size_t index) {
  const auto n = static_cast<std::int64_t>(replicas);
  const std::int64_t before = n - 1 - static_cast<std::int64_t>(index);
  return (end + before) / n - (begin + before) / n;
}

// Calls visit(source, physical expert, rows) with the number of rows from each source for each
// physical expert. Sets `first` to the number of choices of ranks below `rank`, by expert.
template <typename Visit>
void for_each_share(const ExpertExchangeOptions& options, const PhysicalExperts& physical_experts,
                    std::span<const std::uint32_t> counts, int rank,
                    std::vector<std::int64_t>& first, std::vector<std::int64_t>& chosen,
                    const Visit& visit) {
  const std::size_t experts = physical_experts.of_expert.size();
  const std::size_t ranks = physical_experts.experts_of_rank.size();
  chosen.assign(experts, 0);
  for (std::size_t source = 0; source < ranks; ++source) {
    if (source == as_size(rank)) {
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
      const auto& replicas = physical_experts.of_expert[expert];
      for (std::size_t i = 0; i < replicas.size(); ++i) {
        visit(source, replicas[i], served(begin, end, replicas.size(), i));
      }
    }
  }
}

// Returns the first row of each physical expert on its rank. Also sets the row counts of `rank` in
// `places`.
std::vector<std::int64_t> lay_out(const ExpertExchangeOptions& options,
                                  const PhysicalExperts& physical_experts, int rank,
                                  std::span<const std::int64_t> rows_of_physical, Places& places) {
  std::vector<std::int64_t> first(rows_of_physical.size(), 0);
  const std::int64_t step = options.layout == ExpertLayout::expert_major ? options.alignment : 1;
  for (std::size_t r = 0; r + 1 < physical_experts.first_of_rank.size(); ++r) {
    std::int64_t next = 0;
    for (int physical = physical_experts.first_of_rank[r];
         physical < physical_experts.first_of_rank[r + 1]; ++physical) {
      first[as_size(physical)] = next;
      const std::int64_t rows = rows_of_physical[as_size(physical)];
      next += (rows + step - 1) / step * step;
      if (static_cast<int>(r) == rank) {
        places.first_row.push_back(first[as_size(physical)]);
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

std::string find_mistake(const ExpertExchangeOptions& options, int ranks) {
  if (options.experts < 1 || options.k < 1 || options.alignment < 1) {
    return "experts, k and alignment must be 1 or more";
  }
  if (options.capacity < -1) {
    return "capacity is " + std::to_string(options.capacity) +
           ", but must be -1 (no limit), 0 or more";
  }
  if (options.k > options.experts) {
    return "k is " + std::to_string(options.k) + ", but there are " +
           std::to_string(options.experts) + " experts";
  }
  constexpr std::size_t kMostChoices = std::numeric_limits<std::uint32_t>::max();
  if (options.max_tokens > kMostChoices / as_size(options.k)) {
    return "max_tokens is " + std::to_string(options.max_tokens) +
           ", but a rank can make at most 4294967295 choices at once";
  }
  if (options.experts_of_rank.empty()) {
    return {};
  }
  if (options.experts_of_rank.size() != static_cast<std::size_t>(ranks)) {
    return "experts_of_rank has " + std::to_string(options.experts_of_rank.size()) +
           " ranks, but there are " + std::to_string(ranks);
  }
  std::vector<int> held(as_size(options.experts), 0);
  for (std::size_t rank = 0; rank < options.experts_of_rank.size(); ++rank) {
    std::vector<int> experts = options.experts_of_rank[rank];
    std::sort(experts.begin(), experts.end());
    for (std::size_t i = 0; i < experts.size(); ++i) {
      if (experts[i] < 0 || experts[i] >= options.experts) {
        return "experts_of_rank gives expert " + std::to_string(experts[i]) + " to rank " +
               std::to_string(rank) + ", but there are " + std::to_string(options.experts);
      }
      if (i > 0 && experts[i] == experts[i - 1]) {
        return "experts_of_rank gives expert " + std::to_string(experts[i]) + " to rank " +
               std::to_string(rank) + " twice";
      }
      ++held[as_size(experts[i])];
    }
  }
  const auto nobody = std::find(held.begin(), held.end(), 0);
  return nobody == held.end() ? std::string()
                              : "no rank holds expert " + std::to_string(nobody - held.begin());
}

PhysicalExperts physical_experts_of(const ExpertExchangeOptions& options, int ranks) {
  PhysicalExperts physical_experts;
  physical_experts.experts_of_rank = options.experts_of_rank;
  if (physical_experts.experts_of_rank.empty()) {
    physical_experts.experts_of_rank.resize(as_size(ranks));
    const int each = options.experts / ranks;
    const int larger = options.experts % ranks;
    for (int rank = 0, next = 0; rank < ranks; ++rank) {
      auto& experts = physical_experts.experts_of_rank[as_size(rank)];
      experts.resize(as_size(each + (rank < larger ? 1 : 0)));
      std::iota(experts.begin(), experts.end(), next);
      next += static_cast<int>(experts.size());
    }
  }
  physical_experts.of_expert.resize(as_size(options.experts));
  physical_experts.first_of_rank.push_back(0);
  int number = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    int local = 0;
    for (const int expert : physical_experts.experts_of_rank[as_size(rank)]) {
      physical_experts.of_expert[as_size(expert)].push_back(
          {.rank = rank, .local = local++, .number = number++});
    }
    physical_experts.first_of_rank.push_back(number);
  }
  return physical_experts;
}

std::vector<std::uint32_t> count_choices(const ExpertExchangeOptions& options,
                                         std::span<const std::int32_t> choices) {
  std::vector<std::uint32_t> counts(as_size(options.experts), 0);
  for (const std::int32_t expert : choices) {
    if (expert >= 0) {
      ++counts[as_size(expert)];
    }
  }
  return counts;
}

SendLayout place_choices(const ExpertExchangeOptions& options,
                         const PhysicalExperts& physical_experts,
                         std::span<const std::uint32_t> counts,
                         std::span<const std::int32_t> choices, int rank, Places& places) {
  const std::size_t ranks = physical_experts.experts_of_rank.size();
  const bool by_expert = options.layout == ExpertLayout::expert_major;
  SendLayout send_layout;
  send_layout.send.assign(ranks, 0);
  send_layout.receive.assign(ranks, 0);
  std::vector<std::int64_t> first;  // by expert
  std::vector<std::int64_t> rows_of_physical(as_size(physical_experts.first_of_rank.back()), 0);
  std::vector<std::int64_t> next_of_rank(ranks, 0);  // flat: this rank's next row on each rank
  places.rows_of_ranks.assign(ranks, 0);
  std::int64_t all = 0;
  for_each_share(
      options, physical_experts, counts, rank, first, places.chosen,
      [&](std::size_t source, const PhysicalExperts::PhysicalExpert& physical, std::int64_t rows) {
        all += rows;
        rows_of_physical[as_size(physical.number)] += rows;
        places.rows_of_ranks[as_size(physical.rank)] += rows;
        if (static_cast<int>(source) < rank) {
          next_of_rank[as_size(physical.rank)] += rows;
        } else if (static_cast<int>(source) == rank) {
          send_layout.send[as_size(physical.rank)] += as_size(rows);
        }
        if (physical.rank == rank) {
          send_layout.receive[source] += as_size(rows);
        }
      });
  places.dropped =
      std::accumulate(places.chosen.begin(), places.chosen.end(), std::int64_t{0}) - all;
  const std::vector<std::int64_t> first_row =
      lay_out(options, physical_experts, rank, rows_of_physical, places);
  if (!by_expert) {
    places.rows = places.rows_of_ranks[as_size(rank)];
  }

  const bool by_token = options.layout == ExpertLayout::rank_major;
  std::vector<std::size_t> latest(by_token ? ranks : 0, choices.size());  // latest token per rank
  send_layout.rows.assign(by_token ? ranks : 0, 0);
  std::vector<std::size_t> next_message(ranks, 0);
  std::exclusive_scan(send_layout.send.begin(), send_layout.send.end(), next_message.begin(),
                      std::size_t{0});
  send_layout.messages.resize(
      std::accumulate(send_layout.send.begin(), send_layout.send.end(), std::size_t{0}));
  places.places.assign(choices.size(), {});
  for (std::size_t choice = 0; choice < choices.size(); ++choice) {
    if (choices[choice] < 0) {
      continue;
    }
    const auto expert = as_size(choices[choice]);
    const std::int64_t number = first[expert]++;
    if (options.capacity >= 0 && number >= options.capacity) {
      continue;
    }
    const auto& replicas = physical_experts.of_expert[expert];
    const auto turn = std::lldiv(number, static_cast<std::int64_t>(replicas.size()));
    const PhysicalExperts::PhysicalExpert& physical = replicas[as_size(turn.rem)];
    send_layout.messages[next_message[as_size(physical.rank)]++] = {
        .choice = static_cast<std::uint32_t>(choice),
        .local = static_cast<std::uint32_t>(physical.local)};
    Place& place = places.places[choice];
    if (by_expert) {
      place = {.row = first_row[as_size(physical.number)] + turn.quot, .rank = physical.rank};
    } else if (!by_token) {
      place = {.row = next_of_rank[as_size(physical.rank)]++, .rank = physical.rank};
    } else if (const std::size_t token = choice / as_size(options.k);
               latest[as_size(physical.rank)] != token) {
      latest[as_size(physical.rank)] = token;
      place = {.row = send_layout.rows[as_size(physical.rank)]++, .rank = physical.rank};
    }
  }
  return send_layout;
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
      place.row += first[as_size(place.rank)];
    }
  }
  places.rows = places.rows_of_ranks[as_size(rank)];
}

void take_arrivals(const ExpertExchangeOptions& options, const SendLayout& send_layout,
                   std::span<const ChoiceMessage> messages,
                   std::span<const InterHostIndex> inter_host, Places& places) {
  const auto k = as_size(options.k);
  const bool by_token = options.layout == ExpertLayout::rank_major;
  std::vector<std::int64_t> next =  // per local expert; other layouts use one counter
      options.layout == ExpertLayout::expert_major ? places.first_row : std::vector<std::int64_t>();
  std::int64_t rows = 0;
  places.experts.assign(as_size(places.rows) * (by_token ? k : 1), -1);
  places.sources.assign(as_size(places.rows), {});
  places.first_arrival.assign(send_layout.receive.size() + 1, 0);
  places.arrivals.reserve(by_token ? as_size(places.rows) : messages.size());
  for (std::size_t source = 0, i = 0; source < send_layout.receive.size(); ++source) {
    std::int64_t latest = -1;
    for (const std::size_t end = i + send_layout.receive[source]; i < end; ++i) {
      const ChoiceMessage& one = messages[i];
      const auto token = static_cast<std::int64_t>(one.choice / k);
      const auto slot = static_cast<int>(one.choice % k);
      const bool is_new = !by_token || token != std::exchange(latest, token);
      const std::int64_t row = !next.empty() ? next[one.local]++ : (is_new ? rows++ : rows - 1);
      if (is_new) {
        places.arrivals.push_back(
            {.token = token,
             .row = row,
             .source = static_cast<int>(source),
             .slot = slot,
             .inter_host_index = inter_host.empty() ? InterHostIndex() : inter_host[i]});
        places.sources[as_size(row)] = {
            .rank = static_cast<int>(source), .token = token, .slot = slot};
      }
      places.experts[by_token ? as_size(row) * k + as_size(slot) : as_size(row)] =
          static_cast<int>(one.local);
    }
    places.first_arrival[source + 1] = places.arrivals.size();
  }
}

}  // namespace unisono::experts
