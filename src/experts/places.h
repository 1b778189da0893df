// Where each row of an exchange goes: computed by every rank from the choices of all, by counting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "unisono/parallel/experts.hpp"

namespace unisono::experts {

// A seat is one expert at one rank: experts with replicas have several.
struct Seats {
  struct Seat {
    int rank = 0;
    int local = 0;  // its number among the experts of the rank
    int number = 0;
  };
  std::vector<std::vector<Seat>> of_expert;
  std::vector<std::vector<int>> experts_of_rank;
  std::vector<int> first_of_rank;  // number of the rank's first seat; one more at the end
};

// What is wrong with the options; empty: nothing.
std::string find_mistake(const ExchangeOptions& options, int ranks);
// REQUIRES: no mistake.
Seats seats_of(const ExchangeOptions& options, int ranks);

// The choices of one rank: [tokens][k], row-major.
using Choices = std::span<const std::int32_t>;

// A row that comes to this rank, in the order (source rank, token, slot).
struct Arrival {
  std::int64_t token = 0;
  std::int64_t row = 0;  // of the output
  int source = 0;
  int slot = 0;
};

// Where the row of one of this rank's choices is.
struct Place {
  std::int64_t row = -1;
  int rank = -1;  // -1: nowhere
};

struct Places {
  std::vector<Arrival> arrivals;
  std::vector<std::size_t> first_arrival;  // by source rank; one more at the end
  std::vector<Place> places;               // [tokens][k] of this rank; rank_major: at first slots
  std::int64_t rows = 0;                   // here, with padding
  std::vector<std::int64_t> first_row;     // by expert of this rank
  std::vector<std::int64_t> rows_of;
  std::vector<int> experts;  // as Routing::experts()
  std::vector<RowSource> sources;
  std::vector<std::int64_t> chosen;
  std::vector<std::int64_t> rows_of_ranks;
  std::int64_t dropped = 0;
};

// REQUIRES: every choice is -1 or an expert. `choices`: by rank.
Places find_places(const ExchangeOptions& options, const Seats& seats,
                   std::span<const Choices> choices, int rank);

}  // namespace unisono::experts
