// Computes the place of each row of an exchange by prefix sums: from the number of each rank's
// choices per expert, a rank knows the rows of its own choices, and tells the ranks of their
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
    int local = 0;  // its number among the experts of the rank
    int number = 0;
  };
  std::vector<std::vector<PhysicalExpert>> of_expert;
  std::vector<std::vector<int>> experts_of_rank;
  std::vector<int> first_of_rank;  // the rank's first physical expert; one more at the end
};

// Returns the mistake in the options; empty if there is none.
std::string find_mistake(const ExpertExchangeOptions& options, int ranks);
// REQUIRES: no mistake.
PhysicalExperts physical_experts_of(const ExpertExchangeOptions& options, int ranks);

// A row's numbers among those that one rank sends to one other host: if each token is sent once,
// and if each choice is.
struct InterHostIndex {
  std::uint32_t token = 0;
  std::uint32_t choice = 0;
};

// A row that comes to this rank, in the order (source rank, token, slot).
struct Arrival {
  std::int64_t token = 0;
  std::int64_t row = 0;  // of the output
  int source = 0;
  int slot = 0;
  InterHostIndex inter_host_index = {};  // for a source on another host
};

// The place of the row of one of this rank's choices.
struct Place {
  std::int64_t row = -1;
  int rank = -1;  // -1: none
};

struct Places {
  std::vector<Arrival> arrivals;
  std::vector<std::size_t> first_arrival;  // by source rank; one more at the end
  std::vector<Place> places;               // [tokens][k] of this rank; rank_major: at first slots
  std::int64_t rows = 0;                   // on this rank, with padding
  std::vector<std::int64_t> first_row;     // by expert of this rank
  std::vector<std::int64_t> rows_of;
  std::vector<int> experts;  // as Routing::experts()
  std::vector<RowSource> sources;
  std::vector<std::int64_t> chosen;
  std::vector<std::int64_t> rows_of_ranks;
  std::int64_t dropped = 0;
};

// A choice, as its rank sends it to the rank of the expert.
struct ChoiceMessage {
  std::uint32_t choice = 0;  // its index in [tokens][k]
  std::uint32_t local = 0;   // the number of the expert on its rank
};

// The choices of this rank, grouped for the ranks of their experts.
struct SendLayout {
  std::vector<ChoiceMessage> messages;  // by rank, and for each rank in the order of the choices
  std::vector<std::size_t> send;        // number of choices for each rank
  std::vector<std::size_t> receive;     // number of choices from each rank
  std::vector<std::uint32_t> rows;      // rank_major: number of tokens for each rank
};

// Counts by expert. REQUIRES: every choice is -1 or an expert.
std::vector<std::uint32_t> count_choices(const ExpertExchangeOptions& options,
                                         std::span<const std::int32_t> choices);

// `counts`: [ranks][experts], count_choices() of all ranks; `choices`: those of this rank. Fills
// all of `places` except the arrivals. rank_major counts rows from 0 for each source until
// add_first_rows().
SendLayout place_choices(const ExpertExchangeOptions& options,
                         const PhysicalExperts& physical_experts,
                         std::span<const std::uint32_t> counts,
                         std::span<const std::int32_t> choices, int rank, Places& places);

// For rank_major. `rows`: [ranks][ranks], the SendLayout::rows of all ranks.
void add_first_rows(std::span<const std::uint32_t> rows, int rank, Places& places);

// `messages`: by source rank, `send_layout.receive` of each. `inter_host`: one for each, or empty
// if all ranks are on one host.
void take_arrivals(const ExpertExchangeOptions& options, const SendLayout& send_layout,
                   std::span<const ChoiceMessage> messages,
                   std::span<const InterHostIndex> inter_host, Places& places);

}  // namespace unisono::experts
