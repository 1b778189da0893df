// Where experts and their replicas should live, by how many tokens chose them.
//
//   const unisono::ExpertPlaces places =
//       unisono::balance(loads, {.ranks = 8, .seats = 72, .groups = 8, .hosts = 2});
//   unisono::Exchange exchange(comm, {.experts = 64, .k = 8,
//                                     .experts_of_rank = places.experts_of_rank});
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"

namespace unisono {

struct BalanceOptions {
  int ranks = 1;
  int seats = 0;   // experts and replicas that all ranks hold together; 0: one for each expert
  int groups = 1;  // of experts with consecutive numbers, whose experts all stay on one host
  int hosts = 1;   // ranks with consecutive numbers share one
};

struct ExpertPlaces {
  std::vector<std::vector<int>> experts_of_rank;  // as ExchangeOptions::experts_of_rank
  std::vector<double> load_of_rank;               // replicas share the load of their expert evenly
};

// `loads`: by expert, tokens that chose it (Routing::chosen(), or a mean over time). Every rank
// gets the same number of seats, and no expert twice. Where hosts divide the groups, and a rank has
// no more seats than its host has experts, experts of a group stay on one host, so that a router
// that is limited to few groups sends to few hosts; otherwise groups and hosts are left out of
// account. Deterministic, and the same on all ranks if their loads are. Local. Errors: usage (ranks
// that do not divide the seats, fewer seats than experts, loads that are negative or no numbers,
// ...).
//
// Source: the greedy method is that of EPLB (DeepSeek-AI, 2025): groups to hosts, replicas to the
// heaviest experts, experts to the least loaded ranks, always the heaviest first.
// Where no group holds them, experts and replicas are exchanged between ranks afterwards as long as
// that makes loads more even. EPLB may give a rank an expert twice, and balance() does not.
UNISONO_EXPORT ExpertPlaces balance(std::span<const double> loads, const BalanceOptions& options);

// One expert's weights to be copied from one rank to another.
struct ExpertMove {
  int expert = 0;
  int from = 0;
  int to = 0;
};

// What has to be copied to go from one placement to another: each expert that a rank gets and did
// not hold, from the rank that holds it and has sent least so far. The bytes are their number times
// those of an expert. Errors: usage (other numbers of ranks, an expert that nobody held).
UNISONO_EXPORT std::vector<ExpertMove> find_expert_moves(std::span<const std::vector<int>> before,
                                                         std::span<const std::vector<int>> after);

// [from][to]: the bytes that each rank sends to each other for these moves. Their sum is the cost;
// as a file of counts they are a schedule that can be verified, drawn and simulated. Local. Errors:
// usage (a rank that does not exist).
UNISONO_EXPORT std::vector<std::vector<std::size_t>> bytes_of_moves(
    std::span<const ExpertMove> moves, int ranks, std::size_t expert_bytes);

// Copies the weights, between steps: of each move from what `held` gives on the rank that sends it
// to what `placed` gives on the one that gets it, expert_bytes each. All are read before one is
// written, so an expert that comes may take the place of one that goes. Collective: an
// all_to_all_v. Costs memory for what this rank sends and gets. Errors, on all ranks and before any
// memory is written: usage (other lengths, a rank that does not exist, what a function throws),
// mismatch (moves or lengths that differ between ranks).
UNISONO_EXPORT void move_experts(Communicator& comm, std::span<const ExpertMove> moves,
                                 std::size_t expert_bytes,
                                 const std::function<std::span<const std::byte>(int expert)>& held,
                                 const std::function<std::span<std::byte>(int expert)>& placed);

}  // namespace unisono
