// Computes the place of each row by prefix sums. From all ranks' numbers of choices per expert, a
// rank computes the places of the rows of its own choices, and sends them to the ranks of the
// experts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "unisono/parallel/experts.hpp"

namespace unisono::experts {

// A physical expert is one expert on one rank; experts with replicas have several physical experts.
struct PhysicalExperts {
  struct PhysicalExpert {
    int rank = 0;
    int local = 0;  // its index among the rank's experts
    int number = 0;
  };
  std::vector<std::vector<PhysicalExpert>> of_expert;
  std::vector<std::vector<int>> experts_of_rank;
  std::vector<int> first_of_rank;  // each rank's first physical expert, and the total at the end
};

// Returns the mistake in the options, or "".
std::string find_mistake(const ExpertExchangeOptions& options, int ranks);
// REQUIRES: find_mistake() returns "".
PhysicalExperts physical_experts_of(const ExpertExchangeOptions& options, int ranks);

// A row's index among the rows from one rank to one other host: if each token is sent once, or if
// each choice is sent.
struct InterHostIndex {
  std::uint32_t token = 0;
  std::uint32_t choice = 0;
};

// A row that arrives on this rank. Arrivals are in the order (source rank, token, slot).
struct Arrival {
  std::int64_t token = 0;
  std::int64_t row = 0;  // row of the output
  int source = 0;
  int slot = 0;
  InterHostIndex inter_host_index = {};  // if the source is on another host
};

// Place of the row for one of this rank's choices.
struct Place {
  std::int64_t row = -1;
  int rank = -1;  // -1: none
};

struct Places {
  std::vector<Arrival> arrivals;
  std::vector<std::size_t> first_arrival;  // by source rank, and the total at the end
  std::vector<Place> places;               // [tokens][k]; rank_major: set at first slots
  std::int64_t rows = 0;                   // number of rows on this rank, with padding
  std::vector<std::int64_t> first_row;     // per expert of this rank
  std::vector<std::int64_t> rows_of;
  std::vector<int> experts;  // as Routing::experts()
  std::vector<RowSource> sources;
  std::vector<std::int64_t> chosen;
  std::vector<std::int64_t> rows_of_ranks;
  std::int64_t dropped = 0;
};

// A choice, as sent to the rank of its expert.
struct ChoiceMessage {
  std::uint32_t choice = 0;  // its index in [tokens][k]
  std::uint32_t local = 0;   // the expert's index on its rank
};

// This rank's choices, grouped by the rank of their experts.
struct SendLayout {
  std::vector<ChoiceMessage> messages;  // by rank, then in the order of the choices
  std::vector<std::size_t> send;        // number of choices for each rank
  std::vector<std::size_t> receive;     // number of choices from each rank
  std::vector<std::uint32_t> rows;      // rank_major: number of tokens for each rank
};

// Counts the choices per expert. REQUIRES: every choice is -1 or an expert.
std::vector<std::uint32_t> count_choices(const ExpertExchangeOptions& options,
                                         std::span<const std::int32_t> choices);

// Fills `places` except the arrivals. `counts`: [ranks][experts], count_choices() of all ranks.
// `choices`: this rank's choices. For rank_major, rows start from 0 for each source until
// add_first_rows().
SendLayout place_choices(const ExpertExchangeOptions& options,
                         const PhysicalExperts& physical_experts,
                         std::span<const std::uint32_t> counts,
                         std::span<const std::int32_t> choices, int rank, Places& places);

// Completes the rows of rank_major. `rows`: [ranks][ranks], SendLayout::rows of all ranks.
void add_first_rows(std::span<const std::uint32_t> rows, int rank, Places& places);

// Fills the arrivals of `places`. `messages`: by source rank, `send_layout.receive` from each.
// `inter_host`: one per message, or empty if all ranks are on one host.
void take_arrivals(const ExpertExchangeOptions& options, const SendLayout& send_layout,
                   std::span<const ChoiceMessage> messages,
                   std::span<const InterHostIndex> inter_host, Places& places);

}  // namespace unisono::experts
